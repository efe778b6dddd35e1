"""Reports of learned sets: which rows are held out, the figures beside plain matrices, and when a set is warned of."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.core.arrays import dense
from app.core.building import Use
from app.core.samplers.base import FrequencySet
from app.core.samplers.learned_report import Compared, Split, of_a_box, reported, split
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


@pytest.mark.parametrize("n", [2, 101, 1500])
def test_all_rows_of_a_box_count_as_others(n: int) -> None:
    rows = np.arange(float(3 * n)).reshape(n, 3)
    learned, held_out = of_a_box(rows)
    np.testing.assert_array_equal(dense(learned), rows)
    assert np.isin(dense(held_out)[:, 0], rows[:, 0]).all()
    assert held_out.shape[0] == min(n, 1000)


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
def test_figures_are_those_of_matrices(is_complex: bool, normalize: bool) -> None:
    use, rng = Use(is_complex=is_complex, normalize=normalize), np.random.default_rng(3)
    rows = Split(rng.normal(size=(60, 3)), rng.normal(size=(25, 3)))
    start, found = sets(20), sets(30, seed=1)
    made = reported(found, Compared(start, "base halton", 0.5, 0.25), KERNEL, rows, use, lambda: None)
    assert made.report is not None
    for of, name in ((rows.learned, "{}"), (rows.held_out, "{}_held_out")):
        for one, figure in ((start, "gram_error_start"), (found, "gram_error")):
            assert made.report[name.format(figure)] == pytest.approx(plain(one, of, use), rel=1e-9)
    told = {name: made.report[name] for name in ("objective_start", "objective_end", "points_kept", "rows_held_out")}
    assert told == {"objective_start": 0.5, "objective_end": 0.25, "points_kept": 30, "rows_held_out": 25}


def test_a_map_in_float32_is_judged_by_what_it_makes_of_the_rows() -> None:
    rows, one = np.random.default_rng(0).normal(size=(40, 3)) + 1e8, sets(500)
    found = {}
    for use in (Use(), Use(np.dtype(np.float32))):
        made = reported(one, Compared(one, "", 0.0, 0.0), KERNEL, Split(rows, rows[:0]), use, lambda: None)
        assert made.report is not None
        found[use.dtype.name] = made.report["gram_error"]
    assert found["float64"] < 0.2 < 0.5 < found["float32"]


def test_a_set_that_is_worse_than_its_start_warns_with_both_figures() -> None:
    rows = np.random.default_rng(5).normal(size=(200, 3))
    worse, better = sets(10), sets(1000)
    for rows_of, words in (
        (Split(rows[:100], rows[100:]), "Gram error on 100 rows that were not learned from ({}, here {})"),
        (Split(rows, rows[:0]), "Gram error on 200 rows of the dataset ({}, here {})"),
    ):
        # The objective says the contrary, and does not count.
        made = reported(worse, Compared(better, "base sobol", 2.0, 1.0), KERNEL, rows_of, Use(), lambda: None)
        of = rows_of.held_out if len(rows_of.held_out) else rows_of.learned
        figures = (f"{plain(one, of, Use()):.4g}" for one in (better, worse))
        assert made.warnings == ("told", f"base sobol alone has the smaller {words.format(*figures)}: take it")
        made = reported(better, Compared(worse, "base sobol", 1.0, 2.0), KERNEL, rows_of, Use(), lambda: None)
        assert made.warnings == ("told",)


def test_without_a_dataset_the_objective_decides_and_no_gram_error_is_told() -> None:
    one = sets(10)
    for end, warned in ((1.02, True), (1.005, False), (0.5, False)):
        made = reported(one, Compared(one, "base halton", 1.0, end), KERNEL, None, Use(), lambda: None)
        assert made.report is not None
        assert not any("gram" in name or "rows" in name for name in made.report)
        assert any("alone has the smaller box discrepancy (1, here 1.02)" in told for told in made.warnings) == warned
    made = reported(one, Compared(one, "base halton", 0.0, 1e-16), KERNEL, None, Use(), lambda: None)
    assert made.warnings == ("told",)


def test_a_difference_within_chance_does_not_warn() -> None:
    # Two sets of one law are as good as each other: on other rows either may be the better one.
    rng, warned, quiet = np.random.default_rng(11), 0, 0
    for seed in range(40):
        start, found = (sets(40, 2 * seed + i)._replace(weights=np.full(40, 1 / 40)) for i in range(2))
        few, many = rng.normal(size=(25, 3)), rng.normal(size=(400, 3))
        made = reported(found, Compared(start, "it", 0, 0), KERNEL, Split(few, few), Use(), lambda: None)
        is_worse = plain(found, many, Use()) > 1.02 * plain(start, many, Use())
        is_better = plain(found, many, Use()) < 0.98 * plain(start, many, Use())
        told = len(made.warnings) > 1
        assert made.report is not None
        assert not (told and is_better)
        warned += told and is_worse
        quiet += made.report["gram_error_held_out"] > made.report["gram_error_start_held_out"] and not told
    assert warned >= 5
    assert quiet >= 1


def test_what_is_worse_on_rows_learned_from_needs_no_many_others() -> None:
    rng = np.random.default_rng(2)
    worse, better, few = sets(30), sets(60), rng.normal(size=(6, 3))
    warned = {}
    for n in (6, 300):
        rows = Split(rng.normal(size=(n, 3)), few)
        made = reported(worse, Compared(better, "it", 0, 0), KERNEL, rows, Use(), lambda: None)
        assert made.report is not None
        assert made.report["gram_error_held_out"] > made.report["gram_error_start_held_out"]
        warned[n] = len(made.warnings) > 1
    assert warned == {6: False, 300: True}
