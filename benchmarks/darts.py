"""Weighted minhash by darts beside GCWS, of long sparse rows, in one run on one machine, on one thread.

Rows have 1,000 positive entries and 1,024 hashes. *Of a million* dimensions each row has coordinates of its own, and
GCWS draws the parameters of each. *Shared*: all rows have theirs among the same 4,000 of a million, each of which GCWS
draws once for a block of rows. *From a table*: the same rows in 4,000 dimensions, where GCWS has a table of 262 MB,
which is filled before. Both samplers take turns, on processor time, which other work on the machine changes little.
What bounds darts on a machine is how many random words it makes: so a million of them are timed too, two for a dart.
"""

import time
from collections.abc import Callable
from functools import partial
from math import log

import numpy as np
from scipy import sparse

from app.core.hashing.encodings import Encoder, Encoding
from app.core.hashing.parameter_stream import philox
from app.core.maps import FeatureMap, make_map
from app.core.spec import MapSpec
from benchmarks.timing import Plan, Report, Times, in_turns

TITLE = "Hashing by darts"
SECONDS = 20.0
S, ENTRIES, SHARED, WIDE = 1024, 1000, 4000, 1_000_000
LEAST = {"of a million": 20, "shared": 5, "from a table": 1.2}
"""How many times as long GCWS must take."""
_WORDS = 1 << 12


def rows_of(case: str, n: int) -> sparse.csr_array:
    """Rows of the case."""
    rng = np.random.default_rng(0)
    dim = SHARED if case == "from a table" else WIDE
    among = np.arange(SHARED) if case == "from a table" else rng.choice(WIDE, SHARED, replace=False)
    of_row = [rng.choice(WIDE if case == "of a million" else among, ENTRIES, replace=False) for _ in range(n)]
    parts = np.exp(rng.standard_normal(n * ENTRIES)), np.concatenate(of_row), np.arange(n + 1) * ENTRIES
    found = sparse.csr_array(parts, shape=(n, dim))
    found.sort_indices()
    return found


def opened(kind: str, dim: int) -> FeatureMap:
    """A map of kernel gmm, on one thread."""
    asked = {"input_dim": dim, "kernel": {"kind": "gmm"}, "sampler": {"kind": kind}, "s": S, "seed": 1}
    return make_map(MapSpec.model_validate(asked))


def worked(work: Callable[[], object]) -> Callable[[], float]:
    """A call that does the work and returns its seconds of a processor."""

    def call() -> float:
        begun = time.process_time()
        work()
        return time.process_time() - begun

    return call


def word_time(plan: Plan) -> Times:
    """Seconds of four random words, of many drawn at once."""
    words = np.zeros((4, _WORDS), np.uint64)
    times = 1 if plan.tiny else 250

    def draw() -> None:
        for _ in range(times):
            philox((np.uint64(1), np.uint64(1)), 0, words)

    return Times(in_turns({"words": worked(draw)}, plan.seconds(1.0))["words"].values / (times * _WORDS))


def run(report: Report, plan: Plan) -> None:
    """Write the table of the three cases."""
    by = Encoder(Encoding.pairs)
    cells = []
    darts_of_row = S * (log(S) + 3)
    of_word = word_time(plan)
    for case, least in LEAST.items():
        n = 3 if plan.tiny else 20 if case == "of a million" else 200
        rows = rows_of(case, n)
        maps = {kind: opened(kind, rows.shape[1]) for kind in ("gcws", "dart_minhash")}
        works = {kind: worked(partial(one.codes, rows, by)) for kind, one in maps.items()}
        found = in_turns(works, plan.seconds(SECONDS))
        times = found["gcws"].over(found["dart_minhash"])
        limit = darts_of_row / 2 * of_word.median
        of_row = [1e3 * found[kind].median / n for kind in works]
        cells.append(
            (case, *(f"{one:.2f} ms" for one in of_row), f"{times.spread()} ×", f"{1e3 * limit:.2f} ms", f"{least} ×")
        )
        report.at_least(f"GCWS takes, of darts, {case}", times.median, least, f"{times.spread()} ×", " ×")
    report.say(
        f"Rows of {ENTRIES:,} entries, {S:,} hashes, one thread, in processor time of a row. The limit of the machine "
        f"is what the random words of {darts_of_row:,.0f} darts take, so many as a row looks at."
    )
    report.table(("rows", "gcws", "dart_minhash", "gcws takes", "limit", "wanted"), cells)
