"""Box discrepancy of a map's set on boxes of several scales, compared with that of Monte Carlo frequencies."""

import math
from functools import partial
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, with_config
from typing_extensions import TypedDict

from app.core.arrays import blocks_of_entries
from app.core.datasets import column_ranges
from app.core.diagnostics.base import Diagnostic, Finding, GivenRows, Takes
from app.core.discrepancy import box_discrepancy
from app.core.discrepancy.box_discrepancy import Measured
from app.core.drawing import Curve, Drawing, Panel
from app.core.errors import InvalidInput
from app.core.kernels.base import Positive
from app.core.maps import FeatureMap, Gives
from app.core.model import QMC
from app.core.progress import Parts, Progress

# Per coordinate of a frequency, in float64: itself, and the values from which pairs are computed.
_BYTES_PER_COORDINATE = 64
# Per side of the box: itself, and the integrals over it.
_BYTES_PER_SIDE = 2500
# Entries of rows that are made float64 at a time.
_ENTRIES_PER_BLOCK = 1 << 20


class Scale(TypedDict):
    """Factor by which the sides of a box are stretched."""

    box_scale: Annotated[float, Field(description="The factor of the box.")]


class ScaleError(Scale, Measured):
    """Box discrepancy on one box, beside that of Monte Carlo frequencies."""


@with_config(use_attribute_docstrings=True)
class BoxErrors(TypedDict):
    """Box discrepancies of the frequencies and weights; for normalised features, the weights are scaled to sum to 1."""

    box: list[float]
    """Half the width of the box in each coordinate."""
    scales: list[ScaleError]
    """Errors for each scale, in the order of `box_scales`."""


class BoxDiscrepancy(Diagnostic):
    """Mean squared integration error over a box of differences: how well the set fits the kernel, without rows.

    Choose when:
        Use it to compare sets of frequencies for a product kernel over a region rather than on rows. Scales of 1/2 and
        1/4 say more about neighbours than the whole box, whose corners few differences reach.
    """

    kind = "box-discrepancy"
    takes = Takes.optional_rows
    needs = frozenset({Gives.frequencies})
    answer = BoxErrors
    draws = True
    source = f"{QMC}, section 4, theorems 7 and 12"

    box: Positive | Annotated[tuple[Positive, ...], Field(fail_fast=True)] | None = None
    """b_j, half the width of the box of differences; if a dataset is given, the ranges of its columns."""
    box_scales: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=20, fail_fast=True)] = (1.0, 0.5, 0.25)
    """Factors by which the box is scaled."""

    def check(self, feature_map: FeatureMap, rows: GivenRows) -> None:
        """Refuse a map without frequencies, and a box that is missing, given in two ways, or of another dimension."""
        feature_map.check_gives(Gives.frequencies)
        box_discrepancy.check_panels(feature_map.spec.input_dim)
        if (self.box is None) != bool(rows):
            raise InvalidInput("expected box, or a dataset or vectors to take it from", "/box")
        box_discrepancy.product_kernel(feature_map.kernel, feature_map.spec.input_dim)
        self._box(feature_map, rows)

    def memory_bytes(self, feature_map: FeatureMap, rows: GivenRows) -> int:
        """Return the memory of the frequencies and of the integrals over the sides of a box."""
        d = feature_map.spec.input_dim
        return _BYTES_PER_COORDINATE * feature_map.n_frequencies * d + _BYTES_PER_SIDE * d

    def run(self, feature_map: FeatureMap, rows: GivenRows, progress: Progress, threads: int) -> Finding[BoxErrors]:
        """Measure box discrepancies of the map's frequencies and weights on the box times each scale.

        Raises InvalidInput if the kernel is not a product, or a box is too wide.
        """
        box = self._box(feature_map, rows)
        parts = Parts(progress)
        pause = partial(progress.checkpoint, parts.restored_state)
        frequencies, weights, kernel, _ = feature_map.spectrum(pause)
        s = len(weights)

        def at(scale: float, within: Progress) -> ScaleError:
            with np.errstate(over="ignore"):  # an infinite box is refused later
                scaled = scale * box
            found = box_discrepancy.BoxDiscrepancy(kernel, scaled, threads).measure(frequencies, weights, within)
            return {"box_scale": scale, **found}

        def tell(step: int, done: int) -> None:
            progress.report(step * s + done, len(self.box_scales) * s)

        scales = [
            parts.once(repr(scale), partial(at, scale), partial(tell, step))
            for step, scale in enumerate(self.box_scales)
        ]
        answer = BoxErrors(box=box.tolist(), scales=scales)
        return Finding(answer, drawing(answer))

    def _box(self, feature_map: FeatureMap, rows: GivenRows) -> NDArray[np.float64]:
        """Return b, half the width of the box, (d,): as given, or the largest differences of the prepared rows."""
        d = feature_map.spec.input_dim
        if self.box is None:
            vectors = rows["vectors"]
            if not vectors.shape[0]:
                raise InvalidInput("expected rows to take a box from, got none", "/vectors")
            blocks = [*blocks_of_entries(vectors, _ENTRIES_PER_BLOCK)]
            ranges = [
                column_ranges(feature_map.compared_exactly(vectors[block], "/vectors", block.start)) for block in blocks
            ]
            return np.asarray(np.max(ranges, axis=0)[1] - np.min(ranges, axis=0)[0], np.float64)
        box = np.array(np.broadcast_to(self.box, d) if np.ndim(self.box) == 0 else self.box, np.float64)
        if len(box) != d:
            raise InvalidInput(f"box has {len(box)} entries; input_dim {d} wants as many, or one number", "/box")
        return box


def drawing(answer: BoxErrors) -> Drawing:
    """Plot root mean squared errors against the factor of the box: of the map, and of Monte Carlo on average."""
    found = sorted(answer["scales"], key=lambda one: one["box_scale"])
    labels: dict[Literal["normalized", "expected_monte_carlo"], str] = {
        "normalized": "this map",
        "expected_monte_carlo": "Monte Carlo, expected",
    }
    curves, untold = [], 0
    for colour, (member, label) in zip((0, None), labels.items(), strict=True):
        # A discrepancy as small as rounding errors may be 0 or less, and has no logarithm.
        points = [(one["box_scale"], math.sqrt(one[member])) for one in found if one[member] > 0]
        untold += len(found) - len(points)
        if points:
            x, y = zip(*points, strict=True)
            curves.append(Curve(x, y, label, colour, "joined" if colour == 0 else "dashed"))
    box = [f"{side:.3g}" for side in answer["box"][:4]]
    sides = ", ".join(box) + ", …" * (len(answer["box"]) > len(box))
    panel = Panel(
        curves,
        x_label="factor of the box",
        y_label="√N, root mean squared error over the box",
        title=f"box of half widths {sides}" + (f"; {untold} too small to tell" if untold else ""),
        x_scale="log2",
        y_scale="log" if curves else "linear",
    )
    return Drawing([[panel]])
