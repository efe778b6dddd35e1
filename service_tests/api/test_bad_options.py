"""Options that have no meaning for a map or an encoding are refused by name."""

import httpx
import pytest

from service_tests.cases import each
from service_tests.checks import assert_problem, post
from service_tests.expected_codes import X

pytestmark = [pytest.mark.usefixtures("standing"), pytest.mark.usefixtures("nothing_stored")]

VECTORS = {"vectors": X.tolist()}
PAIRED = {"x": X.tolist(), "y": X.tolist()}

MEANINGLESS = [
    *((f"encoding={encoding}&bits=8", "bits") for encoding in ("pairs", "zero_bit")),
    *(
        (f"encoding={encoding}&bits={bits}", "bits")
        for encoding in ("b_bit", "packed", "one_hot")
        for bits in ("0", "17", "-1", "64", str(1 << 70), "8.5", "eight", "", "true")
    ),
    *((f"encoding=fingerprint&bits={bits}", "bits") for bits in (0, 8, 16, 33, 128)),
    *(
        (f"encoding={encoding}&bits_of={bits_of}", "bits_of")
        for encoding in ("pairs", "zero_bit", "fingerprint")
        for bits_of in ("index", "mixed_index", "pair")
    ),
    ("encoding=b_bit&bits_of=hash", "bits_of"),
    ("encoding=b_bit&bits_of=", "bits_of"),
    *((f"encoding={encoding}", "encoding") for encoding in ("two_bit", "B_BIT", "", "pairs,zero_bit")),
    ("encoding=b_bit&bit=8", "bit"),
]


@each(("query", "parameter"), MEANINGLESS)
@each(("path", "body"), [("codes", VECTORS), ("similarity", PAIRED)])
def test_an_option_without_meaning_is_refused_by_name(
    http: httpx.Client, path: str, body: object, query: str, parameter: str
) -> None:
    document = assert_problem(http, post(http, f"standing-gmm/{path}?{query}", body), 422, "invalid-input")
    assert [error["parameter"] for error in document["errors"]] == [parameter]
    assert "pointer" not in document["errors"][0]


@each(
    "last",
    [
        "soon",
        "1-2-3",
        "18446744073709551616",
        "9" * 5000,
    ],
)
def test_what_is_no_id_of_an_event_is_refused(http: httpx.Client, last: str) -> None:
    answer = http.get(f"/v1/jobs/{'0' * 24}/events", headers={"Last-Event-ID": last})
    assert assert_problem(http, answer, 422, "invalid-input")["errors"][0]["parameter"] == "last-event-id"
