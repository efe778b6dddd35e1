"""The memory that recommendations are said to take, beside what they take."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from app.core.kernels import Kernel
from app.core.recommendations import trials
from app.core.recommendations.candidates import Wanted, recommended_bytes
from app.core.recommendations.trials import recommend
from app.core.spec import Sampler
from service_tests.cases import with_nightly

_KERNEL: TypeAdapter[Kernel] = TypeAdapter(Kernel)
GMM = _KERNEL.validate_python({"kind": "gmm"})
GAUSSIAN = _KERNEL.validate_python({"kind": "gaussian", "length_scale": 1.0})


def sampler(**members: Any) -> Sampler:
    adapter: TypeAdapter[Sampler] = TypeAdapter(Sampler)
    return adapter.validate_python(members)


@pytest.mark.gate
@pytest.mark.parametrize(
    ("n", "input_dim", "budget", "kernel", "samplers"),
    with_nightly(
        [
            (1000, 4, 512, GAUSSIAN, None),
            (30, 3000, 128, GAUSSIAN, [sampler(kind="monte_carlo")]),
            (30, 16, 1024, GAUSSIAN, [sampler(kind="weighted", box=2.0)]),
            (300, 16, 2048, GMM, None),
            (2, 1000, 2048, GMM, None),
        ],
        [
            (30, 3, 1024, GAUSSIAN, [sampler(kind="lattice", learn=True, box=2.0)]),
            (100, 500, 2048, GAUSSIAN, None),
            (30, 3000, 128, GAUSSIAN, None),
            (50, 784, 2048, GMM.model_copy(update={"center": (0.5,) * 784}), None),
        ],
    ),
    ids=lambda value: getattr(value, "kind", None),
)
def test_memory_stays_within_what_is_reckoned(
    n: int,
    input_dim: int,
    budget: int,
    kernel: Kernel,
    samplers: list[Sampler] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # One map after another takes no more memory than one.
    monkeypatch.setattr(trials, "FRESH_MAPS", 0)
    monkeypatch.setattr(trials, "_MOST_MAPS", 1)
    rows, wanted = (
        np.random.default_rng(5).normal(size=(n, input_dim)).astype(np.float32),
        Wanted(budget, None, samplers),
    )
    recommend(rows[:2], [kernel], Wanted(4, None, samplers), seeds=1)  # what is compiled and imported stays
    tracemalloc.start()
    recommend(rows, [kernel], wanted, seeds=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.15 < peak / recommended_bytes(n, input_dim, wanted, kernel) < 1
