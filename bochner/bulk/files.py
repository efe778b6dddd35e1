"""Files wherever fsspec finds them: listed below an address, read, and written whole or not at all."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from bochner.bulk.errors import Refused

_PARTIAL = ".partial"
# Of what a listing tells of a file, what changes with its content; filesystems call it by other names.
_TELL = ("size", "ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")


class File(NamedTuple):
    """A file: its address, its path below what was named, its length in bytes, and a mark of its version."""

    url: str
    name: str
    size: int
    version: str


def located(url: str) -> tuple[AbstractFileSystem, str]:
    """The filesystem of an address, and the path there; Refused where there is no such filesystem."""
    if "::" in url:
        raise Refused(f"{url}: expected one address, got a chain of them, with '::'")
    try:
        filesystem, path = url_to_fs(url)
    except Exception as error:  # each filesystem has exceptions of its own
        raise Refused(f"{url}: {said(error)}") from None
    return filesystem, str(path).rstrip("/") or str(path)[:1]


def absolute(url: str) -> str:
    """The address as any process understands it."""
    return _url(*located(url))


def _url(filesystem: AbstractFileSystem, path: str) -> str:
    return path if isinstance(filesystem, LocalFileSystem) else str(filesystem.unstrip_protocol(path))


def is_local(url: str) -> bool:
    """Whether the address is a path of this machine."""
    return isinstance(located(url)[0], LocalFileSystem)


def exists(url: str) -> bool:
    """Whether something is there."""
    filesystem, path = located(url)
    return bool(filesystem.exists(path))


def is_empty(folder: str) -> bool:
    """Whether nothing is there but names that readers of tables pass over."""
    filesystem, path = located(folder)
    if not filesystem.exists(path):
        return True
    return all(one.rstrip("/").rpartition("/")[2][:1] in ("_", ".") for one in filesystem.ls(path, detail=False))


def is_file(url: str) -> bool:
    """Whether a file is there."""
    filesystem, path = located(url)
    return bool(filesystem.isfile(path))


def found(url: str, suffixes: tuple[str, ...]) -> list[File]:
    """The file at an address, or all with such names in the folder there and those below, in order.

    As readers of tables do, names that begin with _ or . are passed over.

    Raises:
        Refused: there is nothing.
    """
    filesystem, path = located(url)
    filesystem.invalidate_cache()
    try:
        is_one = filesystem.isfile(path)
        listed = {path: filesystem.info(path)} if is_one else filesystem.find(path, detail=True)
    except (OSError, ValueError, NotImplementedError) as error:
        raise Refused(f"{url}: {said(error)}") from None
    files = []
    for one, told in sorted(listed.items()):
        # Keys of an object store may have empty parts; paths of this machine have none.
        parts = [part for part in one.removeprefix(path).split("/") if part] or [one.rpartition("/")[2]]
        if one == path or (one.endswith(suffixes) and not any(part[0] in "_." for part in parts)):
            files.append(File(_url(filesystem, one), "/".join(parts), told["size"], _version(told)))
    if not files:
        raise Refused(f"{url}: there is no file {', '.join(suffixes)}" if listed else f"{url}: there is nothing")
    return files


def _version(told: dict[str, Any]) -> str:
    kept = [str(told[key]) for key in _TELL if told.get(key) is not None]
    return hashlib.sha256("\n".join(kept).encode()).hexdigest()[:16]


@contextmanager
def opened(url: str) -> Iterator[Any]:
    """A file that is read, here and there, for the length of a with block."""
    filesystem, path = located(url)
    # Nothing is read ahead: who reads knows where, and columns of a table lie far apart.
    with filesystem.open(path, "rb", cache_type="none") as file:
        yield file


def taken(url: str, start: int, stop: int) -> bytes:
    """The bytes of a file from `start` to `stop`, or to its end."""
    filesystem, path = located(url)
    if stop <= start:
        return b""
    read: bytes = filesystem.cat_file(path, start=start, end=stop)
    return read


@contextmanager
def written(url: str) -> Iterator[Any]:
    """A new file, which is there once the with block has ended, and not at all if it raises.

    On this machine it has another name until then; stores of objects show none that is not whole.
    """
    filesystem, path = located(url)
    if not is_local(url):
        with _uploaded(filesystem, path) as file:
            yield file
        return
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{uuid4().hex[:8]}{_PARTIAL}")
    try:
        with pa.OSFile(str(partial), "wb") as file:
            yield file
        partial.replace(target)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


@contextmanager
def _uploaded(filesystem: AbstractFileSystem, path: str) -> Iterator[Any]:
    try:
        file = filesystem.open(path, "wb", autocommit=False)
    except FileNotFoundError:  # where folders are to be made first; a store of objects would make a bucket
        filesystem.makedirs(path.rpartition("/")[0], exist_ok=True)
        file = filesystem.open(path, "wb", autocommit=False)
    try:
        yield file
        file.close()
    except BaseException:
        with suppress(OSError, NotImplementedError):
            file.discard()
        raise
    file.commit()
    filesystem.invalidate_cache(path.rpartition("/")[0])


def swept(folder: Path, pattern: str) -> None:
    """Remove what runs have left in a folder of this machine that were killed while they wrote such files."""
    for path in folder.rglob(f".{pattern}.*{_PARTIAL}"):
        path.unlink(missing_ok=True)


def read_json(url: str) -> Any:
    """What a file of JSON says; None if there is none."""
    filesystem, path = located(url)
    try:
        return json.loads(filesystem.cat_file(path))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise Refused(f"{url}: {said(error)}") from None


def write_json(url: str, document: Any) -> None:
    """Write a file of JSON, which replaces one that is there."""
    with written(url) as file:
        file.write(json.dumps(document, indent=1).encode())


def said(error: Exception) -> str:
    """What went wrong, in a line."""
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return words.splitlines()[0] if words else type(error).__name__
