"""Gram errors against a plain computation of the whole matrices."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from app.core.diagnostics import error_matrix
from app.core.diagnostics.base import DRAWN_PAIRS, map_seeds, rms_by_kernel, row_pairs
from app.core.diagnostics.error_matrix import BINS, ControlVariates, Estimator, Figures, row_variation
from app.core.diagnostics.gram import MOST_ROWS
from app.core.errors import InvalidInput
from app.core.maps import FourierMap, make_map
from app.core.maps.terms import Dtype, Form
from service_tests.cases import covered
from service_tests.core.combinations import Fields, named, rows, variants, with_frequencies
from service_tests.core.diagnostics.measure import drawn, gram, gram_errors
from service_tests.core.specs import KERNELS, fourier, hashing, kind, spec

N = 300
FOURIER = [fields for model in KERNELS if kind(model) in with_frequencies(KERNELS) for fields in variants(model)]


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that there are tiles on and off the diagonal, and some not square."""
    monkeypatch.setattr(error_matrix, "TILE_ROWS", 128)


def plain(approximate: Any, exact: Any) -> Figures:
    error = approximate - exact
    return {
        "relative_frobenius": float(np.linalg.norm(error) / np.linalg.norm(exact)),
        "relative_spectral": float(np.linalg.norm(error, 2) / np.linalg.norm(exact, 2)),
        "max_abs": float(np.abs(error).max()),
        "mean_square": float(np.mean(np.abs(error) ** 2)),
        "bias": float(error.mean().real),
    }


def assert_close(found: Any, wanted: Any, relative: float) -> None:
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        # A bias is a difference of sums; one of 0 has no relative error.
        allowed = relative * (wanted["max_abs"] if name == "bias" else value)
        assert found[name] == pytest.approx(value, abs=allowed), name


