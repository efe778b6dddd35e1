"""Keeping the data directory of the embedded store from other users."""

import logging
import os
import stat
from pathlib import Path

from app.store.binary import StoreNotStarted

_OURS = {"lock", "store.log", "store.sock", "appendonlydir", "appendonly.aof"}
_NOTHING = {"lost+found"}  # a file system that is new

logger = logging.getLogger(__name__)


def make_private(data_dir: Path) -> None:
    """Close a directory that other users may enter.

    One of another user's may be shared with this one by its group, as volumes of containers are: what the store writes
    there is its own user's alone.

    Raises:
        StoreNotStarted: it cannot be closed, or it has other things in it, whose users would be locked out.
    """
    found = data_dir.stat()
    open_to = stat.S_IMODE(found.st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
    if not open_to:
        return
    mode = f"{stat.S_IMODE(found.st_mode):o}"
    if found.st_uid != os.geteuid():
        if open_to & stat.S_IWOTH:
            raise StoreNotStarted(
                f"Every user may write in the data directory {data_dir} (mode {mode}), which is not this user's: "
                "close it, or name a directory inside of it, which is then made."
            )
        return
    there = {path.name for path in data_dir.iterdir()}
    if there - _NOTHING and not there & _OURS:
        raise StoreNotStarted(
            f"The data directory {data_dir} is open to other users (mode {mode}) and holds other things: close it with "
            f"`chmod 700 {data_dir}`, or name a directory of its own."
        )
    data_dir.chmod(stat.S_IRWXU)
    logger.warning("the data directory %s was open to other users (mode %s); it is closed now", data_dir, mode)
