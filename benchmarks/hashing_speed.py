"""Time and memory of consistent weighted sampling, beside datasketch's weighted minhash, in one run on one machine.

Dense: signed rows of 200 normal entries, 256 hashes. datasketch takes no negative entry and gets the rows after the
transform, 400 entries of which 200 are not zero; its transform is not timed, ours is. Ours and theirs alternate, and
medians are compared. Sparse: rows of 100 entries out of ten million, where parameters are drawn as they are met, and
the same entries folded into 10,000 dimensions, where they stand in a table. datasketch gets five of the latter at once,
as dense rows after the transform: it takes no others, and of ten million its parameters would fill 61 GB. Memory is the
peak of a fresh process above what it held when everything was imported and compiled: this module, run with a case.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from datasketch import WeightedMinHashGenerator
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import Rows, row_blocks
from app.core.hashing.encodings import Encoder, Encoding
from app.core.maps import ConsistentSamplingMap
from app.core.spec import MapSpec
from benchmarks.timing import Peak, Plan, Report, Times, cores, in_turns, timed

TITLE = "Hashing"
SECONDS = 6.0
S = 256
DIM = 200
ENCODERS = {"zero_bit": Encoder(Encoding.zero_bit), "b_bit": Encoder(Encoding.b_bit, 8)}
BATCH = 10_000
# Vectors that datasketch hashes in a round, and how many of them `minhash_many` gets at once: few fit the cache.
THEIRS, AT_ONCE = 200, (5, 200)

# Sparse rows that datasketch gets.
FEW = 5
SPARSE_ROWS, NON_ZEROS, SPARSE_DIM, FOLDED_DIM = 1_000, 100, 10_000_000, 10_000


def opened(dim: int, threads: int) -> ConsistentSamplingMap:
    """A map of kernel gmm, its tables filled."""
    asked = {"input_dim": dim, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": S, "seed": 1}
    return ConsistentSamplingMap(MapSpec.model_validate(asked), threads=threads)


def dense_rows(n: int) -> NDArray[np.float32]:
    """Signed rows without a zero."""
    return np.random.default_rng(0).standard_normal((n, DIM), dtype=np.float32)


def transformed(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Positive and negative parts in turn."""
    return np.stack([rows.clip(0), (-rows).clip(0)], axis=2).reshape(len(rows), -1)


