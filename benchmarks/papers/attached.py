"""A service that ends with the process that started it, however that one ends, and leaves no data behind.

Run: python -m benchmarks.papers.attached serve --data-dir DIR [OPTION ...]
"""

import argparse
import os
import shutil
import signal
import time
from pathlib import Path
from threading import Thread

from app.__main__ import main as bochner

_LOOK_SECONDS = 0.5


def end_with(parent: int) -> None:
    """Ask this process to end, once `parent` is gone."""
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Run the command line of the service; then remove the folder that its data folder is in."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path)
    folder = parser.parse_known_args()[0].data_dir.parent
    Thread(target=end_with, args=(os.getppid(),), name="parent-watch", daemon=True).start()
    try:
        bochner()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
