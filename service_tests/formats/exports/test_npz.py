import functools
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service_tests.cases import each
from service_tests.core.combinations import Fields, rows
from service_tests.core.specs import spec
from service_tests.formats.exports.taken import features, taken, written

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "take-a-map-away.md"
BLOCKS = [part.removeprefix("python\n") for part in PAGE.read_text().split("```") if part.startswith("python\n")]
GAUSSIAN = {"kind": "gaussian", "length_scale": 1.5}


def script(first: str) -> str:
    """The lines of a block of the page, from the one on that begins so."""
    (found,) = (block for block in BLOCKS if f"\n{first}" in f"\n{block}")
    return found[f"\n{found}".index(f"\n{first}") :]


def computed(of: Any, lines: str, **given: Any) -> dict[str, Any]:
    """The variables that lines of the page leave, `m` being the file."""
    with np.load(io.BytesIO(of), allow_pickle=False) as m:
        names = {"np": np, "functools": functools, "m": m, **given}
        exec(lines, names)
    return names


COSINES = script("x = rows")
FORMS = {
    "cos_sin": COSINES,
    "phase": COSINES.rpartition("features = ")[0] + 'features = np.cos(phases + m["offsets"]) * m["amplitudes"]',
    "complex": COSINES.rpartition("features = ")[0] + 'features = np.exp(-1j * phases) * m["amplitudes"]',
}


@each("form", FORMS)
@each("given", [{}, {"input": {"center": [9.0, 0, 1, 0], "scale": 2.0}}])
def test_numpy_alone_computes_features_by_the_lines_of_the_page(form: str, given: Fields) -> None:
    assert len(COSINES.splitlines()) <= 5
    assert form == "cos_sin" or FORMS[form].rpartition("features = ")[2] in PAGE.read_text()
    away, here = taken(spec(form=form, **given))
    x = rows(20, 1)
    found = computed(written(away, "npz"), FORMS[form], rows=x)["features"]
    np.testing.assert_allclose(found, features(here, x), rtol=0, atol=1e-6)
    assert np.abs(found[0] - found[1]).max() > 0.01


def test_the_lines_for_structured_maps_give_their_phases() -> None:
    away, here = taken(spec(input_dim=20, s=70, sampler={"kind": "structured_orthogonal"}))
    x = rows(9, 1, 20)
    phases = computed(written(away, "npz"), script("blocks, _, size"), rows=x)["phases"]
    np.testing.assert_allclose(phases, x @ here.arrays["frequencies"].T, rtol=0, atol=1e-5)


def test_the_lines_for_landmarks_give_their_features() -> None:
    landmarks = {"kind": "uploaded_landmarks", "landmarks": rows(30, 3).tolist()}
    away, here = taken(spec(sampler=landmarks, dtype="float64"))
    x = rows(9, 1)
    found = computed(written(away, "npz"), script("differences ="), rows=x, length_scale=1.5)["features"]
    np.testing.assert_allclose(found, features(here, x), rtol=0, atol=1e-9)


@pytest.mark.parametrize("p", [1.0, 2.5])
def test_the_lines_for_hashes_give_their_codes(p: float) -> None:
    away, here = taken(spec(kernel={"kind": "gmm", "p": p}, sampler={"kind": "gcws"}, dtype="float64", s=200))
    x = rows(9, 1)
    x[0, 1] = 0
    for row, codes in zip(x, here.codes(x), strict=True):
        assert (computed(written(away, "npz"), script("i = np.flatnonzero"), row=row, p=p)["codes"] == codes).all()
