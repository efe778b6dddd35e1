"""Request bodies: read up to the limit, and parsed into models."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

Model = TypeVar("Model", bound=BaseModel)

# More would make an answer larger than the body it refuses.
_MOST_NAMED = 20
# More are only counted: each costs a kilobyte to look at.
_MOST_LOOKED_AT = 1000


class InvalidBody(Exception):
    """A body that is not what its model says.

    Args:
        errors: JSON pointer and sentence for each thing that is wrong.
    """

    def __init__(self, errors: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{pointer or 'body'}: {detail}" for pointer, detail in errors))
        self.errors = errors


class Stalled(Exception):
    """A client that began to send a body and stopped."""


async def read(request: Request, check_size: Callable[[int], None], client_timeout: float) -> bytes:
    """The whole body, as long as `check_size` lets its length pass.

    Raises:
        TooLarge: as soon as the limit is passed, by announcement or in fact.
        Stalled: the client paused for `client_timeout` seconds.
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
    """The body as a model.

    Raises:
        InvalidBody: it is no JSON, or not of the model; names the first errors.
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
    """The errors without those of lists that are too short only because an item of theirs is wrong, as told before."""
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
        # The standard library's, which also writes what JSON has no number for.
        return f"{error['msg']}; {json.dumps(came, ensure_ascii=False)[:80]} came"
    return str(error["msg"])


def _pointer(error: Any, document: Any) -> str:
    """JSON pointer (RFC 6901) of an error's location, without the steps that only the model's unions have."""
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
