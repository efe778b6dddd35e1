"""Specs that are refused, each at the place of the mistake."""

import json
from typing import Any

import httpx
import pytest

from service_tests.cases import each
from service_tests.checks import assert_problem, put

pytestmark = pytest.mark.usefixtures("nothing_stored")

SOBOL = {"kind": "sobol"}
GOOD: dict[str, Any] = {
    "input_dim": 3,
    "kernel": {"kind": "gaussian", "length_scale": 1.5},
    "sampler": SOBOL,
    "s": 16,
}
MATCHED = {"kind": "moment_matching", "base": SOBOL}


def with_(**changes: Any) -> dict[str, Any]:
    return GOOD | changes


def without(field: str) -> dict[str, Any]:
    return {name: value for name, value in GOOD.items() if name != field}


def gaussian(**fields: Any) -> dict[str, Any]:
    return with_(kernel={"kind": "gaussian", **fields})


NOT_A_SPEC: dict[str, Any] = {
    "empty body": b"",
    "malformed": b'{"input_dim": 3,',
    "invalid UTF-8": b'{"input_dim": "\xff"}',
    "lone surrogate": b'{"input_dim": "\\ud800"}',
    "deep nesting": b'{"kernel":' * 100_000,
    "an array": [],
}

WRONG_FIELD = [
    (with_(sead=7), "/sead"),
    (with_(**{"a/b~c": 7}), "/a~1b~0c"),
    (gaussian(length_scale=1, un=2), "/kernel/un"),
    (with_(sampler={"kind": "sobol", "skip": 1}), "/sampler/skip"),
    (with_(kernel={"kind": "gausian", "length_scale": 1}), "/kernel/kind"),
    (with_(sampler={"kind": "soboll"}), "/sampler/kind"),
    (with_(sampler={"kind": "moment_matching", "base": MATCHED}), "/sampler/base/kind"),
    (without("kernel"), "/kernel"),
    (without("s"), "/s"),
    (with_(kernel={"kind": "laplacian"}), "/kernel/length_scale"),
    (with_(form="sin_cos"), "/form"),
    (with_(dtype="float16"), "/dtype"),
    (with_(normalize=1), "/normalize"),
]
COUNTS: list[Any] = ["16", 16.0, 16.5, True, None, [], {}, 0, -1, 1 << 25, 10**30]
SCALES: list[Any] = [0, -1, "1", None, True, {}, float("nan"), float("inf"), [], [1, 2], [1, 2, 3, 4], 1e-200]
ENTRIES: list[Any] = [0, -1, "1", None, [1]]
WRONG_NUMBER = [
    *((with_(s=value), "/s") for value in COUNTS),
    *((with_(input_dim=value), "/input_dim") for value in ("3", 3.0, 0, -3, 1 << 40)),
    *((with_(seed=value), "/seed") for value in (-1, 1 << 64, 1.0, "7")),  # null is drawn
    *((gaussian(length_scale=value), "/kernel/length_scale") for value in SCALES),
    *((gaussian(length_scale=[1, value, 1]), "/kernel/length_scale/1") for value in ENTRIES),
    (gaussian(sigma=0), "/kernel/sigma"),
    (gaussian(gamma=-0.5), "/kernel/gamma"),
    (with_(kernel={"kind": "gmm", "p": 0}, sampler={"kind": "gcws"}), "/kernel/p"),
    (with_(kernel={"kind": "gmm", "center": [1, 2]}, sampler={"kind": "gcws"}), "/kernel/center"),
    (with_(kernel={"kind": "gmm", "center": 1}, sampler={"kind": "gcws"}), "/kernel/center"),
    (with_(sampler={"kind": "halton", "skip": -1}), "/sampler/skip"),
]
WITHOUT_MEANING = [
    (gaussian(), "/kernel"),
    (gaussian(sigma=1, gamma=0.5), "/kernel"),
    (gaussian(length_scale=1, sigma=1), "/kernel"),
    (gaussian(sigma=None), "/kernel"),
    (with_(kernel={"kind": "gmm"}), "/sampler/kind"),
    (with_(sampler={"kind": "gcws"}), "/sampler/kind"),
    (with_(kernel={"kind": "gmm"}, sampler={"kind": "gcws"}, form="phase"), "/form"),
    (with_(kernel={"kind": "gmm"}, sampler={"kind": "gcws"}, normalize=True), "/normalize"),
    (with_(kernel={"kind": "laplacian", "length_scale": 1}, sampler=MATCHED), "/sampler/kind"),
    (with_(sampler=MATCHED, s=3), "/s"),
    (with_(input_dim=21202), "/sampler/kind"),
    (with_(sampler={"kind": "halton", "leap": 1}), "/sampler/leap"),
]


