"""The picture of a ranking: what is squeezed by nothing, and the winner."""

from collections.abc import Sequence
from typing import Any

from app.core.drawing import Beyond, Curve, Panel, Star
from app.core.recommendations.drawing import drawing
from app.core.recommendations.trials import Ranking
from app.pictures.figures import svg

GAUSSIAN = {"kind": "gaussian", "length_scale": 5.0}
HALTON: dict[str, Any] = {"kind": "halton"}
SOBOL: dict[str, Any] = {"kind": "sobol"}
SIZES: list[tuple[float, ...]] = [(0.0, 0.0), (0.0, 0.1), (0.0, 1e-300), (0.5, 1e-9), (1e9, 0.0)]


def ranking(
    trials: Sequence[tuple[dict[str, Any], int, float]], scored: bool = False, kernels: Sequence[Any] = (GAUSSIAN,)
) -> Ranking:
    """A ranking of trials, by sampler, columns and error or score; the first is the best."""
    ranked: list[Any] = [
        {
            "spec": {"kernel": kernel, "sampler": sampler, "s": columns // 2},
            "n_output": columns,
            "error_mean": value,
            "error_sd": value / 10,
            "score_mean": value if scored else None,
            "score_sd": abs(value) / 10 if scored else None,
        }
        for kernel in kernels
        for sampler, columns, value in trials
    ]
    return Ranking(
        rows=200,
        reported_rows=100,
        learned_rows=None,
        target_reached=None,
        ranked=ranked,
        best=ranked[0]["spec"],
        baselines=[],
        skipped=[],
        notes=[],
    )


def panel_of(answer: Ranking) -> Panel:
    ((panel,),) = drawing(answer, "posted rows").rows
    return panel


def test_errors_that_would_squeeze_the_others_are_arrows_that_say_them() -> None:
    good = [(HALTON, 64, 0.2), (HALTON, 128, 0.1), (SOBOL, 64, 0.3), (SOBOL, 128, 0.15)]
    panel = panel_of(ranking([*good, ({"kind": "sparse_grid", "level": 1}, 66, 37.0)]))
    assert panel.y_scale == "log"
    assert panel.y_range is not None
    low, high = panel.y_range
    assert 0.05 < low < 0.1 < 0.3 < high < 0.5
    (arrow,) = (mark for mark in panel.marks if isinstance(mark, Beyond))
    assert (arrow.above, arrow.says) == (True, "37")
    drawn = [y for mark in panel.marks if isinstance(mark, Curve) for y in mark.y]
    assert sorted(drawn) == sorted(value for *_, value in good)
    assert b">37<" in svg(drawing(ranking([*good, ({"kind": "sparse_grid", "level": 1}, 66, 37.0)]), "x"))


def test_the_winner_has_a_star_even_where_it_is_far_better_than_all_others() -> None:
    others = [(HALTON, 64, 0.2), (SOBOL, 64, 0.3), (SOBOL, 128, 0.15)]
    panel = panel_of(ranking([({"kind": "dense_grid", "points_per_dim": 8}, 64, 1e-9), *others]))
    (star,) = (mark for mark in panel.marks if isinstance(mark, Star))
    assert star.label == "best: dense_grid 8"
    assert panel.y_range is not None
    assert star.y == panel.y_range[0] > 0.05
    (arrow,) = (mark for mark in panel.marks if isinstance(mark, Beyond))
    assert (arrow.above, arrow.says, arrow.x) == (False, "1e-09", star.x)


def test_of_many_curves_the_best_are_drawn_and_the_title_says_so() -> None:
    trials = [({"kind": "sobol", "skip": k}, 64, 0.1 * (k + 1)) for k in range(15)]
    panel = panel_of(ranking(trials))
    curves = [mark for mark in panel.marks if isinstance(mark, Curve)]
    assert sorted(y for mark in curves for y in mark.y) == [value for *_, value in trials[:12]]
    assert panel.title is not None
    assert panel.title.endswith(", the best 12 of 15 curves")
