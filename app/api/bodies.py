"""Request bodies: read up to a limit, and parsed into models."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

Model = TypeVar("Model", bound=BaseModel)

# The most errors that a refusal names. More would make it longer than the body it refuses.
_MOST_NAMED = 20
# The most errors that are looked at, each of which costs a kilobyte. More are only counted.
_MOST_LOOKED_AT = 1000


class InvalidBody(Exception):
    """A body that does not fit its model.

    Args:
        errors: a JSON pointer and a sentence for each thing that is wrong.
    """

    def __init__(self, errors: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{pointer or 'body'}: {detail}" for pointer, detail in errors))
        self.errors = errors


class Stalled(Exception):
    """A client has stopped in the middle of a body."""


async def read(request: Request, check_size: Callable[[int], None], client_timeout: float) -> bytes:
    """Read a whole body.

    Args:
        request: with the body.
        check_size: raises TooLarge for a length over the limit.
        client_timeout: seconds that the client may pause.

    Raises:
        TooLarge: the length that is announced, or that has come, is over the limit.
        Stalled: the client has paused for too long.
    """
    announced = request.headers.get("content-length", "")
    check_size(int(announced) if announced.isdecimal() else 0)
    body = bytearray()
    stream = request.stream()
    while True:
        try:
            async with asyncio.timeout(client_timeout):
                body += await anext(stream)
        except StopAsyncIteration:
            return bytes(body)
        except TimeoutError:
            raise Stalled(f"{len(body)} bytes came, then nothing for {client_timeout:g} seconds") from None
        check_size(len(body))


def parse(model: type[Model], body: bytes) -> Model:
    """Read a body as a model.

    Raises:
        InvalidBody: the body is not JSON, or does not fit the model. It names the first errors.
    """
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        if error.error_count() > _MOST_LOOKED_AT:
            raise InvalidBody([("", f"{error.error_count()} things are wrong with it")]) from error
        found = _told_once(error.errors(include_url=False))[:_MOST_NAMED]
        try:
            document = from_json(body)
        except ValueError:
            document = None
        raise InvalidBody([(_pointer(one, document), _sentence(one)) for one in found]) from error


def _told_once(errors: list[Any]) -> list[Any]:
    """The errors that matter. Where an item of a list is wrong, pydantic also says that the list is too short."""
    return [
        error
        for i, error in enumerate(errors)
        if error["type"] != "too_short" or not any(_within(error["loc"], other["loc"]) for other in errors[:i])
    ]


def _within(outer: tuple[Any, ...], inner: tuple[Any, ...]) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def _sentence(error: Any) -> str:
    came = error["input"]
    if isinstance(came, str | int | float | None) and error["type"] not in ("missing", "json_invalid"):
        # The json of the standard library also writes infinity and NaN.
        return f"{error['msg']}; {json.dumps(came, ensure_ascii=False)[:80]} came"
    return str(error["msg"])


def _pointer(error: Any, document: Any) -> str:
    """The JSON pointer (RFC 6901) of an error. Pydantic's location has steps for unions, which are no part of it."""
    at_kind = error["type"].startswith("union_tag") and error["ctx"].get("discriminator") == "'kind'"
    location = (*error["loc"], "kind") if at_kind else error["loc"]
    absent = len(location) - 1 if at_kind or error["type"] == "missing" else None
    pointer, at = "", document
    for i, step in enumerate(location):
        in_list = isinstance(at, list) and isinstance(step, int) and step < len(at)
        if in_list or (isinstance(at, dict) and step in at):
            at = at[step]
        elif i != absent:
            continue
        pointer += "/" + str(step).replace("~", "~0").replace("/", "~1")
    return pointer
