"""What must be so for something to be changed."""

from collections.abc import Callable
from contextlib import suppress

from app.store.errors import NewerVersion, StoreDamaged
from app.store.manifest import Manifest

Check = Callable[[str | None], None]
"""Is told the digest of what is there, "" where it has none yet, None for nothing; raises if it is to be left alone."""


def unchecked(digest: str | None) -> None:
    """The check that whatever is there passes."""
    del digest


def digest_in(kind: type[Manifest], stored: bytes) -> str:
    """The digest in a manifest as it is stored; "" where it cannot be read."""
    with suppress(StoreDamaged, NewerVersion):
        return kind.parse(stored).digest
    return ""
