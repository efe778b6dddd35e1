"""What callers may expect of every diagnostic; a new one needs a run here, and is told so by the first test."""

from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import TypeAdapter

from app.core.diagnostics import DIAGNOSTICS
from app.core.maps import FeatureMap
from app.core.progress import Progress
from service_tests.cases import each
from service_tests.core.combinations import rows
from service_tests.core.specs import fourier, hashing

X, Y = rows(30, 1, dtype="float32"), rows(30, 2, dtype="float32")
ROWS, PAIRS = {"vectors": X}, {"x": X, "y": Y}
RUNS: list[tuple[str, dict[str, Any], FeatureMap, Mapping[str, Any]]] = [
    ("gram", {"seeds": 2, "estimators": ["map", "cv2"]}, fourier(), ROWS),
    ("gram", {"seeds": 1}, fourier(), ROWS),
    ("gram", {}, hashing(), ROWS),
    ("box-discrepancy", {"box": 1.5}, fourier(), {}),
    ("box-discrepancy", {"box_scales": [1e-300, 1]}, fourier(), ROWS),
    ("max-error", {"diameters": [0.5, 1], "samples": 50}, fourier(), {}),
    ("variance", {"repeats": 3}, fourier(), PAIRS),
    ("variance", {"repeats": 3, "gamma": 2}, hashing(), PAIRS),
    ("variance", {"repeats": 3, "correlations": [0.5]}, hashing(), {}),
    ("collisions", {"bits": 1}, hashing(), ROWS),
    ("collisions", {"gamma": 2}, hashing(), ROWS),
]


def test_every_diagnostic_is_run_here() -> None:
    assert {kind for kind, *_ in RUNS} == set(DIAGNOSTICS), "add a run of the new diagnostic to RUNS"


@each(("kind", "options", "made", "given"), RUNS)
def test_the_answer_is_of_the_type_that_it_is_said_to_be(
    kind: str, options: dict[str, Any], made: FeatureMap, given: Mapping[str, Any]
) -> None:
    written = orjson.dumps(options)
    diagnostic = DIAGNOSTICS[kind].model_validate_json(written)
    assert DIAGNOSTICS[kind].model_validate_json(diagnostic.model_dump_json()) == diagnostic, "as a job gets it"
    diagnostic.check(made, given)
    assert diagnostic.memory_bytes(made, given) > 0
    found = diagnostic.run(made, given, Progress(), 1)
    assert (found.drawing is not None) == diagnostic.draws
    answer = orjson.dumps(found.answer)
    # Strict: every member is there, and of its type; and none is there that is not declared.
    again: Any = TypeAdapter(diagnostic.answer).validate_json(answer, strict=True)
    assert orjson.dumps(again) == answer
    assert diagnostic.run(made, given, Progress(), 1) == found
    assert diagnostic.run(made, given, Progress(), 3) == found
