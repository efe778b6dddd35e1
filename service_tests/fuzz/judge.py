"""What every answer must be, whatever was asked."""

import gzip
import json
from typing import Any, NamedTuple

import httpx
import jsonschema

from app.api.codings import zstd
from app.api.problem_kinds import KINDS
from app.store.keys import Role, hidden
from service_tests.checks import JSON, PROBLEM
from service_tests.fuzz.cases import DOCUMENT, Case, Operation

_PAGES = (b"/docs", b"/openapi.json")
# Answers of more bytes are not held against their schemas, which takes a second for a megabyte.
_MOST_CHECKED = 20_000
# What is repeated of a request may be as long as that.
_MOST_SAID = 8_000
_validators: dict[str, Any] = {}


class Wrong(Exception):
    """An answer is not what it must be."""


class Answer(NamedTuple):
    """An answer as it came."""

    status: int
    headers: httpx.Headers
    body: bytes
    is_whole: bool = True
    """Whether all of it came before the connection was closed by the client."""


def judge(case: Case, answer: Answer, keys_required: bool) -> None:
    """Raise Wrong unless this may be the answer to a case, or to a part of one that is broken."""
    headers, status = answer.headers, answer.status
    operation = case.operation if case.is_whole else None
    _wrong_if("x-request-id" not in headers, "it has no request id")
    _wrong_if(len(headers.get_list("content-length")) > 1, "it has two lengths")
    answer = _unpacked(answer)
    text = answer.body.decode("utf-8", "replace")
    _wrong_if(hidden(text) != text and not (status == 201 and b"/v1/keys" in case.sent), "it tells a key")
    _judge_access(case, operation, status, keys_required)
    if not answer.is_whole or case.request.method == "HEAD" or b"HEAD" in case.sent:
        _wrong_if(status >= 500 and status not in (503, 507), "it is a failure")
    elif status >= 400:
        _judge_problem(answer, len(case.sent))
    elif case.is_whole:
        _judge_success(case, operation, answer)


def _unpacked(answer: Answer) -> Answer:
    """The answer as it was before it was packed for the way."""
    packing = answer.headers.get("content-encoding")
    if packing is None or not answer.is_whole or not answer.body:
        return answer
    unpack = {"gzip": gzip.decompress, "zstd": zstd.decompress}[packing]
    return answer._replace(body=unpack(answer.body))


def _judge_access(case: Case, operation: Operation | None, status: int, keys_required: bool) -> None:
    held = keys_required or case.credential.own
    role = case.credential.role if held else Role.write
    if status >= 400 or not case.is_whole:
        # What is broken may be a key no more, and of two keys one may be left.
        open_to_all = b"/health/" in case.sent or not keys_required or len(case.credential.fields) > 1
        _wrong_if(status < 400 and role is None and not open_to_all, "it lets in who has no key")
        return
    needed = operation.role if operation else Role.read
    _wrong_if(needed is not None and (role is None or not role.includes(needed)), f"it lets in {role} for {needed}")


def _judge_problem(answer: Answer, sent: int) -> None:
    status, headers = answer.status, answer.headers
    of_inference = headers.get("content-type") == JSON  # below /v2, for clients that read nothing else
    _wrong_if(headers.get("content-type") != PROBLEM and not of_inference, "it is no problem document")
    document = json.loads(answer.body)
    _wrong_if(of_inference and document.get("error") != document["detail"], "its error is not what it says")
    _validator("#/components/schemas/Problem").validate(document)
    slug = document["type"].removeprefix("/problems/")
    _wrong_if(document["status"] != status, "its statuses differ")
    _wrong_if(KINDS[slug].status != status and (slug, status) != ("overloaded", 429), f"{slug} has another status")
    _wrong_if(document["instance"] != headers["x-request-id"], "its ids differ")
    _wrong_if(status >= 500 and status not in (503, 507), "it is a failure")
    _wrong_if(("retry-after" in headers) != (status in (429, 503)), "it says wrongly when to ask again")
    _wrong_if(status == 507 and "limit" not in document, "it names no limit")
    _wrong_if(status == 401 and "www-authenticate" not in headers, "it asks for no key")
    _wrong_if(status == 405 and "allow" not in headers, "it lists no methods")
    _wrong_if("Traceback" in document["detail"] or ".py" in document["detail"], "it tells of the code")
    _wrong_if(len(answer.body) > _MOST_SAID + 6 * sent, f"it has {len(answer.body)} bytes")


def _judge_success(case: Case, operation: Operation | None, answer: Answer) -> None:
    if operation is None:
        _wrong_if(not case.request.target.startswith(_PAGES), "there is no such call")
        return
    described = operation.described["responses"].get(str(answer.status))
    _wrong_if(described is None, "the status is not documented")
    content = described.get("content", {})
    media_type = answer.headers.get("content-type", "").partition(";")[0]
    if answer.status in (204, 303, 304):
        _wrong_if(bool(answer.body), "it has a body")
        return
    if answer.status == 206:
        _wrong_if("content-range" not in answer.headers, "it does not say which part it is")
        return
    _wrong_if(media_type not in content and "*/*" not in content, f"{media_type} is not documented")
    if media_type == JSON and len(answer.body) < _MOST_CHECKED:
        path = operation.path.replace("/", "~1")
        at = f"{path}/{operation.method.lower()}/responses/{answer.status}/content/{JSON.replace('/', '~1')}/schema"
        _validator(f"#/paths/{at}").validate(json.loads(answer.body))


def _validator(reference: str) -> Any:
    if reference not in _validators:
        _validators[reference] = jsonschema.Draft202012Validator({**DOCUMENT, "$ref": reference})
    return _validators[reference]


def _wrong_if(condition: bool, said: str) -> None:
    if condition:
        raise Wrong(said)
