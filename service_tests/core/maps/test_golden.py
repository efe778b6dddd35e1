"""Maps that must never change: what a seed names today it must name for ever."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from scipy import sparse

from app.core.arrays import Rows
from app.core.hashing.encodings import BitsOf, Encoder, Encoding
from app.core.maps import FourierMap, make_map, open_map
from app.core.spec import MapSpec
from service_tests.cases import each
from service_tests.core.combinations import LAWS, LEARNED, OTHER_FAMILIES, dimensions, variants, with_rows
from service_tests.core.specs import KERNELS, SAMPLERS, gmm_spec, kind, spec

FIELDS: dict[str, dict[str, Any]] = {
    "dense_grid": {"points_per_dim": 3},
    "sparse_grid": {"level": 2},
    "subsampled_grid": {"points_per_dim": 5},
    "polynomially_exact": {"degree": 2},
    "weighted": {"box": 2.0, "box_scale": 0.25},
    "global_adaptive": {"box": [1.0, 2.0, 3.0], "box_scale": 0.25, "iterations": 10},
    "greedy_adaptive": {"box": 2.0, "box_scale": 0.25},
    "reweighted_grid": {"points_per_dim": 5, "dataset": "rows"},
    "uploaded": {"frequencies": [[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]]},
    "moment_matching": {"base": {"kind": "sobol"}},
}
RULES = {"dense_grid", "sparse_grid", "polynomially_exact", "uploaded"}

# The last frequency, its weight and its offset (of the form phase) of maps of seed 7 and s = 16. Should one of them
# change, clients who create a map again get another one than they had: that is a new kind or field, not a mend.
GOLDEN: dict[str, list[float]] = {
    "monte_carlo": [-0.44218511769699276, 0.03690014641528569, 0.8688704963610907, 0.0625, 1.5119877931451668],
    "antithetic": [-0.6942833525812554, 0.27197296893090694, 0.5307624017098245, 0.0625, 1.5119877931451668],
    "latin_hypercube": [0.3051267573033318, -1.0314376641467569, -0.007304748016017553, 0.0625, 1.5119877931451668],
    "halton": [1.2443325432342178, -0.24826394274118924, 0.3809917048933011, 0.0625, 1.5119877931451668],
    "sobol": [1.4572929221356283, -0.3436754649893426, -0.11435045861026605, 0.0625, 1.5119877931451668],
    "lattice": [1.2582060007828733, -0.34354596620329064, -0.12169568094768064, 0.0625, 1.5119877931451668],
    "digital_net": [0.5401719118196682, 0.3041682222844966, -0.6545289555462941, 0.0625, 1.5119877931451668],
    "orthogonal": [1.0784481714646517, 0.2960428854251132, 0.6480698418904721, 0.0625, 1.5119877931451668],
    "structured_orthogonal": [
        -2.196748416186993,
        1.0983742080934964,
        0.5491871040467482,
        *(-1.0983742080934964, -1.0983742080934964, 1.0983742080934964, -1.0983742080934964, -1.0983742080934964),
        *(0.0625, 1.5119877931451668),
    ],
    "moment_matching": [1.4512243395457722, -0.382104397103741, -0.15626755701393938, 0.0625, 1.5119877931451668],
    "dense_grid": [3.464101615137755, 1.7320508075688774, 0.8660254037844387, 0.004629629629629624, 5.918984254290045],
    "sparse_grid": [0.0, 1.7320508075688774, 0.8660254037844387, 0.027777777777777755],
    "subsampled_grid": [0.0, 0.0, 0.677813089987133, 0.0625, 1.5119877931451668],
    "polynomially_exact": [
        -2.1240571556945187,
        0.003979115089800331,
        -0.4752495517489474,
        0.20133112556355112,
        0.639830362724734,
    ],
    "weighted": [1.2443325432342178, -0.24826394274118924, 0.3809917048933011, 0.13856968410445597, 4.670821792727187],
    "global_adaptive": [1.3306386624224935, -0.40811445789196876, 0.4666022621917442, 0.0625, 1.5119877931451668],
    "greedy_adaptive": [0.000930066507738473, 2.6187814843029815, -7.541979459183279e-05, 0.0625, 1.5119877931451668],
    "reweighted_grid": [
        2.711252359948532,
        1.355626179974266,
        0.677813089987133,
        0.07722476973093614,
        1.8325254936153625,
    ],
    "uploaded": [1.0, 2.0, 3.0, 0.5, 0.3741122048415613],
}
KERNEL_GOLDEN: dict[str, list[float]] = {
    "gaussian": [-0.1473950392323309, 0.02460009761019046, 1.158493995148121, 0.0625, 1.5119877931451668],
    "laplacian": [-0.18799642430882282, 0.03084663975766404, 5.130888374535837, 0.0625, 1.5119877931451668],
    "cauchy": [-0.1282314728112896, 0.01991819417193998, 1.665275550209819, 0.0625, 1.5119877931451668],
    "matern": [0.4937817036135755, -0.5722050305147018, 0.3959925571320526, 0.0625, 1.5119877931451668],
    "rational_quadratic": [
        *(1.5457184756180231, -1.7912123536280673, 1.2396024544588067, 0.0625, 1.5119877931451668),
    ],
    "anova": [0.0, -0.7383271505472045, 0.6091775401755377, 0.125, 1.5119877931451668],
    "correlation_rbf": [-0.20974681790281885, 0.03500655259980007, 1.6485658561332528, 0.0625, 1.5119877931451668],
}
# SHA-256 of codes of seed 7, s = 100, exact on every machine: clients keep codes in indexes. Should one of these
# change, the parameter stream needs a new version.
CENTER = [0.5, -1.0, 0.0, 2.0, 0.25, -0.75, 3.0, 0.125]
CODES_GOLDEN: dict[str, dict[str, str]] = {}
CODES_GOLDEN["gcws"] = {
    "plain": "4a0f28b6ba148da179c10ad8521933d93ad62ab98278b8607c22ebeba372ebb1",
    "power": "348c233b2ca70128f8edae175f30a176e409f6bad60a364d18d6635100cf5d47",
    "center": "e1423102f58df7c113fc0f7d23d21a35b0e32d2dae24c92a92b1165f58c95190",
    "far": "c3a535483408dc7e8ea5023afb7f0f426a96629870a70164a03c186fc7537bf1",
    "b_bit": "e46233ce2d73b86f9b27c19af5b4075bf68864d51467df432a6b29b6f7db4d95",
    "fingerprint": "9b56b74e93adae38db496f8407d92788cccb080f3bf97e4b63e6691321381c76",
}
CODES_GOLDEN["dart_minhash"] = {
    "plain": "5632e8a7c63d6f8fb8d2b8624fdcddff4ba93d7bd348ac00c5a848101d9220c0",
    "power": "7dfb458c291bf2e7703006248f3cfd6e64445f5a86e64ab69f93132222de7f09",
    "center": "0ab7ed83ca3664c510b48330a6c1e5c0723130e4965cd44f0637244b94475e61",
    "far": "2bbd67aca4bac98b498923babbd5250168a17e3141fde1a98d949953c7c15d3a",
    "b_bit": "feaaf306346df5d2077e6d8b840dc4135f22ac1661a228705ee77f728e4668a8",
    "fingerprint": "ee1d52e3710314c3633bac81a0c7e884d16c71dc551a0b290e4fdba25adf88a1",
}


def golden_spec(its_kernel: dict[str, Any], its_sampler: dict[str, Any]) -> MapSpec:
    name = its_sampler["kind"]
    form = "cos_sin" if name == "sparse_grid" else "phase"
    size, d = None if name in RULES else 16, dimensions(its_sampler, 3)
    return spec(kernel=its_kernel, sampler=its_sampler, form=form, s=size, input_dim=d, dtype="float64")


def of_sampler(name: str) -> MapSpec:
    its_sampler = {"kind": name} | FIELDS.get(name, {})
    scales = [0.5, 1.0, 2.0] + [1.0] * (dimensions(its_sampler, 3) - 3)
    return golden_spec({"kind": "gaussian", "length_scale": scales}, its_sampler)


def of_kernel(name: str) -> MapSpec:
    model = next(model for model in KERNELS if kind(model) == name)
    return golden_spec(variants(model, 3)[0], {"kind": "monte_carlo"})


def golden_rows(d: int = 8) -> Any:
    """Made by whole numbers and one division, so that they are the same everywhere."""
    whole = np.arange(1, 12 * d + 1).reshape(12, d)
    return (whole * 7919 % 1009 - 504) * (whole * 31 % 5 > 1) / 64


def digest_of_codes(its_sampler: str, name: str) -> str:
    its_kernel: dict[str, Any] = {"kind": "gmm"}
    encoder, input_dim, posted = Encoder(Encoding.pairs), 8, golden_rows()
    match name:
        case "power":
            its_kernel["p"] = 2.5
        case "center":
            its_kernel["center"] = CENTER
        case "far":
            input_dim = 1 << 31
            posted = golden_rows(40)
        case "b_bit":
            encoder = Encoder(Encoding.b_bit, 8, BitsOf.pair)
        case "fingerprint":
            encoder = Encoder(Encoding.fingerprint, 64)
    sampling = make_map(gmm_spec(input_dim=input_dim, s=100, kernel=its_kernel, sampler={"kind": its_sampler}))

    def digest(rows: Rows) -> str:
        codes = sampling.codes(rows, encoder)
        return hashlib.sha256(codes.astype(codes.dtype.newbyteorder("<")).tobytes()).hexdigest()

    if name == "far":
        row, column = np.nonzero(posted)
        columns = (1 << 31) - 1 - 97 * (posted.shape[1] - 1 - column)
        indptr = np.searchsorted(row, np.arange(len(posted) + 1))
        return digest(sparse.csr_array((posted[row, column], columns, indptr), shape=(len(posted), input_dim)))
    assert digest(posted) == digest(sparse.csr_array(posted))
    return digest(posted)


def last(of: MapSpec) -> list[float]:
    arrays = open_map(of, FourierMap.build(of, with_rows(of.input_dim)).arrays).arrays
    tail = [arrays["weights"][-1], *arrays.get("offsets", [])[-1:]]
    return [*arrays["frequencies"][-1].tolist(), *map(float, tail)]


@each("name", [kind(model) for model in SAMPLERS if kind(model) not in OTHER_FAMILIES])
def test_a_map_of_each_sampler_never_changes(name: str) -> None:
    assert name in GOLDEN, f"commit the values of sampler {name}: {last(of_sampler(name))}"
    # Roots and eigenvectors may round differently on another machine; nothing else may differ. What is learned step by
    # step multiplies such a difference.
    close = 1e-6 if name in LEARNED else 1e-12
    np.testing.assert_allclose(last(of_sampler(name)), GOLDEN[name], rtol=close, atol=close / 100)


@each("name", [kind(model) for model in KERNELS if kind(model) in LAWS])
def test_a_map_of_each_kernel_never_changes(name: str) -> None:
    assert name in KERNEL_GOLDEN, f"commit the values of kernel {name}: {last(of_kernel(name))}"
    np.testing.assert_allclose(last(of_kernel(name)), KERNEL_GOLDEN[name], rtol=1e-12, atol=1e-14)


@each("name", ["plain", "power", "center", "far", "b_bit", "fingerprint"])
@each("its_sampler", CODES_GOLDEN)
def test_codes_never_change_on_any_machine(its_sampler: str, name: str) -> None:
    assert digest_of_codes(its_sampler, name) == CODES_GOLDEN[its_sampler][name]


def test_the_order_and_the_thread_in_which_maps_are_built_change_nothing() -> None:
    specs = [of_sampler(name) for name in GOLDEN] + [of_kernel(name) for name in KERNEL_GOLDEN]

    def digest(of: MapSpec) -> bytes:
        return b"".join(array.tobytes() for array in FourierMap.build(of, with_rows(of.input_dim)).arrays.values())

    once = [digest(of) for of in specs]
    assert [digest(of) for of in reversed(specs)] == once[::-1]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(digest, specs * 3)) == once * 3
