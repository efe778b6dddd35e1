"""Send fuzzed requests to a service that is started for it.

python -m service_tests.fuzz --count 100000 --seed 15 [--keys]
"""

import argparse
import sys
import tempfile
import time
from math import inf
from pathlib import Path

from service_tests.fuzz.run import MiB, attacked, run


def main() -> int:
    """Tell what was sent, answered, and wrong; give 1 if anything was."""
    parser = argparse.ArgumentParser(prog="python -m service_tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="cases to send")
    parser.add_argument("--seed", type=int, default=0, help="of the cases; the order in which they meet is not drawn")
    parser.add_argument("--seconds", type=float, default=inf, help="send no more after so many")
    parser.add_argument("--keys", action="store_true", help="have the service ask for keys")
    asked = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory, attacked(Path(directory) / "data", asked.keys) as found:
        figures = run(*found, asked.count, asked.seed, asked.keys, asked.seconds, _say)
    sent = figures.seen["whole"] + figures.seen["broken"]
    lines = [
        *(f"{seconds:.1f} s: {begun!r}" for seconds, begun in sorted(figures.waited)[-5:]),
        *figures.wrong,
        f"{sent} cases of seed {asked.seed}, {'with' if asked.keys else 'without'} keys, in "
        f"{time.monotonic() - began:.0f} s: {dict(sorted(figures.seen.items()))}",
        "MiB: " + " ".join(f"{one / MiB:.0f}" for one in figures.memory),
        f"{len(figures.wrong)} wrong",
    ]
    _say("\n".join(lines))
    return int(bool(figures.wrong))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
