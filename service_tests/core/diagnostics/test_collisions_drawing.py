"""The picture of collisions: every pair once for each way to write codes, and errors beside theory."""

import numpy as np
import pytest

from app.core.diagnostics.collisions import Collisions
from app.core.drawing import Curve, Density, Drawing, Panel
from app.core.hashing.encodings import Encoder, Encoding
from service_tests.core.diagnostics.test_collisions import D, N, S, data
from service_tests.core.specs import hashing


def panels(drawing: Drawing | None) -> list[Panel]:
    assert drawing is not None
    return [panel for row in drawing.rows for panel in row]


def test_every_pair_that_has_an_estimate_is_drawn_once_for_each_kind_of_codes() -> None:
    made, x = hashing(input_dim=D, s=S), data()
    # Of rows of one sign, one bit of the index says nothing.
    one_sign = int((made.codes(x, Encoder(Encoding.zero_bit)) % 2 == 0).all(axis=1).sum())
    assert one_sign > 1
    finding = Collisions(bits=1, bits_of="index").run(made, {"vectors": x})
    full, zero_bit, one_bit, _ = panels(finding.drawing)
    for panel, member in ((full, "full"), (zero_bit, "zero_bit"), (one_bit, "b_bit")):
        density, diagonal = panel.marks
        assert isinstance(density, Density)
        assert isinstance(diagonal, Curve)
        assert diagonal.x == diagonal.y
        unknown = one_sign * (one_sign - 1) // 2 if member == "b_bit" else 0
        counts = np.array(density.counts)
        assert counts.sum() == N * (N - 1) // 2 - unknown
        of = finding.answer[member]  # type: ignore[literal-required]
        middles = (np.array(density.y_edges[1:]) + density.y_edges[:-1]) / 2
        half = (density.y_edges[1] - density.y_edges[0]) / 2
        assert (counts.sum(axis=1) @ middles) / counts.sum() == pytest.approx(of["mean"], abs=half)
        assert f"bias {of['bias']:.2g}" in (panel.title or "")
