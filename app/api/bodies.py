"""Request bodies: read up to the limit, and parsed into models."""

import json
from typing import Any, TypeVar

import orjson
from fastapi import Request
from pydantic import BaseModel, ValidationError

from app.services.limits import Limits

Model = TypeVar("Model", bound=BaseModel)

# More would make an answer larger than the body it refuses.
_MOST_ERRORS = 20


class InvalidBody(Exception):
    """A body that is not what its model says.

    Args:
        errors: JSON pointer and sentence for each thing that is wrong.
    """

    def __init__(self, errors: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{pointer or 'body'}: {detail}" for pointer, detail in errors))
        self.errors = errors


async def read(request: Request, limits: Limits) -> bytes:
    """The whole body.

    Raises:
        TooLarge: as soon as the limit is passed, by announcement or in fact.
    """
    announced = request.headers.get("content-length", "")
    limits.check_body(int(announced) if announced.isdecimal() else 0)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        limits.check_body(len(body))
    return bytes(body)


def parse(model: type[Model], body: bytes) -> Model:
    """The body as a model.

    Raises:
        InvalidBody: it is no JSON, or not of the model; names the first twenty errors.
    """
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        found = error.errors(include_url=False)[:_MOST_ERRORS]
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError:
            document = None
        raise InvalidBody([(_pointer(_location(one), document), _sentence(one)) for one in found]) from error


def _location(error: Any) -> tuple[int | str, ...]:
    at_kind = error["type"].startswith("union_tag") and error["ctx"].get("discriminator") == "'kind'"
    return (*error["loc"], "kind") if at_kind else error["loc"]


def _sentence(error: Any) -> str:
    came = error["input"]
    if isinstance(came, str | int | float | None) and error["type"] not in ("missing", "json_invalid"):
        # The standard library's, which also writes what JSON has no number for.
        return f"{error['msg']}; {json.dumps(came, ensure_ascii=False)[:80]} came"
    return str(error["msg"])


def _pointer(location: tuple[int | str, ...], document: Any) -> str:
    """JSON pointer (RFC 6901) of an error's location, without the steps that only the model's unions have."""
    pointer, at = "", document
    for i, step in enumerate(location):
        if isinstance(at, dict) and step in at:
            at = at[step]
        elif isinstance(at, list) and isinstance(step, int) and step < len(at):
            at = at[step]
        elif i < len(location) - 1 or not isinstance(at, dict):
            continue
        pointer += "/" + str(step).replace("~", "~0").replace("/", "~1")
    return pointer
