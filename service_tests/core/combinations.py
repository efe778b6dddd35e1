"""Every registered kernel with every registered sampler, as a client writes them, for vectors of any length.

A new kind is enumerated as soon as it is registered. It wants its fields in FIELDS; a kernel with frequencies wants
their law in LAWS, and a sampler that draws no frequencies wants its kernels in OTHER_FAMILIES.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

from app.core.building import Building
from app.core.kernels.base import ShiftInvariantKernel
from app.core.samplers.base import FrequencySampler
from service_tests.core.specs import KERNELS, POINTS, SAMPLERS, kind, spec

Fields = dict[str, Any]
Pair = tuple[Fields, Fields]

D, S = 4, 512
# By d: image and patch of the windows; the number of patches divides the s of every test, and evenly.
IMAGES = {3: ((1, 3), (1, 2)), 4: ((2, 2), (1, 2)), 8: ((2, 4), (1, 2)), 20: ((4, 5), (1, 2)), 90: ((1, 90), (1, 27))}


def _scales(d: int) -> list[Any]:
    """One for all, and one for each."""
    return [{"length_scale": 1.5 if d < 10 else 3.0}, {"length_scale": np.linspace(0.75, 3, d).tolist()}]


def _anova(d: int) -> list[Fields]:
    image, patch = IMAGES[d]
    subsets = [[0, 1, 2], [d - 1, 0], [1], [2, 1]]
    return [
        {"length_scale": 1.5 if d < 10 else 0.5, "windows": {"image_shape": image, "patch_shape": patch}},
        _scales(d)[1] | {"subsets": subsets, "weights": [0.5, 1.0, 2.0, 0.75]},
    ]


class VarianceGamma(NamedTuple):
    """The law of a normal variable whose variance follows a gamma law of this shape and mean 1."""

    shape: float

    def cdf(self, x: Any) -> Any:
        """The mean of normal laws whose variances are the middles of equal parts of the gamma law."""
        variances = stats.gamma(self.shape, scale=1 / self.shape).ppf((np.arange(300) + 0.5) / 300)
        return special.ndtr(np.divide.outer(x, np.sqrt(variances))).mean(axis=-1)


ON_ROWS: Fields = {"differences": "data", "dataset": "rows"}

FIELDS: dict[str, Callable[[int], list[Fields]]] = {
    "gaussian": _scales,
    "laplacian": _scales,
    "cauchy": _scales,
    "matern": lambda d: [_scales(d)[0] | {"nu": 2.5}, _scales(d)[1] | {"nu": 0.5}],
    "rational_quadratic": lambda d: [_scales(d)[0] | {"alpha": 1.5}, _scales(d)[1] | {"alpha": 0.4}],
    "anova": _anova,
    "correlation_rbf": lambda _: [{"gamma": 0.9}],
    "gmm": lambda _: [{}],
    "polynomial": lambda _: [{"degree": 3}, {"degree": 4, "gamma": 0.7, "coef0": 0.0}],
    "chi_squared": lambda _: [{}, {"gamma": 0.4}],
    "monte_carlo": lambda _: [{}],
    "antithetic": lambda _: [{}],
    "latin_hypercube": lambda _: [{}],
    "halton": lambda _: [{}, {"scramble": "reverse_radix"}],
    "sobol": lambda _: [{}, {"scramble": False}],
    "lattice": lambda _: [{}, {"shift": False}, {"learn": True, "box": 0.5, "shift": False}],
    "digital_net": lambda _: [{}, {"alpha": 1, "scramble": False}],
    "orthogonal": lambda _: [{}],
    "structured_orthogonal": lambda _: [{}, {"radii": "independent"}],
    "moment_matching": lambda _: [{"base": {"kind": kind(model)}} for model in POINTS],
    "dense_grid": lambda _: [{"points_per_dim": 5}],
    "sparse_grid": lambda _: [{"level": 2}],
    "subsampled_grid": lambda _: [{"points_per_dim": 9}],
    "polynomially_exact": lambda _: [{"degree": 4}],
    "weighted": lambda _: [
        {"box": 2.0, "box_scale": 0.5, "normalize_weights": True},
        ON_ROWS | {"normalize_weights": True},
    ],
    "global_adaptive": lambda d: [{"box": [2.0] * d, "iterations": 5}, ON_ROWS | {"iterations": 5}],
    "greedy_adaptive": lambda _: [{"box": 2.0, "iterations": 2}],
    "reweighted_grid": lambda _: [{"dataset": "rows", "points_per_dim": 9}],
    "uploaded": lambda _: [{}],  # its frequencies belong to a kernel: see `pairs`
    "gcws": lambda _: [{}],
    "dart_minhash": lambda _: [{}],
    "landmarks": lambda _: [{"dataset": "rows"}, {"dataset": "rows", "selection": "uniform", "rows": 60}],
    "uploaded_landmarks": lambda d: [{"landmarks": np.abs(rows(30, 3, d)).tolist()}],
}
"""Values of the fields for vectors of d entries; a kind is tried with each."""

LAWS: dict[str, Callable[[Fields], Any]] = {
    "gaussian": lambda _: stats.norm(),
    "laplacian": lambda _: stats.cauchy(),
    "cauchy": lambda _: stats.laplace(),
    "matern": lambda fields: stats.t(2 * fields["nu"]),
    "rational_quadratic": lambda fields: VarianceGamma(fields["alpha"]),
    "anova": lambda _: stats.norm(),
    "correlation_rbf": lambda _: stats.norm(),
}
"""Of one coordinate of the frequencies at σ = 1."""

OTHER_FAMILIES: dict[str, Callable[[Fields], bool]] = {
    "gcws": lambda its_kernel: its_kernel["kind"] == "gmm",
    "dart_minhash": lambda its_kernel: its_kernel["kind"] == "gmm",
    "landmarks": lambda _: True,
    "uploaded_landmarks": lambda _: True,
}
"""Samplers that draw no frequencies, and the kernels that go with each."""

NOT_RANDOM = ("dense_grid", "sparse_grid", "uploaded", "uploaded_landmarks")
"""Samplers to which the seed means nothing."""

RULES = ("dense_grid", "sparse_grid", "polynomially_exact")
"""Samplers that dictate their count, and are exact near 0 instead of right on average."""

COUNTED = (*RULES, "uploaded", "uploaded_landmarks")
"""Samplers that dictate their count, so that `s` may be left out."""

LEARNED = ("weighted", "global_adaptive", "greedy_adaptive", "reweighted_grid")
"""Samplers that fit the set to the kernel on a box or on rows."""

NORMAL_ONLY = (*RULES, "subsampled_grid", "orthogonal")
NORMAL = ("gaussian", "anova", "correlation_rbf")


LEAST_DIMENSIONS = {"structured_orthogonal": 8}
"""Samplers that refuse vectors of fewer entries, and how many they want."""


def dimensions(its_sampler: Fields, d: int = D) -> int:
    """Length of the vectors that a sampler is tried with: d, or the fewest entries that it takes."""
    return max(d, LEAST_DIMENSIONS.get(its_sampler["kind"], 1))


def variants(model: type[Any], d: int = D) -> list[Fields]:
    """The kind with each of its values of FIELDS; none if it has no entry, which a test of the contract reports."""
    made = FIELDS.get(kind(model))
    return [] if made is None else [{"kind": kind(model)} | fields for fields in made(d)]


def pairs(d: int = D) -> list[Pair]:
    """Every kernel with every sampler, for vectors of `dimensions`; frequencies to upload are those of the kernel."""
    samplers = [fields for model in SAMPLERS for fields in variants(model, d)]
    every = [(k, s) for model in KERNELS for s in samplers for k in variants(model, dimensions(s, d))]
    return [(k, _with_frequencies(k, d) if s["kind"] == "uploaded" else s) for k, s in every]


def goes_together(its_kernel: Fields, its_sampler: Fields) -> bool:
    """The rule: each other family its own, normal laws for rules that need them, moments only where there are any."""
    name, over = its_kernel["kind"], its_sampler["kind"]
    if over in OTHER_FAMILIES:
        return OTHER_FAMILIES[over](its_kernel)
    if name not in LAWS:
        return False
    if over == "structured_orthogonal":
        return name in ("gaussian", "matern", "rational_quadratic", "correlation_rbf")
    if over == "reweighted_grid":
        return name in NORMAL and name != "anova"
    if its_sampler.get("differences") == "data":
        return "subsets" not in its_kernel and "windows" not in its_kernel
    if over in LEARNED or its_sampler.get("learn"):
        return name in ("gaussian", "laplacian", "cauchy", "correlation_rbf")
    if over in NORMAL_ONLY or its_sampler.get("base", {}).get("kind") in NORMAL_ONLY:
        return name in NORMAL
    if over == "moment_matching":
        return name != "laplacian" and bool(its_kernel.get("nu", np.inf) > 1)
    return over != "uploaded" or "subsets" not in its_kernel  # subsets of several sizes have no set in common


def drawn_as(its_sampler: Fields) -> str:
    """The kind of a sampler, and that of the points that it moves."""
    return named({field: value for field, value in its_sampler.items() if field in ("kind", "base")})


def each_with_each(of: list[Pair]) -> list[Pair]:
    """Of the pairs, one for each kernel with each sampler. Their variants take turns, and each is there."""
    groups: dict[tuple[str, str], list[Pair]] = {}
    for its_kernel, its_sampler in of:
        groups.setdefault((its_kernel["kind"], its_sampler["kind"]), []).append((its_kernel, its_sampler))
    chosen = [group[turn % len(group)] for turn, group in enumerate(groups.values())]
    seen = {named(fields) for pair in chosen for fields in pair}
    for pair in of:
        if not seen >= (names := set(map(named, pair))):
            chosen.append(pair)
            seen |= names
    return chosen


def is_random(its_sampler: Fields) -> bool:
    """Whether another seed gives other frequencies."""
    return (
        its_sampler["kind"] not in NOT_RANDOM
        and its_sampler.get("scramble", True) in (True, "random")
        and its_sampler.get("shift", True)
    )


def size_of(its_sampler: Fields) -> int:
    """Frequencies enough for the tests of a combination: fewer where each takes time."""
    return S // 8 if its_sampler["kind"] in LEARNED or its_sampler.get("learn") else S


def is_unbiased(its_sampler: Fields) -> bool:
    """Whether each frequency alone has the law of the kernel."""
    return (
        is_random(its_sampler)
        and its_sampler["kind"] in with_frequencies(SAMPLERS) - {*RULES, *LEARNED, "moment_matching"}
        and not its_sampler.get("learn")
    )


def with_frequencies(models: tuple[type[Any], ...]) -> set[str]:
    """The kinds of the Fourier family."""
    return {kind(model) for model in models if issubclass(model, ShiftInvariantKernel | FrequencySampler)}


def weight_sum(its_kernel: Fields, d: int = D) -> float:
    """k(0), as the fields say."""
    if its_kernel["kind"] != "anova":
        return 1.0
    if "windows" in its_kernel:
        (height, width), (tall, wide) = IMAGES[d]
        return float((height - tall + 1) * (width - wide + 1))
    return float(sum(its_kernel["weights"]))


def with_rows(d: int = D, n: int = 120, its_kernel: str = "") -> Building:
    """Surroundings of a build with one dataset of rows like those of the tests, under any name."""
    return Building(rows=lambda *_: rows(n, 17, d, its_kernel=its_kernel))


def rows(n: int, seed: int, d: int = D, dtype: str = "float64", size: float = 1.2, its_kernel: str = "") -> Any:
    """Rows with kernels between 0.03 and 0.95, for length scales about 1; none is below 0 if the kernel wants so."""
    found = np.random.default_rng(seed).normal(size=(n, d), scale=size / np.sqrt(d)).astype(dtype)
    return np.abs(found) if its_kernel == "chi_squared" else found


def named(value: Any) -> str:
    """A short name for the test's own, of fields and of whatever else tells cases apart."""
    if not isinstance(value, dict):
        return str(value)
    words = [str(v.get("kind", "windows") if isinstance(v, dict) else v) for v in value.values()]
    return "-".join(word for word in words if len(word) < 24).replace(" ", "")


def _with_frequencies(its_kernel: Fields, d: int) -> Fields:
    rng = np.random.default_rng(11)
    frequencies = rng.normal(size=(S, d))
    if its_kernel["kind"] in LAWS:
        first = spec(kernel=its_kernel, input_dim=d).kernel
        assert isinstance(first, ShiftInvariantKernel)
        block = first.blocks(d)[0]
        uniforms = rng.random((S, block.kernel.uniforms_per_frequency(block.dim(d))))
        frequencies = block.kernel.frequencies(uniforms)
    return {"kind": "uploaded", "frequencies": frequencies.tolist()}
