"""What the parts of a search take on this machine."""

import time
from collections.abc import Callable

import numpy as np

from app.core.arrays import Whole, row_blocks
from app.core.indexes.answer import Costs
from app.core.indexes.banding import SEGMENT, Banding, Candidates, bucket_words, segment
from app.core.indexes.equal_runs import HashBytes
from app.core.indexes.hashed_rows import packed_codes
from app.core.indexes.scanning import nearest

# Each part is timed for so many queries: the median is not that of one that was disturbed.
_QUERIES = 15
# A search looks at some part of the rows at the most, in no order.
_PART = 10
_LONG = 32


def measured(queries: HashBytes, rows: HashBytes, bits: int, k: int, seed: int, threads: int) -> Costs:
    """Nanoseconds of a search of one row, of comparing one more, in its turn or anywhere, and of looking a band up."""
    n, s = rows.shape
    asked, codes = packed_codes(queries[:_QUERIES], bits), packed_codes(rows, bits)
    few = np.random.Generator(np.random.PCG64(seed)).permutation(n)[: max(1, n // _PART)]

    def of_search(slots: Whole | None) -> float:
        return _median(lambda i: nearest(asked[i : i + 1], codes, s, bits, k, slots, threads=threads), len(asked))

    def of_lookup(bands: Banding) -> tuple[float, float]:
        """Of looking the bands of a query up, and how many rows that gives."""
        words = np.ascontiguousarray(bucket_words(asked, bits, bands).T)
        candidates = Candidates(tuple(segment(codes[some], bits, bands) for some in row_blocks(n, SEGMENT)), n)

        def look_up(i: int) -> Whole:
            return candidates.of(candidates.buckets(words[i]))

        found = [len(look_up(i)) for i in range(len(words))]
        return _median(look_up, len(words)), float(np.median(found))

    of_one, of_few, of_all = of_search(few[:1]), of_search(few), of_search(None)
    # Long bands have few rows, and one hash has many.
    long = Banding(max(1, s // _LONG), min(s, _LONG))
    (of_bands, _), (of_hash, collected) = of_lookup(long), of_lookup(Banding(1, 1))
    band = of_bands / long.bands
    compared, taken = max(0.0, of_few - of_one) / len(few), max(0.0, of_hash - band) / max(1.0, collected)
    return Costs(search=of_one, scanned_row=max(0.0, of_all - of_one) / n, candidate=compared + taken, band=band)


def _median(search: Callable[[int], object], times: int) -> float:
    """The median of the nanoseconds that it takes, for one query after the other."""
    taken = []
    for i in range(times):
        began = time.perf_counter_ns()
        search(i)
        taken.append(time.perf_counter_ns() - began)
    return float(np.median(taken))
