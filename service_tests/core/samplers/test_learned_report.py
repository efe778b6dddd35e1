"""Reports of learned sets: which rows are held out, the figures beside plain matrices, and when a set is warned of."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.core.arrays import dense
from app.core.building import Use
from app.core.samplers.base import FrequencySet
from app.core.samplers.learning import Split, add_report, split
from service_tests.core.specs import product_kernel

KERNEL = product_kernel("gaussian", [1.0, 2.0, 0.7])


def sets(s: int, seed: int = 0) -> FrequencySet:
    rng = np.random.default_rng(seed)
    return FrequencySet(rng.normal(size=(s, 3)) / [1.0, 2.0, 0.7], rng.uniform(0.8, 1.1, size=s) / s, ("told",))


def plain(one: FrequencySet, rows: Any, use: Use) -> float:
    exact = KERNEL.gram(rows, rows)
    waves = np.exp(1j * rows @ one.frequencies.T)
    found = (waves * one.weights) @ waves.conj().T
    found = found if use.is_complex else found.real
    scale = one.weights.sum() if use.normalize else 1.0
    return float(np.linalg.norm(exact - found / scale) / np.linalg.norm(exact))


@pytest.mark.parametrize(("n", "held_out"), [(3, 0), (7, 0), (8, 2), (101, 25), (9000, 1000)])
def test_a_quarter_is_held_out_and_the_same_each_time(n: int, held_out: int) -> None:
    rows = np.arange(float(3 * n)).reshape(n, 3)
    found, again = split(rows), split(sparse.csr_array(rows))
    assert (found.learned.shape[0], found.held_out.shape[0]) == (n - held_out, held_out)
    assert sorted([*dense(found.learned)[:, 0], *dense(found.held_out)[:, 0]]) == rows[:, 0].tolist()
    np.testing.assert_array_equal(dense(again.held_out), dense(found.held_out))


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
def test_figures_are_those_of_matrices(is_complex: bool, normalize: bool) -> None:
    use, rng = Use(is_complex=is_complex, normalize=normalize), np.random.default_rng(3)
    rows = Split(rng.normal(size=(60, 3)), rng.normal(size=(25, 3)))
    start, found = sets(20), sets(30, seed=1)
    made = add_report(found, start, "base halton", (0.5, 0.25), KERNEL, rows, use, lambda: None)
    assert made.report is not None
    for of, name in ((rows.learned, "{}"), (rows.held_out, "{}_held_out")):
        for one, figure in ((start, "gram_error_start"), (found, "gram_error")):
            assert made.report[name.format(figure)] == pytest.approx(plain(one, of, use), rel=1e-9)
    told = {name: made.report[name] for name in ("objective_start", "objective_end", "points_kept", "rows_held_out")}
    assert told == {"objective_start": 0.5, "objective_end": 0.25, "points_kept": 30, "rows_held_out": 25}


def test_a_set_that_is_worse_than_its_start_warns_with_both_figures() -> None:
    rows = np.random.default_rng(5).normal(size=(200, 3))
    worse, better = sets(10), sets(1000)
    for rows_of, words in (
        (Split(rows[:100], rows[100:]), "Gram error on 100 rows that were not learned from ({}, here {})"),
        (Split(rows, rows[:0]), "Gram error on 200 rows of the dataset ({}, here {})"),
    ):
        # The objective says the contrary, and does not count.
        made = add_report(worse, better, "base sobol", (2.0, 1.0), KERNEL, rows_of, Use(), lambda: None)
        of = rows_of.held_out if len(rows_of.held_out) else rows_of.learned
        figures = (f"{plain(one, of, Use()):.4g}" for one in (better, worse))
        assert made.warnings == ("told", f"base sobol alone has the smaller {words.format(*figures)}: take it")
        made = add_report(better, worse, "base sobol", (1.0, 2.0), KERNEL, rows_of, Use(), lambda: None)
        assert made.warnings == ("told",)


def test_without_a_dataset_the_objective_decides_and_no_gram_error_is_told() -> None:
    one = sets(10)
    for end, warned in ((1.02, True), (1.005, False), (0.5, False)):
        made = add_report(one, one, "base halton", (1.0, end), KERNEL, None, Use(), lambda: None)
        assert made.report is not None
        assert not any("gram" in name or "rows" in name for name in made.report)
        assert any("alone has the smaller box discrepancy (1, here 1.02)" in told for told in made.warnings) == warned
    made = add_report(one, one, "base halton", (0.0, 1e-16), KERNEL, None, Use(), lambda: None)
    assert made.warnings == ("told",)
