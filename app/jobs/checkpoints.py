"""Checkpoints of jobs: what long work goes on from, and which versions may go on from it."""

import secrets
from hashlib import blake2b
from importlib.metadata import version
from typing import NamedTuple

MAX_CHECKPOINT_BYTES = 256 << 20
# Version of what is stored of a job. To be raised with every change of its record, and of what any work's states hold.
FORMAT = 4
_VERSIONS = " ".join(f"{package} {version(package)}" for package in ("bochner", "numpy", "scipy"))
# Stands before every stored state: the versions that made it.
_MAKERS = f"state {FORMAT} {_VERSIONS}\n".encode()


class Checkpoint(NamedTuple):
    """How far some work has come: the state it goes on from, and the last progress that it reported."""

    state: bytes
    """The state that the work gave to `Progress.checkpoint`."""
    step: int
    of: int
    objective: float | None = None


def progress(step: int, of: int, objective: float | None) -> dict[str, str]:
    """Progress as it stands in a job's record; `of` is 0 where nobody knows how many steps there are."""
    return {
        "progress": f"{min(1.0, step / of) if of > 0 else 0.0:.6g}",
        "step": str(step),
        "of": str(of),
        "objective": "" if objective is None else repr(float(objective)),
    }


def pack_state(state: bytes) -> bytes:
    """A state as it is stored."""
    return _MAKERS + state


def name(stored_state: bytes) -> str:
    """A name for a stored state that no other has, and that ends in what `content_of` gives."""
    return f"checkpoint:{secrets.token_hex(4)}{blake2b(stored_state, digest_size=8).hexdigest()}"


def content_of(name: str) -> str:
    """The same for all checkpoints that hold the same."""
    return name[-16:]


def unpack_state(stored_state: bytes) -> bytes | None:
    """The state of a stored checkpoint; None if other versions made it.

    What one algorithm began and another ended would be the result of neither.
    """
    return stored_state.removeprefix(_MAKERS) if stored_state.startswith(_MAKERS) else None
