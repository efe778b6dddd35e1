"""How Fourier maps are built: seeds, frozen arrays, and the error that sampling leaves."""

import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.maps import FourierMap
from app.core.progress import OutOfTime, TimedProgress
from app.core.spec import MapSpec
from service_tests.cases import each
from service_tests.core.interrupted import WatchedWork
from service_tests.core.specs import fourier, gmm_spec, refusal, spec


@pytest.mark.parametrize("kind", ["monte_carlo", "halton", "sobol", "moment_matching"])
def test_one_seed_builds_one_map_in_every_thread_and_another_seed_another(kind: str) -> None:
    made = spec(sampler={"kind": kind}, form="phase", s=256, input_dim=20)
    with ThreadPoolExecutor(4) as pool:
        several = list(pool.map(lambda _: FourierMap.build(made).arrays, range(8)))
    other = FourierMap.build(made.model_copy(update={"seed": 8})).arrays
    for name, array in several[0].items():
        assert all(array.tobytes() == arrays[name].tobytes() for arrays in several[1:])
        assert name == "weights" or (array != other[name]).mean() > 0.99


def test_float32_maps_have_the_rounded_frequencies_of_float64_maps() -> None:
    single, double = (fourier(dtype=dtype).arrays for dtype in ("float32", "float64"))
    assert (single["frequencies"] == double["frequencies"].astype(np.float32)).all()


def test_the_largest_seed_is_as_good_as_any() -> None:
    largest, cut = (fourier(seed=seed).arrays["frequencies"] for seed in ((1 << 64) - 1, (1 << 32) - 1))
    assert (largest != cut).all()


@each("over", [{"kind": "monte_carlo"}, {"kind": "moment_matching"}])
@each(("scale", "dtype"), [(1e-39, "float32"), (1e-308, "float64"), (5e-324, "float32")])
def test_frequencies_outside_the_dtype_are_refused_at_the_length_scale(
    scale: float, dtype: str, over: dict[str, Any]
) -> None:
    made = spec(kernel={"kind": "gaussian", "length_scale": scale}, sampler=over, dtype=dtype, s=1000)
    with pytest.raises(InvalidInput, match="length_scale is so small") as caught:
        FourierMap.build(made)
    assert caught.value.pointer == "/kernel/length_scale"


