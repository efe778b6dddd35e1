"""Send fuzzed requests to a service that is started for it.

python -m service_tests.fuzz --count 100000 --seed 15 [--keys]
"""

import argparse
import sys
import tempfile
from pathlib import Path

from service_tests.fuzz.run import MiB, attacked, run


def main() -> None:
    """Tell what was answered; what is wrong is raised."""
    parser = argparse.ArgumentParser(prog="python -m service_tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="cases to send")
    parser.add_argument("--seed", type=int, default=0, help="of the cases")
    parser.add_argument("--keys", action="store_true", help="have the service ask for keys")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, attacked(Path(directory) / "data", asked.keys) as found:
        seen, grown = run(found, asked.count, asked.seed)
    sys.stdout.write(f"{dict(sorted(seen.items()))}, {grown / MiB:.0f} MiB more, nothing wrong\n")


if __name__ == "__main__":
    main()
