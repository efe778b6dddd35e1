"""Cases: a request for some operation, with a key or without, broken or not, and what is known of it."""

import json
import re
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

from hypothesis import strategies as st

from app.store.keys import Role
from service_tests.fuzz import heads
from service_tests.fuzz.bodies import bodies

DOCUMENT: dict[str, Any] = json.loads((Path(__file__).parents[2] / "openapi" / "openapi.json").read_text())
STANDING = ("cos-sin", "phase", "complex", "signed", "landmarks", "gmm")
"""Maps that stay, and at last one that hashes, with an index of its name."""
_METHODS = ("HEAD", "OPTIONS", "TRACE", "PATCH", "GET")


class Operation(NamedTuple):
    """A call of the OpenAPI document."""

    method: str
    path: str
    described: dict[str, Any]

    @property
    def media_types(self) -> list[str]:
        """Those of the bodies that it takes."""
        return [*self.described["requestBody"]["content"]]

    @property
    def role(self) -> Role | None:
        """The role that it needs; None for none."""
        security = self.described["security"]
        return Role(security[0]["key"][0]) if security else None


OPERATIONS = {
    (method.upper(), path): Operation(method.upper(), path, described)
    for path, methods in DOCUMENT["paths"].items()
    for method, described in methods.items()
}
# Those that take bodies come more often.
_OFTEN = [one for one in OPERATIONS.values() for _ in range(8 if "requestBody" in one.described else 1)]


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
    method: str
    operation: Operation | None
    credential: Credential
    is_whole: bool
    """Whether it is one request and framed as it should be, so that it has one answer."""


@st.composite
def cases(draw: st.DrawFn, credentials: list[Credential]) -> Case:
    """A strategy of cases: Hypothesis draws the operation and the body, and the head is drawn from a seed."""
    operation, random = draw(st.sampled_from(_OFTEN)), Random(draw(st.integers(0, 1 << 32)))
    method = operation.method if random.random() < 0.97 else random.choice(_METHODS)
    target = re.sub(r"\{(\w+)\}", lambda found: _segment(random, operation, found[1]), operation.path)
    target += heads.query(random, operation.described.get("parameters", []))
    content, media_type, framing = b"", None, list[bytes]()
    if "requestBody" in operation.described:
        content, media_type = draw(
            bodies(operation.described["operationId"], [*operation.described["requestBody"]["content"]])
        )
        framing, content = heads.framed(random, content)
    credential = random.choice(credentials)
    lines = heads.fields(random, media_type) + framing + list(credential.fields)
    sent = b"\r\n".join([f"{method} {target} HTTP/1.1".encode("latin-1"), *lines, b"", content])
    is_whole = random.random() > 0.15
    asked = OPERATIONS.get(("GET" if method == "HEAD" else method, operation.path))
    return Case(sent if is_whole else heads.broken(random, sent, method), method, asked, credential, is_whole)


def _segment(random: Random, operation: Operation, name: str) -> str:
    """A part of an address: a name, an id, or one of the words that it may be."""
    if random.random() < 0.05:
        return quote(random.choice(heads.TEXTS).encode(), safe="") or "%2F"
    parameters = operation.described["parameters"]
    words: list[str] = next((one["schema"].get("enum", []) for one in parameters if one["name"] == name), [])
    if words or name in ("slug", "id"):
        return random.choice(words or ("too-large", "nothing", "<b>", "0" * 24, "f" * 16))
    passing = random.choice([f"w-{i}" for i in range(20)])
    if operation.method in ("PUT", "DELETE") or random.random() < 0.2:
        return passing
    hashes = "indexes" in operation.path or operation.described["operationId"] in ("codes", "similarity")
    return STANDING[-1] if hashes and random.random() < 0.7 else random.choice(STANDING)
