"""What all samplers that learn on a box have in common."""

from typing import Any

import numpy as np
import pytest

from app.core.building import Building
from app.core.discrepancy.box_discrepancy import BoxDiscrepancy
from service_tests.cases import with_nightly
from service_tests.core.combinations import Fields
from service_tests.core.interrupted import Interrupted
from service_tests.core.samplers.learned import (
    Watched,
    built,
    digest,
    every,
    on,
    quick_first,
)
from service_tests.core.specs import kernel

KERNELS: list[Any] = [
    {"kind": name, "length_scale": scale}
    for name in ("gaussian", "laplacian", "cauchy")
    for scale in (1.5, "one for each coordinate")
] + [{"kind": "correlation_rbf", "gamma": 0.9}]


@every
@pytest.mark.parametrize("d", with_nightly([3], [5, 21]))
@pytest.mark.parametrize("its_kernel", KERNELS, ids=lambda its: "-".join(map(str, its.values())))
def test_the_objective_falls_and_is_that_of_the_arrays(its_kernel: Fields, d: int, over: Fields) -> None:
    members = on(over, its_kernel, d, s=60)
    made = built(**members)
    assert made.report is not None
    measure = BoxDiscrepancy(kernel(**members["kernel"]), np.full(d, 2.0))
    found = measure.evaluate(made.arrays["frequencies"], made.arrays["weights"])
    assert made.report["objective_end"] == pytest.approx(found, rel=1e-9, abs=1e-14)
    assert made.report["points_kept"] == made.n_frequencies == len(made.arrays["weights"]) <= 60
    assert made.report["weight_sum"] == pytest.approx(made.arrays["weights"].sum(), rel=1e-14)
    assert "gram_error" not in made.report
    worse = made.report["objective_end"] > 1.01 * made.report["objective_start"] + 1e-14
    if (
        over["kind"] == "greedy_adaptive"
    ):  # the base as a whole may be better than what each point does for those before
        assert any("alone has the smaller" in warning for warning in made.warnings) == worse
    elif over["kind"] == "lattice":  # as here with one vector for all that nothing betters
        assert made.report["objective_end"] <= made.report["objective_start"]
    else:
        assert made.report["objective_end"] < 0.9999 * made.report["objective_start"]


@quick_first
@pytest.mark.parametrize("length_scale", [1.5, [0.5, 1.0, 2.0, 4.0]])
def test_a_resumed_build_gives_the_bits_of_an_undisturbed_one(over: Fields, length_scale: Any) -> None:
    members = on(over, {"kind": "gaussian", "length_scale": length_scale})
    whole = Watched()
    undisturbed = digest(built(whole.building, **members))
    for most in {1, 2, len(whole.states) // 2, len(whole.states)}:
        ended = Watched(most=most)
        with pytest.raises(Interrupted):
            built(ended.building, **members)
        again = Watched(ended.states[-1], most=2)
        try:
            made = built(again.building, **members)
        except Interrupted:  # twice
            made = built(Watched(again.states[-1]).building, **members)
        assert digest(made) == undisturbed


@every
def test_threads_change_no_bit(over: Fields) -> None:
    members = on(over, d=21, s=150, seed=3)
    members["sampler"] |= {"iterations": 3} if "iterations" in over else {}
    assert digest(built(Building(1), **members)) == digest(built(Building(3), **members))