def from_features(made: FourierMap, x: Any) -> Any:
    features = made.transform(x).astype(np.complex128)
    signature = 1 if made.signature is None else np.tile(made.signature, made.n_output // made.n_frequencies)
    return (features * signature) @ features.conj().T


@pytest.mark.parametrize(
    ("its_kernel", "form", "normalize", "dtype"),
    covered([*product(FOURIER, [form.value for form in Form], (False, True), [dtype.value for dtype in Dtype])], named),
    ids=named,
)
def test_figures_are_those_of_the_whole_matrices(its_kernel: Fields, form: str, normalize: bool, dtype: str) -> None:
    made = fourier(kernel=its_kernel, form=form, normalize=normalize, dtype=dtype, s=128)
    x = rows(N, 5, dtype=dtype)
    found = gram_errors(made, x, seeds=0)
    exact = made.exact_gram(x, x)
    wanted = plain(from_features(made, x), exact)
    sums = (np.square(np.abs(one)).sum(axis=1) for one in (from_features(made, x) - exact, exact))
    interval = row_variation(*sums).interval(wanted["relative_frobenius"])
    np.testing.assert_allclose(found["intervals"]["map"], interval, rtol=1e-5)
    # One entry of a product in float32 may be off by 1e-7 or two, in errors of .1.
    assert_close(found["estimators"]["map"], wanted, 1e-6 if dtype == "float64" else 5e-6)
    assert found["rows"] == N
    assert found["form"] == form
    assert found["monte_carlo"] is None
    assert found["ratios"] == {}


@pytest.mark.parametrize("form", ["complex", "cos_sin"])
@pytest.mark.parametrize(
    "sampler", [{"kind": "sparse_grid", "level": 2}, {"kind": "polynomially_exact", "degree": 2}], ids=named
)
def test_weighted_maps_and_those_with_a_signature_are_measured_alike(sampler: Fields, form: str) -> None:
    made = fourier(sampler=sampler, form=form, s=None, dtype="float64")
    assert (made.signature is not None) == (sampler["kind"] == "sparse_grid")
    x = rows(N, 5)
    figures = gram_errors(made, x, seeds=0)["estimators"]["map"]
    assert_close(figures, plain(from_features(made, x), made.exact_gram(x, x)), 1e-6)


@pytest.mark.parametrize("form", [form.value for form in Form])
@pytest.mark.parametrize("its_kernel", ["gaussian", "correlation_rbf"])
def test_control_variates_are_those_of_the_whole_matrices(its_kernel: str, form: str) -> None:
    fields = next(of for of in FOURIER if of["kind"] == its_kernel)
    made, x = fourier(kernel=fields, form=form, dtype="float64"), rows(N, 5)
    found = gram_errors(made, x, list(Estimator), seeds=2)
    exact, approximate = made.exact_gram(x, x), made.gram(x, x)
    prepared: Any = made.kernel.prepare(x)
    for estimator in Estimator:
        estimates = ControlVariates(made).estimate(estimator, prepared, prepared, exact, approximate)
        assert_close(found["estimators"][estimator.value], plain(estimates, exact), 1e-6)
    assert found["monte_carlo"] is not None
    mean: Any = found["monte_carlo"]["mean"]
    figures: Any
    for name, figures in found["estimators"].items():
        assert found["ratios"][name].keys() == mean.keys() - {"bias"}
        for figure, ratio in found["ratios"][name].items():
            assert ratio == figures[figure] / mean[figure]


def test_hashes_are_measured_and_have_no_baseline() -> None:
    made, x = hashing(s=64), rows(200, 5)
    found = gram_errors(made, x, seeds=3)
    assert_close(found["estimators"]["map"], plain(made.gram(x, x), made.exact_gram(x, x)), 1e-6)
    assert found["monte_carlo"] is None
    assert found["form"] is None


@pytest.mark.parametrize("form", [form.value for form in Form])
def test_the_baseline_is_as_many_monte_carlo_frequencies_over_seeds(form: str) -> None:
    x = rows(150, 6)
    fields: dict[str, Any] = {"form": form, "dtype": "float64"}
    found = gram_errors(fourier(sampler={"kind": "sobol"}, **fields), x, seeds=3, seed=11)["monte_carlo"]
    assert found is not None
    maps = [fourier(sampler={"kind": "monte_carlo"}, seed=seed, **fields) for seed in map_seeds(11, 3)]
    each: list[Any] = [plain(from_features(made, x), made.exact_gram(x, x)) for made in maps]
    assert found["seeds"] == 3
    assert_close(found["mean"], {name: float(np.mean([of[name] for of in each])) for name in each[0]}, 1e-6)
    deviations: Any = found["sd"]
    for name in each[0]:
        assert deviations[name] == pytest.approx(np.std([of[name] for of in each], ddof=1), rel=1e-4)
    one = gram_errors(fourier(**fields), x, seeds=1)["monte_carlo"]
    assert one is not None
    assert one["sd"] is None


@pytest.mark.parametrize("form", ["complex", "cos_sin"])
def test_the_picture_counts_every_entry_and_shows_real_pairs(form: str) -> None:
    made, x = fourier(form=form, dtype="float64"), rows(N, 5)
    found = gram(made, x, seeds=0, seed=4)
    histogram, density, curve = drawn(found)
    exact, approximate = made.exact_gram(x, x), made.gram(x, x)
    error = np.abs(approximate - exact) if form == "complex" else approximate - exact
    most = found.answer["estimators"]["map"]["max_abs"]
    counts, edges = np.histogram(error, BINS, (0 if form == "complex" else -most, most * (1 + 1e-12)))
    assert sum(histogram.heights) == pytest.approx(1)
    np.testing.assert_allclose(histogram.edges, edges, rtol=1e-9, atol=1e-9 * most)
    # Entries at an edge may be rounded over it.
    assert np.abs(np.array(histogram.heights) * N * N - counts).sum() <= 6 + 1e-6
    i, j = row_pairs(N, DRAWN_PAIRS, 4)
    errors = (approximate - exact)[i, j].real
    counts, *_ = np.histogram2d(exact[i, j], errors, [density.x_edges, density.y_edges])
    assert counts.sum() == DRAWN_PAIRS
    assert np.abs(counts.T - density.counts).sum() <= 12
    assert curve.y[: len(curve.y) // 2] == pytest.approx(rms_by_kernel(exact[i, j], errors)[1], rel=1e-9)
    assert drawn(gram(made, x, seeds=0, seed=5))[1] != density


@pytest.mark.parametrize("n", [0, 1, MOST_ROWS + 1])
def test_too_few_and_too_many_rows_are_refused(n: int) -> None:
    with pytest.raises(InvalidInput, match=f"expected 2 to 20000 rows, got {n}") as caught:
        gram_errors(fourier(), np.zeros((n, 4), np.float32))
    assert caught.value.pointer == "/vectors"


def test_rows_whose_kernel_is_0_are_refused() -> None:
    sampler = {"kind": "uploaded_landmarks", "landmarks": [[1.0]]}
    its = {"kind": "polynomial", "degree": 1, "coef0": 0}
    made = make_map(spec(kernel=its, sampler=sampler, s=None, input_dim=1))
    with pytest.raises(InvalidInput, match="the exact kernel of these rows is 0"):
        gram(made, np.zeros((2, 1), np.float32), seeds=0)
