"""Requests as data, and the steps of which calls are made. Nothing here talks to anybody: clients carry steps out."""

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
"""A call: it gives steps, is sent what came of each, and returns the answer. What fails is thrown into it."""

JSON = "application/json"
NPY = "application/x-npy"
NPZ = "application/x-npz"
_PIECE_BYTES = 1 << 20


class Body(NamedTuple):
    """What is sent. It can be read again and again, as requests may be."""

    media_type: str
    parts: tuple[Buffer, ...]

    @property
    def length(self) -> int:
        """Bytes in all."""
        return sum(memoryview(part).nbytes for part in self.parts)

    def pieces(self) -> Iterator[Buffer]:
        """The bytes, some at a time; few of them in one piece, that a busy sender leaves none of them behind."""
        if self.length <= _PIECE_BYTES:
            yield b"".join(self.parts)
            return
        for part in self.parts:
            view = memoryview(part)
            for start in range(0, view.nbytes, _PIECE_BYTES):
                yield view[start : start + _PIECE_BYTES]


class Sink(Protocol[T_co]):
    """Where the body of an answer goes."""

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""

    def end(self) -> T_co:
        """The answer, once all bytes are there; InvalidAnswer if it is none."""


class Joined(Generic[T]):
    """Keeps a body in memory, and reads it as a whole."""

    def __init__(self, read: Callable[[bytes], T]) -> None:
        self._read, self._pieces = read, bytearray()

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""
        self._pieces += piece

    def end(self) -> T:
        """What the body says; InvalidAnswer if it says something else."""
        try:
            return self._read(bytes(self._pieces))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            came = bytes(self._pieces[:80]).decode(errors="replace")
            raise InvalidAnswer(f"the service answered {came!r}, which cannot be read: {error!r}") from error


class Reading(NamedTuple, Generic[T]):
    """How an answer of one status is read."""

    media_type: str
    """What its body must be; as in a shell, `*` stands for anything."""
    sink: Callable[[Mapping[str, str]], Sink[T]]
    """Makes the place for the body, by the headers."""


Reads = Mapping[int, Reading[T]]
"""The statuses that an answer may have, and how it is read then."""


def as_json(read: Callable[[Any], T], *statuses: int) -> Reads[T]:
    """Reads JSON, from which `read` makes the answer; of status 200 if no others are named."""
    return dict.fromkeys(statuses or (200,), Reading(JSON, lambda _: Joined(lambda body: read(json.loads(body)))))


def as_document(document: Any) -> Any:
    """JSON as it is."""
    return document


def as_bytes(media_type: str) -> Reads[bytes]:
    """Keeps the bytes as they are."""
    return {200: Reading(media_type, lambda _: Joined(bytes))}


def as_text(media_type: str) -> Reads[str]:
    """Reads text."""
    return {200: Reading(media_type, lambda _: Joined(bytes.decode))}


def as_nothing() -> Reads[None]:
    """Reads answers that say nothing beside their status."""
    return {204: Reading("*", lambda _: Joined(lambda _: None))}


@dataclass(frozen=True, kw_only=True)
class Request(Generic[T]):
    """One request of the contract."""

    method: str
    path: str
    reads: Reads[T]
    params: Mapping[str, Any] = field(default_factory=dict)
    """Those that are None are left out."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body | None = None
    repeatable: bool = True
    """Whether it does no harm to carry it out twice."""
    done_by: frozenset[str] = frozenset()
    """Slugs that mean, of a request that is sent again, that it was carried out the first time."""
    patient: bool = True
    """Whether to send it again where the service is away or busy; else that is the answer."""
    read_timeout: float | None = None
    """Seconds that the service may be silent; None for those of the client."""


class Attempt(NamedTuple):
    """A step: send a request once. It gives what the request reads, or an open stream of bytes."""

    request: Request[Any]
    keep_open: bool


class Sleep(NamedTuple):
    """A step: wait."""

    seconds: float


class Read(NamedTuple):
    """A step: the next bytes of an open stream; b"" at its end."""

    stream: Any


class Close(NamedTuple):
    """A step: leave an open stream."""

    stream: Any


class Patience(NamedTuple):
    """A step: for how many seconds requests are sent again."""


class Turn(NamedTuple):
    """A step: wait until the client sends another request. The attempt that follows ends the turn."""


class Give(NamedTuple):
    """A step: hand a value to whoever iterates."""

    value: Any


Step = Attempt | Sleep | Read | Close | Patience | Turn | Give


class Stream(NamedTuple, Generic[T]):
    """A call that hands out values one after another."""

    flow: Flow[None]


def advance(flow: Flow[Any], outcome: Any) -> Step:
    """The next step of a flow after what came of the one before: a value, or an exception to be thrown into it."""
    return flow.throw(outcome) if isinstance(outcome, Exception) else flow.send(outcome)


def address(*segments: str) -> str:
    """The path below the service's address that these segments make.

    Raises:
        ValueError: a segment would lead elsewhere.
    """
    for one in segments:
        if one in ("", ".", ".."):
            raise ValueError(f"{one!r} came; a name or an id is wanted")
    return "/" + "/".join(quote(one, safe="") for one in segments)


def preconditions(if_match: str | None, only_new: bool = False) -> dict[str, str]:
    """The headers of a request that is refused unless what is there has a digest, or unless nothing is there."""
    return tagged("If-Match", if_match) | ({"If-None-Match": "*"} if only_new else {})


def tagged(header: str, digest: str | None) -> dict[str, str]:
    """A header that names the version of a thing by its digest; none for None."""
    return {} if digest is None else {header: f'"{digest}"'}


def unless_known(reads: Reads[T]) -> Reads[T]:
    """Reads an answer; NotModified where what was asked for has the digest that was named."""

    def sink(_: Mapping[str, str]) -> Sink[T]:
        raise NotModified("it has the digest that was named")

    return {**reads, 304: Reading("*", sink)}


def last_segment(link: str) -> str:
    """The name or id that a link ends with, or that came in the place of a link."""
    return link.rstrip("/").rpartition("/")[2]


def written_json(document: Any) -> Body:
    """A body of JSON, in which arrays are lists.

    Raises:
        ValueError: a number is NaN or infinite.
        TypeError: something has no place in JSON.
    """
    return Body(JSON, (json.dumps(document, allow_nan=False, separators=(",", ":"), default=_listed).encode(),))


def _listed(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
