"""The picture of advice: recall against the rows looked at, recall by codes alone, and the similarities."""

from collections.abc import Sequence

import numpy as np

from app.core.arrays import Matrix
from app.core.drawing import Curve, Drawing, Histogram, Mark, Panel, Star
from app.core.indexes.answer import Advice, BandCurve, Banding
from app.core.indexes.true_neighbours import Neighbours

# Curves of bands that are drawn: those near the best.
_MOST_CURVES = 6
_BINS = 50


def drawing(answer: Advice, near: Neighbours, recalls: Sequence[Matrix], codes: Sequence[tuple[int, int]]) -> Drawing:
    """The picture.

    Args:
        answer: the advice.
        near: the neighbours that it is of.
        recalls: for each of the `codes`, the recall by how many rows are compared exactly, (depth,).
        codes: hashes of a row, and bits of each.
    """
    panels = [[_bands(answer)], [_scans(answer, recalls, codes), _similarities(near)]]
    best = answer["best"]
    called = "scan" if best == "scan" else f"{best['bands']} bands of {best['rows_per_band']} rows"
    return Drawing(panels, row_height=4.0, title=f"{answer['rows']:,} rows, {answer['k']} nearest: {called}")


def _bands(answer: Advice) -> Panel:
    """Recall against the share of rows looked at; a curve goes through growing numbers of bands."""
    marks: list[Mark] = []
    least = 1 / answer["rows"]
    for colour, curve in enumerate(_drawn(answer)):
        for found, style, called in (
            (curve["checked"], "markers", f"{curve['rows_per_band']} rows a band"),
            (curve["predicted"], "line", ""),
        ):
            x, y = [max(least, one["share"]) for one in found], [one["recall"] for one in found]
            marks.append(Curve(x, y, called, colour, style, marker=colour))  # type: ignore[arg-type]
    share = answer["candidates"] / answer["rows"]
    marks.append(Curve([share, share], [0.0, 1.0], "candidates that are allowed", None, "dashed"))
    marks.append(Curve([least, 1.0], [answer["recall"]] * 2, "recall that is wanted", None, "line"))
    best = answer["best"]
    if best != "scan":
        one = next(one for one in answer["bandings"] if one["rows_per_band"] == best["rows_per_band"])
        marks.append(Star(one["checked"]["share"], one["checked"]["recall"], f"best: {best['bands']} bands"))
    return Panel(
        marks,
        x_label="share of rows looked at",
        y_label="recall",
        title="bands: predicted (lines) and checked (markers)",
        x_scale="log",
        y_range=(0.0, 1.03),
        legend_beside=True,
    )


def _drawn(answer: Advice) -> list[BandCurve]:
    """The curves of the bands that come nearest to what is wanted."""

    def behind(one: Banding) -> tuple[bool, float]:
        return one["checked"]["recall"] < answer["recall"], one["checked"]["share"]

    best = sorted(answer["bandings"], key=behind)[:_MOST_CURVES]
    wanted = {one["rows_per_band"] for one in best}
    return [curve for curve in answer["curves"] if curve["rows_per_band"] in wanted]


def _scans(answer: Advice, recalls: Sequence[Matrix], codes: Sequence[tuple[int, int]]) -> Panel:
    """Recall of scans by how many rows are compared exactly, for all hashes of each width and fewer of the widest."""
    k = answer["k"]
    marks: list[Mark] = []
    for (s, bits), recall in zip(codes, recalls, strict=True):
        if s == answer["s"] or bits == answer["bits"]:
            places = np.unique(np.geomspace(k, len(recall), 20).round().astype(int))
            called = f"{s} × {bits} bit{'s' * (bits > 1)}"
            colour = len(marks)
            marks.append(Curve(places.tolist(), recall[places - 1].tolist(), called, colour, "joined", marker=colour))
    marks.append(Curve([float(k), float(len(recalls[0]))], [answer["recall"]] * 2, "", None, "line"))
    return Panel(
        marks,
        x_label="rows compared exactly, those whose codes agree most",
        y_label="recall",
        title="scans of codes",
        x_scale="log2",
    )


def _similarities(near: Neighbours) -> Panel:
    """How similar neighbours are, and all rows."""
    of_neighbours, edges = np.histogram(near.similarities, _BINS, (0.0, 1.0))
    of_pairs = near.histogram.reshape(_BINS, -1).sum(axis=1)
    marks = [
        Histogram(edges.tolist(), (of_pairs / of_pairs.sum()).tolist(), "all rows", None),
        Histogram(edges.tolist(), (of_neighbours / of_neighbours.sum()).tolist(), "nearest rows", 0, filled=False),
    ]
    return Panel(marks, x_label="similarity to a query", y_label="share of pairs", title="similarities")
