"""Cases: a request for some operation, with a key or without, broken or not, and what is known of it."""

import json
import re
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

from app.store.keys import Role
from service_tests.fuzz import heads
from service_tests.fuzz.bodies import body
from service_tests.fuzz.heads import TEXTS, Request

DOCUMENT: dict[str, Any] = json.loads((Path(__file__).parent.parent.parent / "openapi" / "openapi.json").read_text())


class Operation(NamedTuple):
    """A call of the OpenAPI document."""

    method: str
    path: str
    described: dict[str, Any]
    address: re.Pattern[str]

    @property
    def id(self) -> str:
        """Its id."""
        found: str = self.described["operationId"]
        return found

    @property
    def role(self) -> Role | None:
        """The role that it needs; None for none."""
        security = self.described["security"]
        return Role(security[0]["key"][0]) if security else None


OPERATIONS = [
    Operation(method.upper(), path, described, re.compile(re.sub(r"\{\w+\}", "[^/]+", path)))
    for path, methods in DOCUMENT["paths"].items()
    for method, described in methods.items()
]
# Those that take bodies, and those that change something, come more often.
_WEIGHTS = [8 if "requestBody" in one.described else 2 if one.method == "DELETE" else 1 for one in OPERATIONS]
ROWS = {one.id for one in OPERATIONS if len(one.described.get("requestBody", {}).get("content", {})) > 1}


class Credential(NamedTuple):
    """What is sent in the place of a key."""

    fields: tuple[bytes, ...]
    role: Role | None
    """What it lets its sender do; None for nothing."""
    own: bool = True
    """Whether it looks like a key of the service, so that its sender is held to it also where none is needed."""


class Case(NamedTuple):
    """What is sent, and what is known of it."""

    sent: bytes
    request: Request
    credential: Credential
    is_whole: bool
    """Whether it is one request and framed as it should be, so that it has one answer."""

    @property
    def operation(self) -> Operation | None:
        """The call that it is for, if there is one."""
        path = self.request.target.partition(b"?")[0].decode("latin-1")
        method = "GET" if self.request.method == "HEAD" else self.request.method
        return next((one for one in OPERATIONS if one.method == method and one.address.fullmatch(path)), None)


class Names(NamedTuple):
    """What addresses are about."""

    standing: list[str]
    """Maps that stay, and at last one that hashes."""
    maps: list[str]
    """Names of maps and datasets that come and go."""
    jobs: list[str]
    """Ids of jobs that there have been."""


def case(random: Random, names: Names, credentials: list[Credential]) -> Case:
    """One more case."""
    (operation,) = random.choices(OPERATIONS, _WEIGHTS)
    method = operation.method if random.random() < 0.97 else random.choice(("HEAD", "OPTIONS", "TRACE", "PATCH", "GET"))
    target = re.sub(r"\{(\w+)\}", lambda found: _segment(random, operation, found[1], names), operation.path)
    target += heads.query(random, operation.described.get("parameters", []))
    credential = random.choice(credentials)
    content, media_type, framing = b"", None, list[bytes]()
    if "requestBody" in operation.described or random.random() < 0.05:
        content, media_type = body(random, operation.id, operation.id in ROWS)
        framing, content = heads.framed(random, content)
    lines = heads.fields(random, media_type) + framing + list(credential.fields)
    request = Request(method, target.encode("latin-1"), lines, content)
    if random.random() < 0.15:
        return Case(heads.broken(random, request), request, credential, False)
    return Case(request.sent, request, credential, True)


def _segment(random: Random, operation: Operation, name: str, names: Names) -> str:
    if random.random() < 0.05:
        return quote(random.choice(TEXTS)[:2000].encode("utf-8", "surrogatepass"), safe="") or "%2F"
    kinds: list[str] = next(
        (one["schema"].get("enum", []) for one in operation.described["parameters"] if one["name"] == name), []
    )
    if kinds:
        return random.choice(kinds)
    if name == "slug":
        return random.choice(("too-large", "quota", "nothing", "<b>"))
    if name == "id":
        return random.choice((*names.jobs[-20:], "0" * 24, "0" * 16, "f" * 16))
    if operation.method in ("PUT", "DELETE"):
        return random.choice(names.maps)
    if operation.id in ("codes", "similarity") and random.random() < 0.6:
        return names.standing[-1]
    return random.choice(names.standing) if random.random() < 0.8 else random.choice(names.maps)
