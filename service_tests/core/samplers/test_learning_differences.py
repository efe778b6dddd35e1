"""Sets learned on the differences of rows: what they are worth on others, and refusals."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.maps import FourierMap
from app.core.samplers.learning import split
from service_tests.cases import with_nightly
from service_tests.core.combinations import Fields
from service_tests.core.samplers.learned import built
from service_tests.core.samplers.test_reweighted_grid import clustered
from service_tests.core.specs import kernel, refusal, spec

WEIGHTED: Fields = {"kind": "weighted"}
GLOBAL: Fields = {"kind": "global_adaptive", "iterations": 40}
GREEDY: Fields = {"kind": "greedy_adaptive", "iterations": 20}
quick_first = pytest.mark.parametrize("over", with_nightly([WEIGHTED, GLOBAL], [GREEDY]), ids=lambda over: over["kind"])
every = pytest.mark.parametrize("over", [WEIGHTED, GLOBAL, GREEDY], ids=lambda over: over["kind"])
KERNELS: list[Fields] = [
    {"kind": "gaussian", "length_scale": 2.0},
    {"kind": "laplacian", "length_scale": 6.0},
    {"kind": "cauchy", "length_scale": [3.0, 2.0, 1.0, 2.0, 3.0]},
    {"kind": "matern", "nu": 2.5, "length_scale": 2.0},
    {"kind": "rational_quadratic", "alpha": 1.5, "length_scale": 2.0},
    {"kind": "correlation_rbf", "gamma": 1.0},
]


def on(over: Fields, its_kernel: Fields | None = None, **members: Any) -> dict[str, Any]:
    its = its_kernel or {"kind": "gaussian", "length_scale": 1.5}
    return {"kernel": its, "sampler": over | {"differences": "data", "dataset": "d"}, "s": 40, **members}


def error(made: Any, its: Fields, rows: Any, is_complex: bool) -> float:
    of = kernel(**its)
    rows = of.prepare(rows)
    waves = np.exp(1j * rows @ made.arrays["frequencies"].T)
    found, exact = (waves * made.arrays["weights"]) @ waves.conj().T, of.gram(rows, rows)
    return float(np.linalg.norm(exact - (found if is_complex else found.real)) / np.linalg.norm(exact))


@pytest.mark.parametrize("form", ["cos_sin", "complex"])
@pytest.mark.parametrize(
    ("over", "its"),
    # One by one, the frequencies of smooth kernels may come out worse than the base: see the page.
    with_nightly(
        [(over, KERNELS[0]) for over in (WEIGHTED, GLOBAL)],
        [(GREEDY, KERNELS[0]), *product((WEIGHTED, GLOBAL), KERNELS[1:])],
    ),
)
def test_it_is_better_than_its_base_on_rows_it_has_not_seen(over: Fields, its: Fields, form: str) -> None:
    seen, others = clustered(300, 5, 1), clustered(400, 5, 2)
    around, is_complex = Building(rows=lambda *_: seen), form == "complex"
    ratios = []
    for seed in range(3):
        members = on(over, its, input_dim=5, seed=seed, form=form)
        made = built(around, **members)
        base = built(input_dim=5, kernel=its, sampler={"kind": "halton"}, s=40, seed=seed, form=form)
        ratios.append(error(made, its, others, is_complex) / error(base, its, others, is_complex))
        assert made.report is not None
        assert made.report["objective_end"] < made.report["objective_start"]
        held_out = split(seen).held_out
        assert made.report["gram_error_held_out"] == pytest.approx(error(made, its, held_out, is_complex), rel=1e-6)
        start = error(base, its, held_out, is_complex)
        assert made.report["gram_error_start_held_out"] == pytest.approx(start, rel=1e-6)
    assert np.mean(ratios) < 0.9
    assert max(ratios) < 1


@every
def test_the_objective_is_the_squared_gram_error_of_the_rows_learned_from(over: Fields) -> None:
    rows = clustered(200, 4, 3)
    made = built(Building(rows=lambda *_: rows), **on(over))
    learned = split(rows).learned
    energy = np.square(kernel(kind="gaussian", length_scale=1.5).gram(learned, learned)).mean()
    assert made.report is not None
    for end, figure in (("start", "gram_error_start"), ("end", "gram_error")):
        assert made.report[f"objective_{end}"] == pytest.approx(energy * made.report[figure] ** 2, rel=1e-9)


@every
def test_what_has_no_meaning_is_refused(over: Fields) -> None:
    for wrong, pointer, words in (
        ({"dataset": None}, "/sampler/dataset", "expected a dataset"),
        ({"box": 1.0}, "/sampler/box", "has no box"),
        ({"box_scale": 0.5}, "/sampler/box_scale", "has no box"),
    ):
        found = refusal(sampler=on(over)["sampler"] | wrong)
        assert (found.pointer, words in found.detail) == (pointer, True)
    found = refusal(**on(over, {"kind": "anova", "length_scale": 1.0, "subsets": [[0], [1]]}))
    assert found.pointer == "/sampler/kind"
    # As it is echoed, it can be put again.
    echoed = spec(**on(over))
    assert echoed.sampler.box_scale is None  # type: ignore[attr-defined]
    assert spec(**echoed.model_dump(mode="json", exclude={"input"})) == echoed
    with pytest.raises(InvalidInput, match="not at hand"):
        FourierMap.build(echoed)
