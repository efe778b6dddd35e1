"""Further processes of this program, which run the package that this file lies in, wherever they are started.

`python -m app` would look in the current directory first, where another version's source may lie. So such a process
runs this file, which then runs a module as `-m` does. The directory stays as it is: settings may name files in it.
"""

import runpy
import sys
from pathlib import Path


def command(module: str, *arguments: str) -> list[str]:
    """The command line of a process that runs a module with arguments."""
    return [sys.executable, "-P", __file__, module, *arguments]


def run() -> None:
    """Run the module that the command line names first, with the arguments that follow."""
    home = str(Path(__file__).parents[1])
    if home not in sys.path:  # where it is, its place among the others is kept
        sys.path.insert(0, home)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run()