@each("body", NOT_A_SPEC.values())
def test_a_body_that_is_no_spec_is_refused_as_a_whole(http: httpx.Client, name: str, body: Any) -> None:
    assert_problem(http, put(http, name, body), 422, "invalid-input", "")


@each(("spec", "pointer"), WRONG_FIELD)
def test_a_wrong_field_is_refused_by_name(http: httpx.Client, name: str, spec: Any, pointer: str) -> None:
    assert_problem(http, put(http, name, spec), 422, "invalid-input", pointer)


@each(("spec", "pointer"), WRONG_NUMBER)
def test_a_wrong_number_is_refused_where_it_stands(http: httpx.Client, name: str, spec: Any, pointer: str) -> None:
    assert_problem(http, put(http, name, spec), 422, "invalid-input", pointer)


@each("number", ["1e400", "-1e400", "NaN", "Infinity"])
@each("field", ["s", "seed"])
def test_a_number_that_json_or_a_double_does_not_have_is_refused(
    http: httpx.Client, name: str, field: str, number: str
) -> None:
    spec = json.dumps(with_(**{field: "here"})).replace('"here"', number).encode()
    assert_problem(http, put(http, name, spec), 422, "invalid-input", f"/{field}")


@each(("spec", "pointer"), WITHOUT_MEANING)
def test_a_combination_without_meaning_is_refused(http: httpx.Client, name: str, spec: Any, pointer: str) -> None:
    assert_problem(http, put(http, name, spec), 422, "invalid-input", pointer)


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        (with_(kernel={"kind": "gmm"}), "gcws"),
        (with_(sampler=MATCHED, s=3), "take 4"),
        (with_(input_dim=21202), "monte_carlo"),
        (with_(kernel={"kind": "cauchy", "length_scale": [1]}), "input_dim 3"),
        (
            with_(kernel={"kind": "rbf", "length_scale": 1}),
            "unknown kernel 'rbf'; did you mean 'gaussian'? there are ga",
        ),
        (with_(kernel={"kind": "gausian", "length_scale": 1}), "did you mean 'gaussian'?"),
        (with_(sampler={"kind": "nystroem"}), "unknown sampler 'nystroem'; did you mean 'landmarks'?"),
        (with_(sampler={"kind": "weighted", "base": {"kind": "xyz"}}), "unknown base 'xyz'; there are monte_carlo"),
        (with_(n_components=16), "did you mean s?"),
    ],
)
def test_a_refusal_says_what_would_work(http: httpx.Client, name: str, spec: Any, named: str) -> None:
    assert named in assert_problem(http, put(http, name, spec), 422, "invalid-input")["detail"]


NAMES = [".hidden", "-dash", "_low", "a" * 129, "a%20b", "a%0A", "%C3%A9", "a%00", "a:b", "a@b", "%7Bx%7D"]


@each("bad", NAMES)
def test_a_bad_name_is_refused_by_every_address(http: httpx.Client, bad: str) -> None:
    document = assert_problem(http, put(http, bad, GOOD), 422, "invalid-input")
    assert document["errors"][0]["parameter"] == "name"
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/frequencies")):
        assert_problem(http, http.request(method, f"/v1/maps/{bad}{path}"), 422, "invalid-input")


@pytest.mark.parametrize(
    "spec",
    [
        with_(input_dim=10_000, s=1 << 20, sampler={"kind": "monte_carlo"}),
        with_(input_dim=10_000, s=1 << 20, sampler={"kind": "halton"}, form="phase"),
    ],
)
def test_a_map_too_large_is_refused_before_it_is_built(http: httpx.Client, name: str, spec: Any) -> None:
    document = assert_problem(http, put(http, name, spec), 413, "too-large")
    assert document["limit"] == "max_map_bytes"
    assert document["value"] == 1 << 30
    assert document["setting"] == "BOCHNER_MAX_MAP_BYTES"


@pytest.mark.parametrize("sampler", ["latin_hypercube", "sobol"])
def test_a_map_that_takes_too_much_to_build_is_refused(http: httpx.Client, name: str, sampler: str) -> None:
    near_the_limit = with_(input_dim=14, s=1 << 24, sampler={"kind": sampler})
    document = assert_problem(http, put(http, name, near_the_limit), 413, "too-large")
    assert (document["limit"], document["setting"]) == ("max_job_bytes", "BOCHNER_MAX_JOB_BYTES")
    assert "building the map would take" in document["detail"]
