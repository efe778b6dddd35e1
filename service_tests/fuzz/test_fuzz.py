"""Fuzzed requests, of all calls, formats, heads and keys, broken ones among them: nothing that is not documented."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.store.keys import Role
from service_tests.cases import each, few_and_many
from service_tests.checks import JSON, PROBLEM
from service_tests.fuzz.cases import Case, Credential
from service_tests.fuzz.heads import Request
from service_tests.fuzz.judge import Answer, Wrong, judge
from service_tests.fuzz.run import MiB, attacked, run

NOBODY = Credential((), None, own=False)
READER = Credential((b"Authorization: Bearer x",), Role.read)


@pytest.mark.gate
@pytest.mark.parametrize("with_keys", [True, False])
@pytest.mark.parametrize("count", few_and_many(250, 3000))
def test_no_answer_is_wrong_and_memory_stays(tmp_path: Path, count: int, with_keys: bool) -> None:
    with attacked(tmp_path / "data", with_keys) as found:
        figures = run(*found, count, 15, with_keys)
    assert not figures.wrong, figures.wrong
    assert figures.seen["200"] > count / 30
    assert figures.seen["broken"] > count / 8
    # The caches fill first.
    assert count < 3000 or figures.memory[-1] < figures.memory[1] + 100 * MiB


def judged(
    status: int,
    body: Any,
    fields: dict[str, str] | None = None,
    method: str = "GET",
    path: str = "/v1/info",
    who: Credential = READER,
) -> None:
    """Judge an answer to a whole request."""
    request = Request(method, path.encode(), [b"Host: x"], b"")
    headers = {"x-request-id": "i", "content-type": JSON if status < 400 else PROBLEM} | (fields or {})
    judge(
        Case(request.sent, request, who, True), Answer(status, httpx.Headers(headers), json.dumps(body).encode()), True
    )


def refusal(slug: str, status: int, **members: Any) -> dict[str, Any]:
    """A problem document."""
    return {"type": f"/problems/{slug}", "title": "t", "status": status, "detail": "d", "instance": "i", **members}


def test_answers_that_are_right_pass() -> None:
    judged(422, refusal("invalid-input", 422))
    judged(503, refusal("store-unavailable", 503), {"retry-after": "1"})
    judged(507, refusal("quota", 507, limit="max_store_bytes"), method="PUT", path="/v1/maps/m")
    judged(401, refusal("unauthorized", 401), {"www-authenticate": "Bearer"}, who=NOBODY)
    judged(200, {"status": "live"}, path="/health/live", who=NOBODY)


@each(
    ("status", "body", "fields"),
    [
        (500, refusal("internal-error", 500), {}),
        (503, refusal("store-unavailable", 503), {}),
        (422, refusal("invalid-input", 400), {}),
        (422, refusal("not-found", 422), {}),
        (422, refusal("invalid-input", 422, instance="j"), {}),
        (422, refusal("invalid-input", 422, more=[1] * 9000), {}),
        (422, refusal("invalid-input", 422), {"content-type": JSON}),
        (507, refusal("quota", 507), {}),
        (405, refusal("method-not-allowed", 405), {}),
        (422, refusal("invalid-input", 422, detail="Traceback (most recent call last)"), {}),
        (422, refusal("invalid-input", 422, detail=f"bochner_{'0' * 16}_{'a' * 43}"), {}),
        (201, {}, {}),
        (200, {}, {}),
        (200, {}, {"content-type": "text/plain"}),
    ],
)
def test_what_is_wrong_with_an_answer_is_found(status: int, body: Any, fields: dict[str, str]) -> None:
    with pytest.raises(Exception, match=r"it|its|is|has") as caught:
        judged(status, body, fields)
    assert type(caught.value).__name__ in ("Wrong", "ValidationError")


@pytest.mark.parametrize(
    ("method", "path", "who"),
    [("GET", "/v1/info", NOBODY), ("DELETE", "/v1/maps/m", READER), ("GET", "/v1/keys", READER)],
)
def test_an_open_door_is_found(method: str, path: str, who: Credential) -> None:
    with pytest.raises(Wrong, match="it lets in"):
        judged(204, None, None, method, path, who)
