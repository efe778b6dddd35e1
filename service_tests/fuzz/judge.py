"""What every answer must be, whatever was asked."""

import gzip
import json
import re
from typing import Any, NamedTuple

import httpx
import jsonschema

from app.api.codings import zstd
from app.api.problem_kinds import KINDS
from app.store.keys import Role, hidden
from service_tests.checks import JSON, PROBLEM
from service_tests.fuzz.cases import DOCUMENT, Case

# Answers of more bytes are not held against their schemas, which takes a second for a megabyte.
_MOST_CHECKED = 20_000
# What is repeated of a request may be as long as that.
_MOST_SAID = 8_000


class Answer(NamedTuple):
    """An answer as it came."""

    status: int
    headers: httpx.Headers
    body: bytes


def judge(case: Case, answer: Answer, keys_required: bool) -> None:
    """AssertionError unless this may be the answer to a whole case."""
    status, headers, body = answer
    assert headers["x-request-id"]
    assert len(headers.get_list("content-length")) <= 1, "it has two lengths"
    if body and (packing := headers.get("content-encoding")):
        body = {"gzip": gzip.decompress, "zstd": zstd.decompress}[packing](body)
    _judge_any(case, body, [status])
    role = case.credential.role if keys_required or case.credential.own else Role.write
    needed = case.operation.role if case.operation else Role.read
    allowed = needed is None or (role is not None and role.includes(needed))
    assert status >= 400 or allowed, f"it lets in {role} for {needed}"
    if case.method == "HEAD":
        assert not body
    elif status >= 400:
        _judge_problem(answer, body, len(case.sent))
    else:
        _judge_success(case, answer, body)


def judge_broken(case: Case, came: bytes, keys_required: bool) -> list[int]:
    """AssertionError unless this may be what comes when a case is broken; the statuses of its answers."""
    assert not came or came.startswith(b"HTTP/1.1 "), f"{came[:80]!r} is no answer"
    statuses = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) [\w -]*\r\n", came)]
    _judge_any(case, came, statuses)
    # What is broken may be a key no more, and of two keys one may be left.
    open_to_all = b"/health/" in case.sent or not keys_required or len(case.credential.fields) > 1
    is_let_in = any(200 <= status < 400 for status in statuses)
    assert case.credential.role is not None or open_to_all or not is_let_in, "it lets in who has no key"
    return statuses


def _judge_any(case: Case, body: bytes, statuses: list[int]) -> None:
    assert all(status < 500 or status in (503, 507) for status in statuses), "it is a failure"
    text = body.decode("latin-1")
    assert hidden(text) == text or b"/v1/keys" in case.sent, "it tells a key"


def _judge_problem(answer: Answer, body: bytes, sent: int) -> None:
    (status, headers, _), document = answer, json.loads(body)
    of_inference = document.get("error") == document["detail"]  # below /v2, for clients that read nothing else
    assert headers["content-type"] == (JSON if of_inference else PROBLEM)
    _valid(document, "#/components/schemas/Problem")
    slug = document["type"].removeprefix("/problems/")
    assert KINDS[slug].status == status or (slug, status) == ("overloaded", 429)
    assert (document["status"], document["instance"]) == (status, headers["x-request-id"])
    assert ("retry-after" in headers) == (status in (429, 503))
    for code, field in ((401, "www-authenticate"), (405, "allow")):
        assert status != code or field in headers
    assert status != 507 or "limit" in document
    assert not re.search(r"Traceback|\.py", document["detail"]), "it tells of the code"
    assert len(body) <= _MOST_SAID + 6 * sent


def _judge_success(case: Case, answer: Answer, body: bytes) -> None:
    assert case.operation is not None, "there is no such call"
    described, status = case.operation.described["responses"], answer.status
    assert str(status) in described, "the status is not documented"
    if status in (204, 303, 304):
        assert not body
        return
    media_type, content = answer.headers["content-type"].partition(";")[0], described[str(status)].get("content", {})
    assert status == 206 or media_type in content or "*/*" in content, f"{media_type} is not documented"
    if media_type == JSON and status != 206 and len(body) < _MOST_CHECKED:
        call = f"{case.operation.path.replace('/', '~1')}/{case.operation.method.lower()}"
        _valid(json.loads(body), f"#/paths/{call}/responses/{status}/content/{JSON.replace('/', '~1')}/schema")


def _valid(document: Any, reference: str) -> None:
    jsonschema.Draft202012Validator({**DOCUMENT, "$ref": reference}).validate(document)
