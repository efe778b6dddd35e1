"""Datasets named in place of rows."""

from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.cases import each
from service_tests.checks import assert_problem, post, put_dataset

# Without a row that is all zero, so that it can be hashed too.
ROWS = [[0.25 * i + 1, (-1) ** i * 0.5, i % 7 - 3] for i in range(60)]
SPARSE = {
    "input_dim": 3,
    "vectors": [{"indices": [0, 2], "values": [i + 1, 0.5]} for i in range(20)],
}


@pytest.fixture(scope="module")
def points(http: httpx.Client, standing: dict[str, str]) -> dict[str, str]:
    """Names of datasets."""
    del standing
    given: dict[str, Any] = {
        "points": ROWS,
        "single": np.array(ROWS, np.float32),
        "sparse-points": SPARSE,
        "narrow": [[1, 2]],
        "zeros": [[0, 0, 0]],
        "far": [[1e300, 0, 0]],
    }
    for name, rows in given.items():
        assert put_dataset(http, f"standing-{name}", rows).status_code in (200, 201)
    return {name: f"standing-{name}" for name in given}


def rows_of(title: str) -> Any:
    return SPARSE["vectors"] if title == "sparse-points" else ROWS


CALLS = {
    "cos_sin": ["transform", "kernel", "kernel?exact=true"],
    "normalized": ["transform"],
    "complex": ["transform"],
    "gmm": ["codes", "codes?encoding=pairs", "kernel", "similarity", "similarity?encoding=b_bit&bits=8&gamma=1"],
}


@each("title", ["points", "sparse-points", "single"])
@each(("form", "call"), [(form, call) for form, calls in CALLS.items() for call in calls])
def test_a_dataset_serves_as_its_rows_do(
    http: httpx.Client, standing: dict[str, str], points: dict[str, str], title: str, form: str, call: str
) -> None:
    named: Any = {"dataset": points[title]}
    rows = rows_of(title)
    if call.startswith("similarity"):
        bodies = [{"x": rows, "y": rows[::-1]}, {"x": named, "y": rows[::-1]}]
    elif call.startswith("kernel"):
        bodies = [{"x": rows, "y": rows[:5]}, {"x": named, "y": rows[:5]}]
    else:
        bodies = [{"vectors": rows}, {"vectors": named}]
    posted, by_name = (post(http, f"{standing[form]}/{call}", body) for body in bodies)
    assert posted.status_code == by_name.status_code == 200, by_name.text
    assert by_name.json() == posted.json()
    assert by_name.content == posted.content


@each(
    ("reference", "status", "slug", "at"),
    [
        ({"dataset": "no-such-dataset"}, 404, "dataset-not-found", None),
        ({"dataset": "standing-points", "rows": 61}, 422, "invalid-input", "/rows"),
        ({"dataset": "standing-points", "rows": "5"}, 422, "invalid-input", "/rows"),
        ({"dataset": "standing-points", "sed": 1}, 422, "invalid-input", "/sed"),
        ({"dataset": "not a name"}, 422, "invalid-input", "/dataset"),
        ({"rows": 5}, 422, "invalid-input", ""),
        ({"dataset": "standing-narrow"}, 422, "invalid-input", ""),
        ({"dataset": "standing-far"}, 422, "invalid-input", ""),
    ],
)
@each(
    ("form", "call", "member"),
    [
        ("cos_sin", "transform", "vectors"),
        ("cos_sin", "kernel", "x"),
        ("cos_sin", "kernel", "y"),
        ("gmm", "codes", "vectors"),
        ("gmm", "similarity", "x"),
        ("gmm", "similarity", "y"),
    ],
)
@pytest.mark.usefixtures("points", "nothing_stored")
def test_a_bad_reference_is_refused_at_its_place(
    http: httpx.Client,
    standing: dict[str, str],
    reference: Any,
    status: int,
    slug: str,
    at: str | None,
    form: str,
    call: str,
    member: str,
) -> None:
    if call == "similarity" and "dataset" not in reference:
        return  # an object without it is read as one-hot codes there
    others = {"x": [[1, 2, 3]]} if member == "y" else {"y": [[1, 2, 3]]} if call == "similarity" else {}
    answer = post(http, f"{standing[form]}/{call}", {member: reference, **others})
    pointer = None if at is None else f"/{member}{at}"
    assert_problem(http, answer, status, slug, pointer)
