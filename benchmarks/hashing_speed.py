"""Time and memory of consistent weighted sampling, beside datasketch's weighted minhash, in one run on one machine.

Dense: signed rows of 200 normal entries, 256 hashes. datasketch takes no negative entry and gets the rows after the
transform, 400 entries of which 200 are not zero; its transform is not timed, ours is. Ours and theirs alternate, and
medians are compared. Sparse: rows of 100 entries out of ten million, where parameters are drawn as they are met, and
the same entries folded into 10,000 dimensions, where they stand in a table. datasketch gets five of the latter at once,
as dense rows after the transform: it takes no others, and of ten million its parameters would fill 61 GB. Memory is the
peak of a fresh process above what it held when everything was imported and compiled.

Run: python -m benchmarks.hashing_speed [--repeats 5]
"""

import argparse
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import psutil
from datasketch import WeightedMinHashGenerator
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import Rows, row_blocks
from app.core.hashing.encodings import Encoder, Encoding
from app.core.maps import ConsistentSamplingMap
from app.core.spec import MapSpec

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


def seconds(work: Callable[[], object]) -> float:
    """How long a call takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def alternated(works: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each, all called in turn, after one round to warm up."""
    rounds = [{name: seconds(work) for name, work in works.items()} for _ in range(repeats + 1)]
    return {name: float(np.median([times[name] for times in rounds[1:]])) for name in works}


def hash_parts(generator: WeightedMinHashGenerator, parts: list[NDArray[np.float32]]) -> None:
    """Part by part, as datasketch does it."""
    for part in parts:
        generator.minhash_many(part)


def dense_table(repeats: int) -> None:
    """Print time per vector, and how many times longer datasketch takes."""
    rows = dense_rows(BATCH)
    theirs = transformed(rows[:THEIRS])
    generator = WeightedMinHashGenerator(2 * DIM, S)
    works: dict[str, Callable[[], object]] = {
        "minhash": lambda: [generator.minhash(row) for row in theirs],
    }
    for many in AT_ONCE:
        parts = [theirs[block] for block in row_blocks(THEIRS, many)]
        works[f"minhash_many, {many} at once"] = partial(hash_parts, generator, parts)
    rivals = list(works)
    sizes = dict.fromkeys(rivals, THEIRS)
    cores = os.cpu_count() or 1
    for threads in (1, cores):
        hashing = opened(DIM, threads)
        for name, encoder in ENCODERS.items():
            key = f"codes, {name}, {threads} thread{'s' * (threads > 1)}"
            works[key] = partial(hashing.codes, rows, encoder)
            sizes[key] = BATCH
    found = {name: taken / sizes[name] for name, taken in alternated(works, repeats).items()}
    print(f"| what | vectors | µs a vector | {' | '.join(f'{rival} takes' for rival in rivals)} |")
    print("|" + " --- |" * (3 + len(rivals)))
    for name, taken in found.items():
        ratios = " | ".join(f"{found[rival] / taken:.1f} ×" for rival in rivals)
        print(f"| {name} | {sizes[name]:,} | {1e6 * taken:.1f} | {ratios} |", flush=True)


def sparse_table(repeats: int) -> None:
    """Print the time of sparse rows by dimension, and how many times longer datasketch takes in the lower one."""
    wide_rows, folded_rows = sparse_rows(SPARSE_DIM), sparse_rows(FOLDED_DIM)
    theirs = transformed(folded_rows[:FEW].toarray())
    generator = WeightedMinHashGenerator(2 * FOLDED_DIM, S)
    print(
        "| threads | drawn, of 10,000,000 | a table, of 10,000 | ratio | minhash_many, of 10,000 | table | filled in |"
    )
    print("|" + " --- |" * 7)
    for threads in sorted({1, os.cpu_count() or 1}):
        begun = time.perf_counter()
        folded = opened(FOLDED_DIM, threads)
        filled = time.perf_counter() - begun
        wide = opened(SPARSE_DIM, threads)
        encoder = ENCODERS["zero_bit"]
        works: dict[str, Callable[[], object]] = {
            "wide": partial(wide.codes, wide_rows, encoder),
            "folded": partial(folded.codes, folded_rows, encoder),
            "datasketch": partial(generator.minhash_many, theirs),
        }
        sizes = {"wide": SPARSE_ROWS, "folded": SPARSE_ROWS, "datasketch": FEW}
        found = {name: taken / sizes[name] for name, taken in alternated(works, repeats).items()}
        print(
            f"| {threads} | {1e6 * found['wide']:.0f} µs a row | {1e6 * found['folded']:.0f} µs a row | "
            f"{found['wide'] / found['folded']:.1f} | {1e6 * found['datasketch']:,.0f} µs a row, "
            f"{found['datasketch'] / found['wide']:.1f} × what is drawn takes | {folded.bytes / 1e6:.0f} MB | "
            f"{filled:.1f} s |",
            flush=True,
        )


class Peak:
    """The most memory that this process holds while inside, sampled every half millisecond."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        gc.collect()
        self.before = self.bytes = self._process.memory_info().rss

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.bytes = max(self.bytes, self._process.memory_info().rss)
            time.sleep(0.0005)


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


def memory_table() -> None:
    """Print the peak memory of each case."""
    print("| rows | codes | threads | input + output + tables | peak above idle | ratio | peak RSS |\n|" + " --- |" * 7)
    cores = os.cpu_count() or 1
    cases = [("dense", encoding, threads) for encoding in ENCODERS for threads in sorted({1, cores})]
    cases += [("sparse", "zero_bit", cores), ("folded", "zero_bit", cores)]
    for case, encoding, threads in cases:
        command = [sys.executable, "-m", "benchmarks.hashing_speed", "--measure", case, encoding, str(threads)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        given, made, tables, above, peak = (int(word) / 1e6 for word in answer)
        held = given + made + tables
        parts = f"{given:.1f} + {made:.1f} + {tables:.1f} = {held:.1f} MB"
        print(
            f"| {case} | {encoding} | {threads} | {parts} | {above:.1f} MB | {above / held:.2f} | {peak:.0f} MB |",
            flush=True,
        )


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        case, encoding, threads = options.measure
        measure(case, encoding, int(threads))
        return
    dense_table(options.repeats)
    print()
    sparse_table(options.repeats)
    print()
    memory_table()


if __name__ == "__main__":
    main()