def sparse_rows(dim: int) -> sparse.csr_array:
    """The same values in either dimension; of ten million, the columns are the same modulo 10,000."""
    stream = np.random.default_rng(0)
    columns = np.array([stream.choice(FOLDED_DIM, NON_ZEROS, replace=False) for _ in range(SPARSE_ROWS)])
    columns += FOLDED_DIM * stream.integers(dim // FOLDED_DIM, size=columns.shape)
    values = stream.standard_normal(columns.size, dtype=np.float32)
    ends = np.arange(0, columns.size + 1, NON_ZEROS)
    rows = sparse.csr_array((values, columns.ravel(), ends), shape=(SPARSE_ROWS, dim))
    rows.sort_indices()
    return rows


def hash_parts(generator: WeightedMinHashGenerator, parts: list[NDArray[np.float32]]) -> None:
    """Part by part, as datasketch does it."""
    for part in parts:
        generator.minhash_many(part)


def a_vector(times: Times, n: int) -> str:
    """Microseconds of a vector: median and quartiles of the times of n."""
    middle, low, high = (1e6 * times.at(percent) / n for percent in (50, 25, 75))
    return f"{middle:,.1f} ({low:,.1f} to {high:,.1f})"


def slower(rival: Times, theirs: int, times: Times, n: int) -> str:
    """How many times longer a vector takes a rival, where the times are of so many vectors."""
    return f"{rival.over(times).median * n / theirs:.1f} ×"


def dense_table(report: Report, plan: Plan) -> None:
    """Time per vector, and how many times longer datasketch takes."""
    n, few = (50, 10) if plan.tiny else (BATCH, THEIRS)
    rows = dense_rows(n)
    theirs = transformed(rows[:few])
    generator = WeightedMinHashGenerator(2 * DIM, S)
    works: dict[str, Callable[[], object]] = {
        "minhash": lambda: [generator.minhash(row) for row in theirs],
    }
    for many in AT_ONCE:
        parts = [theirs[block] for block in row_blocks(few, many)]
        works[f"minhash_many, {many} at once"] = partial(hash_parts, generator, parts)
    rivals = list(works)
    sizes = dict.fromkeys(rivals, few)
    for threads in sorted({1, cores()}):
        hashing = opened(DIM, threads)
        for name, encoder in ENCODERS.items():
            key = f"codes, {name}, {threads} thread{'s' * (threads > 1)}"
            works[key] = partial(hashing.codes, rows, encoder)
            sizes[key] = n
    found = in_turns({name: timed(work) for name, work in works.items()}, plan.seconds(SECONDS))
    report.table(
        ("what", "vectors", "µs a vector", *(f"{rival} takes" for rival in rivals)),
        (
            [
                name,
                f"{sizes[name]:,}",
                a_vector(times, sizes[name]),
                *(slower(found[rival], few, times, sizes[name]) for rival in rivals),
            ]
            for name, times in found.items()
        ),
    )


def sparse_table(report: Report, plan: Plan) -> None:
    """The time of sparse rows by dimension, and how many times longer datasketch takes in the lower one."""
    n = 20 if plan.tiny else SPARSE_ROWS
    wide_rows, folded_rows = sparse_rows(SPARSE_DIM)[:n], sparse_rows(FOLDED_DIM)[:n]
    theirs = transformed(folded_rows[:FEW].toarray())
    generator = WeightedMinHashGenerator(2 * FOLDED_DIM, S)
    cells = []
    for threads in sorted({1, cores()}):
        begun = time.perf_counter()
        folded = opened(FOLDED_DIM, threads)
        filled = time.perf_counter() - begun
        wide, encoder = opened(SPARSE_DIM, threads), ENCODERS["zero_bit"]
        works: dict[str, Callable[[], object]] = {
            "wide": partial(wide.codes, wide_rows, encoder),
            "folded": partial(folded.codes, folded_rows, encoder),
            "datasketch": partial(generator.minhash_many, theirs),
        }
        found = in_turns({name: timed(work) for name, work in works.items()}, plan.seconds(SECONDS))
        cells.append(
            (
                str(threads),
                a_vector(found["wide"], n),
                a_vector(found["folded"], n),
                found["wide"].over(found["folded"]).spread(),
                a_vector(found["datasketch"], FEW),
                slower(found["datasketch"], FEW, found["wide"], n),
                f"{folded.bytes / 1e6:.0f} MB",
                f"{filled:.1f} s",
            )
        )
    report.say(
        f"Sparse rows, {n:,} of {NON_ZEROS} entries, in µs a row: drawn as they are met, or from a table; "
        "datasketch gets five rows at once."
    )
    heads = ("threads", "drawn, of 10,000,000", "a table, of 10,000", "drawn, of table", "minhash_many, of 10,000")
    report.table((*heads, "of drawn", "table", "filled in"), cells)


def rows_of(case: str) -> tuple[Rows, int]:
    """The rows of a case, and their dimension."""
    if case == "dense":
        return dense_rows(BATCH), DIM
    dim = SPARSE_DIM if case == "sparse" else FOLDED_DIM
    return sparse_rows(dim), dim


def measure(case: str, encoding: str, threads: int) -> None:
    """Print, in a process of its own: bytes of input, output and tables, peak above idle, and peak at all."""
    encoder = ENCODERS[encoding]
    # Everything compiled and every library started, at a size that leaves nothing behind.
    rows, dim = rows_of(case)
    opened(2, threads).codes(
        rows[:2, :2] if case == "dense" else sparse.csr_array(np.ones((2, 2), np.float32)), encoder
    )
    del rows
    with Peak() as peak:
        rows, dim = rows_of(case)
        hashing = opened(dim, threads)
        codes = hashing.codes(rows, encoder)
    held = rows.nbytes if isinstance(rows, np.ndarray) else rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes
    print(held, codes.nbytes, hashing.bytes, peak.bytes - peak.before, peak.bytes)


def memory_table(report: Report, plan: Plan) -> None:
    """The peak memory of each case."""
    cases = [("dense", encoding, threads) for encoding in ENCODERS for threads in sorted({1, cores()})]
    cases += [("sparse", "zero_bit", cores()), ("folded", "zero_bit", cores())]
    report.say(
        f"Memory of a batch of {BATCH:,} dense rows, or {SPARSE_ROWS:,} sparse ones, in a process of its own: the peak "
        "above what it held when everything was imported and compiled."
    )
    heads = ("rows", "codes", "threads", "input + output + tables", "peak above idle", "ratio", "peak RSS")
    report.table(heads, map(memory_row, cases[:1] if plan.tiny else cases))


def memory_row(case: tuple[str, str, int]) -> tuple[str, ...]:
    """The cells of a case."""
    command = [sys.executable, "-m", "benchmarks.hashing_speed", *map(str, case)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    given, made, tables, above, peak = (int(word) / 1e6 for word in answer)
    held = given + made + tables
    parts = f"{given:.1f} + {made:.1f} + {tables:.1f} = {held:.1f} MB"
    return (*map(str, case), parts, f"{above:.1f} MB", f"{above / held:.2f}", f"{peak:.0f} MB")


def run(report: Report, plan: Plan) -> None:
    """Write the three tables."""
    report.say(
        f"Signed rows of {DIM} numbers, {S} hashes, beside datasketch's weighted minhash, which takes one vector at a "
        "time, or several with `minhash_many`."
    )
    dense_table(report, plan)
    sparse_table(report, plan)
    memory_table(report, plan)


if __name__ == "__main__":
    measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))
