"""Options that have no meaning for a map or an encoding are refused by name."""

import httpx
import pytest

from service_tests.cases import each
from service_tests.checks import assert_problem, post
from service_tests.expected_codes import ENCODINGS, X

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


@pytest.mark.parametrize(("query", "parameter"), [("bits=8", "bits"), ("bits_of=pair", "bits_of")])
def test_the_default_encoding_has_no_bits_either(http: httpx.Client, query: str, parameter: str) -> None:
    document = assert_problem(http, post(http, f"standing-gmm/codes?{query}", VECTORS), 422, "invalid-input")
    assert document["errors"][0]["parameter"] == parameter


@pytest.mark.parametrize("query", ["bits=8", "bits_of=pair", "bits=8&bits_of=index"])
def test_similarity_takes_no_bits_of_an_encoding_that_was_not_said(http: httpx.Client, query: str) -> None:
    document = assert_problem(http, post(http, f"standing-gmm/similarity?{query}", PAIRED), 422, "invalid-input")
    assert document["errors"][0]["parameter"] == "encoding"


@pytest.mark.parametrize("query", ["encoding=packed", "encoding=packed&bits=1", "encoding=fingerprint"])
def test_encodings_without_room_for_a_mark_refuse_it(http: httpx.Client, query: str) -> None:
    for vectors in ([[0, 0, 0]], X.tolist(), []):
        answer = post(http, f"standing-gmm/codes?{query}&on_zero=mark", {"vectors": vectors})
        document = assert_problem(http, answer, 422, "invalid-input")
        assert document["errors"][0]["parameter"] == "on_zero"


@each("encoding", ENCODINGS)
def test_zero_rows_are_refused_in_every_encoding(http: httpx.Client, encoding: str) -> None:
    body = {"vectors": [[1, 2, 3], [0, 0, 0], [0, 0, 0]]}
    answer = post(http, f"standing-gmm/codes?encoding={encoding}", body)
    document = assert_problem(http, answer, 422, "invalid-input", "/vectors/1")
    assert "row 1, 2" in document["detail"]


@each("gamma", ["0", "-1", "nan", "inf", "1e999", "", "wide"])
def test_gamma_is_a_positive_number(http: httpx.Client, gamma: str) -> None:
    document = assert_problem(http, post(http, f"standing-gmm/similarity?gamma={gamma}", PAIRED), 422, "invalid-input")
    assert document["errors"][0]["parameter"] == "gamma"


def test_gamma_is_for_the_power_one(http: httpx.Client) -> None:
    answer = post(http, "standing-centered/similarity?gamma=2", PAIRED)
    document = assert_problem(http, answer, 422, "invalid-input")
    assert document["errors"][0]["parameter"] == "gamma"
    assert "2.0" in document["detail"]


def test_similarity_has_no_on_zero(http: httpx.Client) -> None:
    document = assert_problem(http, post(http, "standing-gmm/similarity?on_zero=mark", PAIRED), 422, "invalid-input")
    assert document["errors"][0]["parameter"] == "on_zero"


@each(
    "last",
    [
        "soon",
        "-5",
        "5-",
        "1-2-3",
        "9" * 23 + "-5",
        "5-18446744073709551616",
        "18446744073709551616",
        "18446744073709551615-18446744073709551615",
        "9" * 5000,
    ],
)
def test_what_is_no_id_of_an_event_is_refused(http: httpx.Client, last: str) -> None:
    answer = http.get(f"/v1/jobs/{'0' * 24}/events", headers={"Last-Event-ID": last})
    assert assert_problem(http, answer, 422, "invalid-input")["errors"][0]["parameter"] == "last-event-id"
