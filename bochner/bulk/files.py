"""Files on any filesystem that fsspec supports: listed below an address, read, and written completely or not at all."""

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
# Entries of a listing that change with the content of a file; their names differ between filesystems.
_TELL = ("size", "ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")


class File(NamedTuple):
    """A file: its address, its path relative to the address that was listed, its size in bytes, and a version tag."""

    url: str
    name: str
    size: int
    version: str


def located(url: str) -> tuple[AbstractFileSystem, str]:
    """Return the filesystem of an address, and the path in it; Refused if there is no such filesystem."""
    if "::" in url:
        raise Refused(f"{url}: expected one address, got a chain of them, with '::'")
    try:
        filesystem, path = url_to_fs(url)
    except Exception as error:  # each filesystem has its own exceptions
        raise Refused(f"{url}: {said(error)}") from None
    return filesystem, str(path).rstrip("/") or str(path)[:1]


def absolute(url: str) -> str:
    """Return the address in a form that any process understands, whatever its current directory."""
    return _url(*located(url))


def _url(filesystem: AbstractFileSystem, path: str) -> str:
    return path if isinstance(filesystem, LocalFileSystem) else str(filesystem.unstrip_protocol(path))


def is_local(url: str) -> bool:
    """Whether the address is a path of this machine."""
    return isinstance(located(url)[0], LocalFileSystem)


def exists(url: str) -> bool:
    """Whether a file or folder exists at the address."""
    filesystem, path = located(url)
    return bool(filesystem.exists(path))


def is_empty(folder: str) -> bool:
    """Whether the folder is missing, or has only names that readers of tables ignore."""
    filesystem, path = located(folder)
    if not filesystem.exists(path):
        return True
    return all(one.rstrip("/").rpartition("/")[2][:1] in ("_", ".") for one in filesystem.ls(path, detail=False))


def is_file(url: str) -> bool:
    """Whether the address is that of an existing file."""
    filesystem, path = located(url)
    return bool(filesystem.isfile(path))


def found(url: str, suffixes: tuple[str, ...]) -> list[File]:
    """Return the file at an address, or all files with these suffixes in the folder there and its subfolders, in order.

    Like readers of tables, it ignores names that begin with _ or `.`.

    Raises:
        Refused: no file is found.
    """
    filesystem, path = located(url)
    filesystem.invalidate_cache()
    try:
        is_one = filesystem.isfile(path)
        listed = {path: filesystem.info(path)} if is_one else filesystem.find(path, detail=True)
    except (OSError, ValueError, NotImplementedError) as error:
        raise Refused(f"{url}: {said(error)}") from None
    if is_one and not path.endswith(suffixes):
        raise Refused(f"{url}: expected a name that ends in {', '.join(suffixes)}")
    files = []
    for one, told in sorted(listed.items()):
        # Keys of an object store may have empty parts; local paths have none.
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
    """Open a file for reading at arbitrary positions, for the duration of a with block."""
    filesystem, path = located(url)
    # No read-ahead: callers know which bytes they need, and the columns of a table lie far apart.
    with filesystem.open(path, "rb", cache_type="none") as file:
        yield file


def taken(url: str, start: int, stop: int) -> bytes:
    """Return the bytes of a file from `start` to `stop`, or to its end."""
    filesystem, path = located(url)
    if stop <= start:
        return b""
    read: bytes = filesystem.cat_file(path, start=start, end=stop)
    return read


@contextmanager
def written(url: str) -> Iterator[Any]:
    """Open a new file, which exists once the with block has ended, and not at all if the block raises.

    On the local machine it has a temporary name until then; object stores never show incomplete objects.
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
    except FileNotFoundError:  # folders have to be made first here; for an object store, this could create a bucket
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
    """Remove temporary files that killed runs have left in a local folder while they wrote files of this pattern."""
    for path in folder.rglob(f".{pattern}.*{_PARTIAL}"):
        path.unlink(missing_ok=True)


def read_json(url: str) -> Any:
    """Return the content of a JSON file; None if there is no file."""
    filesystem, path = located(url)
    try:
        return json.loads(filesystem.cat_file(path))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise Refused(f"{url}: {said(error)}") from None


def write_json(url: str, document: Any) -> None:
    """Write a JSON file, replacing an existing one."""
    with written(url) as file:
        file.write(json.dumps(document, indent=1).encode())


def said(error: Exception) -> str:
    """Return the message of an error as one line."""
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return words.splitlines()[0] if words else type(error).__name__
