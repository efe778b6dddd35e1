"""The picture of collisions: every pair once for each way to write codes, and errors beside theory."""

import numpy as np
import pytest

from app.core.diagnostics.collisions import Collisions
from app.core.drawing import Curve, Density, Drawing, Panel
from app.core.hashing.encodings import Encoder, Encoding
from app.pictures.figures import svg
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


def test_errors_by_the_kernel_stand_beside_what_theory_has_for_full_samples() -> None:
    made, x = hashing(input_dim=D, s=S), data()
    finding = Collisions().run(made, {"vectors": x})
    *ways, theory = panels(finding.drawing)[3].marks
    assert [mark.label for mark in ways if isinstance(mark, Curve)] == [
        "full samples (i*, t*)",
        "0-bit, i* alone",
        "8 bits of index",
    ]
    assert isinstance(theory, Curve)
    g = np.array(theory.x)
    np.testing.assert_allclose(theory.y, np.sqrt(g * (1 - g) / S))
    full = ways[0]
    assert isinstance(full, Curve)
    assert 0.5 < np.mean(full.y) / np.mean(theory.y) < 2


def test_with_gamma_the_rbf_kernel_has_a_panel() -> None:
    made, x = hashing(input_dim=D, s=S), data()
    finding = Collisions(gamma=2.0).run(made, {"vectors": x})
    *_, rbf = panels(finding.drawing)
    assert rbf.x_label == "exact RBF kernel"
    assert finding.answer["rbf"] is not None
    assert f"bias {finding.answer['rbf']['bias']:.2g}" in (rbf.title or "")


def test_a_picture_without_estimates_says_so() -> None:
    made, x = hashing(input_dim=D, s=S), np.abs(data())
    finding = Collisions(bits=1, bits_of="index").run(made, {"vectors": x})
    drawing = finding.drawing
    assert panels(drawing)[2].title == "1 bit of index: no estimate"
    assert drawing is not None
    assert svg(drawing).startswith(b"<?xml")