@each(
    ("kernel", "field"),
    [
        ({"kind": "gaussian", "sigma": 1e-39}, "sigma"),
        ({"kind": "gaussian", "gamma": 1e80}, "gamma"),
        ({"kind": "gaussian", "gamma": [1.0, 1.0, 1e80, 1.0]}, "gamma"),
        ({"kind": "correlation_rbf", "gamma": 1e80}, "gamma"),
        ({"kind": "matern", "length_scale": 1.0, "nu": 1e-3}, "nu"),
        ({"kind": "matern", "length_scale": 1e-39, "nu": 2.5}, "length_scale"),
        ({"kind": "rational_quadratic", "length_scale": 1e-39, "alpha": 1e-3}, "length_scale"),
        ({"kind": "anova", "length_scale": 1e-39, "subsets": [[0, 1]]}, "length_scale"),
        ({"kind": "laplacian", "length_scale": [1.0, 1.0, 1.0, 1e-39]}, "length_scale"),
    ],
)
def test_frequencies_outside_float32_are_blamed_on_the_field_that_came(kernel: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        FourierMap.build(spec(kernel=kernel, s=1000))
    assert caught.value.pointer == f"/kernel/{field}"
    size = "large" if field == "gamma" else "small"
    assert caught.value.detail.startswith(f"{field} is so {size} that frequencies leave the range of float")


@pytest.mark.parametrize("field", ["length_scale", "sigma", "gamma"])
def test_a_list_of_another_length_is_blamed_on_the_field_that_came(field: str) -> None:
    error = refusal(kernel={"kind": "gaussian", field: [1.0, 2.0]})
    assert error.pointer == f"/kernel/{field}"
    assert error.detail == f"{field} has 2 entries; input_dim 4 wants as many, or one"


def test_a_map_of_frequencies_whose_sum_overflows_takes_the_origin_only() -> None:
    feature_map = fourier(kernel={"kind": "gaussian", "length_scale": 2.5e-308}, dtype="float64", s=2, seed=3)
    assert feature_map.transform(np.zeros((1, 4))).tolist() == [[np.sqrt(0.5), np.sqrt(0.5), 0, 0]]
    with pytest.raises(InvalidInput, match="phases"):
        feature_map.transform(np.ones((1, 4)))


def test_the_warnings_of_the_sampler_come_with_the_arrays() -> None:
    assert FourierMap.build(spec(sampler={"kind": "sobol"})).warnings == ()
    (warning,) = FourierMap.build(spec(sampler={"kind": "sobol"}, s=63)).warnings
    assert warning == "sobol is balanced only at a power of two; s = 63, take 32 or 64"


def ended(of: MapSpec, seconds: float) -> bytes:
    """The state that a build leaves that has so much time."""
    with pytest.raises(OutOfTime) as caught:
        FourierMap.build(of, Building(progress=TimedProgress(time.monotonic() + seconds)))
    return caught.value.state


def test_a_build_without_time_ends_between_two_summands_and_begins_anew() -> None:
    whole = spec()
    summands = spec(kernel={"kind": "anova", "length_scale": 1.0, "subsets": [[0], [1, 2], [3]]})
    assert FourierMap.build(whole, Building(progress=TimedProgress(0))).n_frequencies == 64, "one draw is not ended"
    state = ended(summands, 0)
    assert state == b""
    again, undisturbed = FourierMap.build(summands, Building(progress=WatchedWork(state))), FourierMap.build(summands)
    assert all((again.arrays[name] == array).all() for name, array in undisturbed.arrays.items())


@pytest.mark.parametrize(
    ("sampler", "s"),
    [
        ({"kind": "monte_carlo"}, (1 << 22) + 1),
        ({"kind": "orthogonal"}, (1 << 22) + 1),
        ({"kind": "moment_matching"}, (1 << 22) + 1),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else None,
)
def test_a_draw_that_takes_long_is_announced(sampler: dict[str, Any], s: int) -> None:
    assert ended(spec(sampler=sampler, s=s), 600) == b""


@pytest.mark.parametrize("kind", ["orthogonal", "moment_matching"])
def test_a_large_decomposition_is_announced(kind: str) -> None:
    assert ended(spec(sampler={"kind": kind}, s=1100, input_dim=1025), 600) == b""


def test_a_kernel_without_frequencies_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(TypeError, match="gcws draws no frequencies"):
        FourierMap.build(gmm_spec())
    with pytest.raises(TypeError, match="gcws draws no frequencies"):
        FourierMap(gmm_spec(), dict(fourier().arrays))


@pytest.mark.parametrize("form", ["complex", "cos_sin", "phase"])
def test_the_error_of_the_gram_matrix_falls_as_the_root_of_s(form: str) -> None:
    """For Monte Carlo; the slope of log error over log s is −½."""
    rows = np.random.default_rng(1).normal(size=(60, 8))
    sizes = [256, 512, 1024, 2048, 4096]
    errors = np.empty((20, len(sizes)))
    kernel = {"kind": "gaussian", "length_scale": 2.5}
    for seed in range(20):
        for i, s in enumerate(sizes):
            feature_map = fourier(input_dim=8, kernel=kernel, s=s, seed=seed, form=form, dtype="float64")
            exact = feature_map.exact_gram(rows, rows)
            errors[seed, i] = np.linalg.norm(feature_map.gram(rows, rows) - exact) / np.linalg.norm(exact)
    slope = np.polyfit(np.log(sizes), np.log(errors.mean(axis=0)), 1)[0]
    # One standard error is 0.010 to 0.014 (bootstrap over the seeds).
    assert abs(slope + 0.5) < 0.05


@pytest.mark.nightly
@pytest.mark.parametrize("sampler", ["moment_matching", "orthogonal"])
def test_one_seed_builds_one_map_whatever_the_threads_of_the_linear_algebra(sampler: str) -> None:
    # Large enough for OpenBLAS to share the work out.
    made = spec(input_dim=250, s=1024, sampler={"kind": sampler}, dtype="float64")
    code = (
        "import sys; from app.core.maps import FourierMap; from app.core.spec import MapSpec; "
        "made = FourierMap.build(MapSpec.model_validate_json(sys.argv[1])); "
        "sys.stdout.buffer.write(made.arrays['frequencies'].tobytes())"
    )
    command = [sys.executable, "-c", code, made.canonical()]
    one, two = (
        subprocess.run(command, env={**os.environ, "OPENBLAS_NUM_THREADS": threads}, capture_output=True, check=True)
        for threads in ("1", "2")
    )
    assert len(one.stdout) == 250 * 1024 * 8
    assert one.stdout == two.stdout


@pytest.mark.parametrize(
    ("kernel", "over", "told"),
    [
        ({"kind": "gaussian", "length_scale": 1e41}, {"kind": "sobol"}, "4 of 4 .* length_scale"),
        ({"kind": "matern", "nu": 3.0, "length_scale": [1, 1e41, 1, 1e39]}, {"kind": "monte_carlo"}, "2 of 4"),
        ({"kind": "correlation_rbf", "gamma": 1e-80}, {"kind": "orthogonal"}, "4 of 4 .* gamma"),
        ({"kind": "gaussian", "length_scale": 1e41}, {"kind": "structured_orthogonal"}, "8 of 8 .* length_scale"),
    ],
)
def test_frequencies_too_small_for_all_their_digits_are_warned_of(kernel: Any, over: Any, told: str) -> None:
    d = 8 if over["kind"] == "structured_orthogonal" else 4
    of = spec(input_dim=d, kernel=kernel, sampler=over, dtype="float32")
    found = [warning for warning in FourierMap.build(of).warnings if "digits" in warning]
    assert len(found) == 1
    assert re.search(told, found[0])
    assert "float64" in found[0]
    for better in ({"dtype": "float64"}, {"kernel": {"kind": "gaussian", "length_scale": 1e30}}):
        of = spec(**{"input_dim": d, "kernel": kernel, "sampler": over, "dtype": "float32"} | better)
        assert not [warning for warning in FourierMap.build(of).warnings if "digits" in warning]


def test_uploaded_frequencies_of_weight_0_are_the_clients_own() -> None:
    over = {"kind": "uploaded", "frequencies": [[1, 2, 3, 4], [0, 1, 0, 1]], "weights": [1, 0]}
    assert fourier(sampler=over, s=None).n_frequencies == 2
