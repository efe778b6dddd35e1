"""The picture of Gram errors."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from app.pictures.style import COLOURS, Picture


def gram_picture(finding: Mapping[str, Any]) -> bytes:
    """A row for each estimator: the histogram of its errors, and exact kernel against estimate.

    Args:
        finding: what `gram_errors` found.
    """
    pictures = finding["pictures"]
    picture = Picture(rows=len(pictures), columns=2, height=3.4)
    with picture as panels:
        for (name, drawn), colour, (histogram, scatter) in zip(pictures.items(), COLOURS, panels, strict=False):
            error = finding["estimators"][name]["relative_frobenius"]
            edges, counts = np.array(drawn["edges"]), np.array(drawn["counts"])
            histogram.stairs(counts, edges, fill=True, color=colour)
            histogram.set_yscale("log")
            histogram.set_xlabel("estimate − exact" if finding["form"] != "complex" else "|estimate − exact|")
            histogram.set_ylabel("pairs of rows")
            histogram.set_title(f"{name}: relative Frobenius error {error:.3g}, {finding['rows']} rows")
            exact, estimate = drawn["exact"], drawn["estimate"]
            scatter.plot(exact, estimate, ".", color=colour, markersize=3, alpha=0.6)
            ends = [min(exact), max(exact)]
            scatter.plot(ends, ends, linewidth=1, color="#808080")
            scatter.set_xlabel("exact kernel")
            scatter.set_ylabel("estimate")
            scatter.set_title(f"{name}: {len(exact)} pairs")
        return picture.svg()
