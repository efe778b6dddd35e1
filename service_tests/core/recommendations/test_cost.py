"""What recommendations are reckoned to cost, beside what they took when that was measured."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from app.core.kernels import Kernel
from app.core.recommendations import (
    DEFAULT_SAMPLERS,
    Wanted,
    fitting,
    recommended,
    recommended_bytes,
    recommended_operations,
)
from app.core.recommendations.candidates import column_counts
from app.core.samplers import Sampler

# What the settings let pass at once: some two seconds.
AT_ONCE = 20_000_000_000
_KERNEL: TypeAdapter[Kernel] = TypeAdapter(Kernel)
GMM = _KERNEL.validate_python({"kind": "gmm"})
GAUSSIAN = _KERNEL.validate_python({"kind": "gaussian", "length_scale": 1.0})


def sampler(**members: Any) -> Sampler:
    adapter: TypeAdapter[Sampler] = TypeAdapter(Sampler)
    return adapter.validate_python(members)


@pytest.mark.parametrize("samplers", [None, DEFAULT_SAMPLERS], ids=["default", "named"])
@pytest.mark.parametrize(
    ("n", "input_dim", "wanted", "seconds"),
    [
        (60, 16, Wanted(None, 1e-6), 1.9),
        (200, 16, Wanted(128, None), 0.2),
        (1000, 16, Wanted(512, None), 1.5),
        (200, 16, Wanted(2048, None), 0.6),
        (1000, 16, Wanted(2048, None), 4.0),
        (100, 250, Wanted(512, None), 1.3),
        (200, 250, Wanted(1024, None), 2.4),
        (30, 16, Wanted(4096, None), 0.4),
    ],
)
def test_two_seconds_of_the_defaults_pass_at_once(
    n: int, input_dim: int, wanted: Wanted, seconds: float, samplers: tuple[Sampler, ...] | None
) -> None:
    operations = recommended_operations(n, input_dim, wanted, samplers, 3, GAUSSIAN)
    assert (operations < AT_ONCE) == (seconds <= 2)
    assert 0.75 < operations / (AT_ONCE / 2 * seconds) < 1.6


@pytest.mark.parametrize(
    ("n", "budget", "seconds"), [(200, 128, 0.2), (200, 1024, 1.5), (1000, 128, 4.0)], ids=lambda value: str(value)
)
def test_hashes_cost_what_their_comparisons_do(n: int, budget: int, seconds: float) -> None:
    operations = recommended_operations(n, 16, Wanted(budget, None), None, 3, GMM)
    assert 0.75 < operations / (AT_ONCE / 2 * seconds) < 1.6


@pytest.mark.parametrize(
    "members",
    [
        {"kind": "lattice", "learn": True, "box": 1.0},
        {"kind": "polynomially_exact", "degree": 3},
        {"kind": "weighted", "box": 1.0},
    ],
)
def test_rules_that_are_solved_for_are_work_for_a_job(members: dict[str, Any]) -> None:
    assert recommended_operations(2, 2, Wanted(64, None), [sampler(**members)], 1, GAUSSIAN) >= AT_ONCE


def test_the_reckoning_follows_sampler_size_and_dimension() -> None:
    def cost(kind: str, budget: int = 1 << 14, input_dim: int = 250, n: int = 10) -> int:
        return recommended_operations(n, input_dim, Wanted(budget, None), [sampler(kind=kind)], 3, GAUSSIAN)

    assert 5 < cost("digital_net") / cost("monte_carlo") < 9
    assert cost("sobol", budget=64) > 5 * cost("monte_carlo", budget=64)
    assert cost("orthogonal", input_dim=784) > 2.5 * cost("orthogonal", input_dim=250)
    assert 2 < cost("halton", n=1000, input_dim=4) / cost("halton", n=500, input_dim=4) < 4


def test_every_sampler_of_the_defaults_has_a_cost_of_its_own() -> None:
    for one in DEFAULT_SAMPLERS:
        assert recommended_operations(20, 3, Wanted(64, None), [one], 1, GAUSSIAN) < AT_ONCE / 50


@pytest.mark.parametrize(
    ("n", "input_dim", "budget", "kernel", "samplers"),
    [
        (100, 500, 2048, GAUSSIAN, None),
        (1000, 4, 512, GAUSSIAN, None),
        (30, 3000, 128, GAUSSIAN, None),
        (30, 3000, 128, GAUSSIAN, [sampler(kind="monte_carlo")]),
        (30, 16, 1024, GAUSSIAN, [sampler(kind="weighted", box=2.0)]),
        (30, 3, 1024, GAUSSIAN, [sampler(kind="lattice", learn=True, box=2.0)]),
        (300, 16, 2048, GMM, None),
        (2, 1000, 2048, GMM, None),
        (50, 784, 2048, GMM.model_copy(update={"center": (0.5,) * 784}), None),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_memory_stays_within_what_is_reckoned(
    n: int, input_dim: int, budget: int, kernel: Kernel, samplers: list[Sampler] | None
) -> None:
    rows, wanted = np.random.default_rng(5).normal(size=(n, input_dim)).astype(np.float32), Wanted(budget, None)
    recommended(rows[:2], kernel, Wanted(4, None), samplers, seeds=1)  # what is compiled and imported stays
    tracemalloc.start()
    recommended(rows, kernel, wanted, samplers, seeds=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.15 < peak / recommended_bytes(n, input_dim, wanted, samplers, kernel) < 1


def test_sizes_beyond_a_budget_fit_into_memory() -> None:
    wide = 40_000
    whole = Wanted(None, 0.1)

    def most(input_dim: int, kernel: Kernel, map_bytes: int, work_bytes: int) -> int:
        return fitting(whole, 2, input_dim, None, kernel, map_bytes=map_bytes, work_bytes=work_bytes).most

    assert most(16, GAUSSIAN, 1 << 30, 1 << 32) == whole.most
    assert most(wide, GAUSSIAN, 1 << 30, 1 << 60) == whole.most // 2
    narrow = whole._replace(most=most(wide, GAUSSIAN, 1 << 30, 1 << 31))
    assert recommended_bytes(2, wide, narrow, None, GAUSSIAN) <= 1 << 31
    assert recommended_bytes(2, wide, narrow._replace(most=2 * narrow.most), None, GAUSSIAN) > 1 << 31
    assert column_counts(narrow) == [1 << k for k in range(4, narrow.most.bit_length())]
    assert most(1 << 31, GMM, 1, 1 << 32) == whole.most
    assert fitting(Wanted(64, None), 2, wide, None, GAUSSIAN, map_bytes=1, work_bytes=1) == Wanted(64, None)


def test_narrower_sizes_count_where_the_widest_is_refused() -> None:
    weighted = [sampler(kind="weighted", box=2.0)]
    accepted, refused = (
        recommended_bytes(30, 4, Wanted(budget, None), weighted, GAUSSIAN) for budget in (8192, 10_000)
    )
    assert refused > accepted / 4
    within, past = (recommended_bytes(2, 1000, Wanted(budget, None), None, GMM) for budget in (4190, 4200))
    assert past > within / 3
