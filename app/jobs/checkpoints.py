"""Checkpoints of jobs: saved states from which long work resumes, and which software versions may resume from them."""

import secrets
from hashlib import blake2b
from importlib.metadata import version
from typing import NamedTuple

MAX_CHECKPOINT_BYTES = 256 << 20
# Version of the stored format of jobs. Raise it with every change of the job record or of the contents of any saved
# state.
FORMAT = 5
_VERSIONS = " ".join(f"{package} {version(package)}" for package in ("bochner", "numpy", "scipy"))
# Prefix of every stored state: the versions that made the state.
_MAKERS = f"state {FORMAT} {_VERSIONS}\n".encode()


class Checkpoint(NamedTuple):
    """Saved progress of some work: the state to resume from, and the progress reported last."""

    state: bytes
    """State that the work passed to `Progress.checkpoint`."""
    step: int
    of: int
    objective: float | None = None


def progress(step: int, of: int, objective: float | None) -> dict[str, str]:
    """Return progress as fields of a job's record; `of` is 0 if the number of steps is unknown."""
    return {
        "progress": f"{min(1.0, step / of) if of > 0 else 0.0:.6g}",
        "step": str(step),
        "of": str(of),
        "objective": "" if objective is None else repr(float(objective)),
    }


def pack_state(state: bytes) -> bytes:
    """Return a state in its stored form, with the versions that made it."""
    return _MAKERS + state


def name(stored_state: bytes) -> str:
    """Return a unique name for a stored state; it ends with the digest that `content_of` returns."""
    return f"checkpoint:{secrets.token_hex(4)}{blake2b(stored_state, digest_size=8).hexdigest()}"


def content_of(name: str) -> str:
    """Return the digest at the end of a checkpoint's name, equal for checkpoints with equal content."""
    return name[-16:]


def unpack_state(stored_state: bytes) -> bytes | None:
    """Return the state of a stored checkpoint; None if other versions made it.

    Work begun by one version of an algorithm and finished by another would yield the result of neither.
    """
    return stored_state.removeprefix(_MAKERS) if stored_state.startswith(_MAKERS) else None
