"""Start further processes that run this very package, whatever the current directory; and end this one in time.

`python -m app` would look in the current directory first, where the source of another version may be. So such a process
runs this file, which then runs a module as `-m` does. The current directory is kept, as settings may name files
relative to it.
"""

import os
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

# Seconds that a process takes to end at most, once all is closed.
_LAST_SECONDS = 3.0


def command(module: str, *arguments: str) -> list[str]:
    """Return the command line of a process that runs a module with arguments."""
    return [sys.executable, "-P", __file__, module, *arguments]


@contextmanager
def ended_soon_after() -> Iterator[None]:
    """End the process soon after the block, even if a thread still computes something that nobody waits for."""
    try:
        yield
    finally:
        timer = Timer(_LAST_SECONDS, os._exit, (0,))
        timer.daemon = True
        timer.start()


def run() -> None:
    """Run the module named by the first argument of the command line, with the arguments that follow."""
    home = str(Path(__file__).parents[1])
    if home not in sys.path:  # if it is there already, it keeps its position
        sys.path.insert(0, home)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run()
