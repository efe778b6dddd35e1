"""Exceptions of the services, which know nothing of HTTP. For bad input there is InvalidInput of `core.errors`."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from app.store.errors import NewerVersion, StoreDamaged
from app.store.manifest import Manifest
from app.store.pins import User

Check = Callable[[str | None], None]
"""Receives the digest of the stored object, "" if it has none yet, None if there is no object; raises to protect it."""


def accept_any(digest: str | None) -> None:
    """Accept whatever is stored; the default `Check`."""
    del digest


def digest_in(kind: type[Manifest], stored: bytes) -> str:
    """Return the digest in a stored manifest, or "" if it cannot be read."""
    with suppress(StoreDamaged, NewerVersion):
        return kind.parse(stored).digest
    return ""


class MapNotFound(Exception):
    """There is no map with that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no map {name!r}")


class DatasetNotFound(Exception):
    """There is no dataset with that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no dataset {name!r}")


class IndexNotFound(Exception):
    """There is no index with that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no index {name!r}")


class AliasNotFound(Exception):
    """There is no alias with that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no alias {name!r}")


class VectorNotFound(Exception):
    """The index has no vector with that id."""

    def __init__(self, name: str, vector_id: int | str) -> None:
        hint = "" if isinstance(vector_id, str) else f"; if the id is the string {str(vector_id)!r}, say kind=string"
        super().__init__(f"index {name!r} has no vector {vector_id!r}{hint}")


class ArrayNotFound(Exception):
    """The map has no such array."""


class MapExists(Exception):
    """A map with another spec has the name."""

    def __init__(self, name: str, digest: str | None) -> None:
        which = "is being built" if digest is None else f"exists (digest {digest})"
        super().__init__(f"a map {name!r} with another spec {which}; delete it or take another name")


class NotReady(Exception):
    """A map or an index is still being built, or its job failed.

    Args:
        name: name of the map or index.
        job: id of its job.
        error: reason why the job failed; None if it did not.
    """

    called: ClassVar[str]

    def __init__(self, name: str, job: str, error: dict[str, Any] | None) -> None:
        why = "is still being built" if error is None else f"could not be built: {error['detail']}"
        super().__init__(f"{self.called} {name!r} {why}; see its job")
        self.job = job


class MapNotReady(NotReady):
    """The map is still being built, or its job failed."""

    called = "map"


class IndexNotReady(NotReady):
    """The job that finds the bands of the index has not finished, or failed."""

    called = "index"


class DatasetExists(Exception):
    """A dataset of other rows has the name."""

    def __init__(self, name: str, digest: str) -> None:
        super().__init__(f"a dataset {name!r} of other rows exists (digest {digest}); delete it or take another name")


class IndexExists(Exception):
    """Another index has the name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"an index {name!r} that was asked for otherwise exists; delete it or take another name")


class InUse(Exception):
    """Indexes or aliases refer to a map or an index."""

    called: ClassVar[str]

    def __init__(self, name: str, users: Sequence[User]) -> None:
        self.indexes, self.aliases = (
            sorted({one.name for one in users if one.kind == of}) for of in ("index", "alias")
        )
        told = [_listed(*one) for one in (("index", self.indexes), ("alias", self.aliases)) if one[1]]
        super().__init__(f"{self.called} {name!r} is used by {' and '.join(told)}; delete what uses it first")


class MapInUse(InUse):
    """Indexes or aliases refer to the map."""

    called = "map"


class IndexInUse(InUse):
    """Aliases refer to the index."""

    called = "index"


def _listed(noun: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"{noun if len(names) == 1 else noun + 'es'} {', '.join(map(repr, names[:10]))}{more}"
