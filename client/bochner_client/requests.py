"""Requests as data, and the steps that calls consist of. No I/O happens here: the clients carry the steps out."""

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

from bochner_client.errors import InvalidAnswer, NotModified

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Buffer = bytes | memoryview
Flow = Generator["Step", Any, T]
"""A call: a generator that yields steps, is sent their results, and returns the answer; failures are thrown in."""

JSON = "application/json"
NPY = "application/x-npy"
NPZ = "application/x-npz"
_PIECE_BYTES = 1 << 20


class Body(NamedTuple):
    """Body of a request. It can be read repeatedly, as requests may be repeated."""

    media_type: str
    parts: tuple[Buffer, ...]

    @property
    def length(self) -> int:
        """Total number of bytes."""
        return sum(memoryview(part).nbytes for part in self.parts)

    def pieces(self) -> Iterator[Buffer]:
        """Yield the bytes in pieces of at most 1 MiB; a small body as one piece, so that no part of it is sent late."""
        if self.length <= _PIECE_BYTES:
            yield b"".join(self.parts)
            return
        for part in self.parts:
            view = memoryview(part)
            for start in range(0, view.nbytes, _PIECE_BYTES):
                yield view[start : start + _PIECE_BYTES]


class Sink(Protocol[T_co]):
    """Receiver of the body of an answer."""

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""

    def end(self) -> T_co:
        """Return the answer, once all bytes have been fed; InvalidAnswer if they are not one."""


class Joined(Generic[T]):
    """Collects a body in memory and reads it as a whole."""

    def __init__(self, read: Callable[[bytes], T]) -> None:
        self._read, self._pieces = read, bytearray()

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""
        self._pieces += piece

    def end(self) -> T:
        """Return what `read` makes of the body; InvalidAnswer if it cannot be read."""
        try:
            return self._read(bytes(self._pieces))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            came = bytes(self._pieces[:80]).decode(errors="replace")
            raise InvalidAnswer(f"the service answered {came!r}, which cannot be read: {error!r}") from error


class Reading(NamedTuple, Generic[T]):
    """How an answer of one status is read."""

    media_type: str
    """Media type that the body must have; `*` matches anything, as in a shell."""
    sink: Callable[[Mapping[str, str]], Sink[T]]
    """Returns the receiver of the body, given the headers."""


Reads = Mapping[int, Reading[T]]
"""How an answer is read, for each status that it may have."""


def as_json(read: Callable[[Any], T], *statuses: int) -> Reads[T]:
    """Return a reader of JSON, from which `read` makes the answer; for status 200 if no statuses are given."""
    return dict.fromkeys(statuses or (200,), Reading(JSON, lambda _: Joined(lambda body: read(json.loads(body)))))


def as_document(document: Any) -> Any:
    """Return JSON unchanged."""
    return document


def as_bytes(media_type: str) -> Reads[bytes]:
    """Return a reader that keeps the bytes unchanged."""
    return {200: Reading(media_type, lambda _: Joined(bytes))}


def as_text(media_type: str) -> Reads[str]:
    """Return a reader of text."""
    return {200: Reading(media_type, lambda _: Joined(bytes.decode))}


def as_nothing() -> Reads[None]:
    """Return a reader of answers without content."""
    return {204: Reading("*", lambda _: Joined(lambda _: None))}


@dataclass(frozen=True, kw_only=True)
class Request(Generic[T]):
    """One request to the service."""

    method: str
    path: str
    reads: Reads[T]
    params: Mapping[str, Any] = field(default_factory=dict)
    """Query parameters; those that are None are left out."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body | None = None
    repeatable: bool = True
    """Whether carrying out the request twice does no harm."""
    done_by: frozenset[str] = frozenset()
    """Slugs of refusals of a repeated request that mean that the first request was carried out."""
    patient: bool = True
    """Whether to repeat the request if the service is unavailable or busy, rather than raise at once."""
    read_timeout: float | None = None
    """Seconds that the service may be silent; None for the client's timeout."""


class Attempt(NamedTuple):
    """Step: send a request once. Its result is what the request reads, or an open stream of bytes."""

    request: Request[Any]
    keep_open: bool


class Sleep(NamedTuple):
    """Step: wait."""

    seconds: float


class Read(NamedTuple):
    """Step: read the next bytes of an open stream; b"" at its end."""

    stream: Any


class Close(NamedTuple):
    """Step: close an open stream."""

    stream: Any


class Patience(NamedTuple):
    """Step: get the number of seconds for which requests are repeated, and whether no service has answered yet."""


class Turn(NamedTuple):
    """Step: wait until the client may send another request. The attempt that follows ends the turn."""


class Give(NamedTuple):
    """Step: pass a value to the code that iterates."""

    value: Any


Step = Attempt | Sleep | Read | Close | Patience | Turn | Give


class Stream(NamedTuple, Generic[T]):
    """A call that yields values one after another."""

    flow: Flow[None]


def advance(flow: Flow[Any], outcome: Any) -> Step:
    """Resume a flow with the result of its last step, a value or an exception to throw; return the next step."""
    return flow.throw(outcome) if isinstance(outcome, Exception) else flow.send(outcome)


def address(*segments: str) -> str:
    """Return the path that these segments form below the service's address.

    Raises:
        ValueError: a segment is empty, "." or "..", so that the path would lead elsewhere.
    """
    for one in segments:
        if one in ("", ".", ".."):
            raise ValueError(f"{one!r} came; a name or an id is wanted")
    return "/" + "/".join(quote(one, safe="") for one in segments)


def preconditions(if_match: str | None, only_new: bool = False) -> dict[str, str]:
    """Return headers that make a request fail unless the existing thing has a digest, or unless nothing exists."""
    return tagged("If-Match", if_match) | ({"If-None-Match": "*"} if only_new else {})


def tagged(header: str, digest: str | None) -> dict[str, str]:
    """Return a header that names the version of a thing by its digest; no header if it is None."""
    return {} if digest is None else {header: f'"{digest}"'}


def unless_known(reads: Reads[T]) -> Reads[T]:
    """Return a reader that raises NotModified if the requested thing still has the given digest."""

    def sink(_: Mapping[str, str]) -> Sink[T]:
        raise NotModified("it has the digest that was named")

    return {**reads, 304: Reading("*", sink)}


def last_segment(link: str) -> str:
    """Return the name or id at the end of a link; a name or id is returned unchanged."""
    return link.rstrip("/").rpartition("/")[2]


def written_json(document: Any) -> Body:
    """Return a JSON body, in which arrays are lists.

    Raises:
        ValueError: a number is NaN or infinite.
        TypeError: a value cannot be written as JSON.
    """
    try:
        text = json.dumps(document, allow_nan=False, separators=(",", ":"), default=_listed)
    except ValueError as error:
        raise ValueError("a label, an option or an entry of sparse rows is NaN or infinite") from error
    return Body(JSON, (text.encode(),))


def _listed(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
