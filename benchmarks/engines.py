"""Near neighbours by other people's engines over codes of a running service: recall, memory, speed, lines of code."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

from benchmarks.clients import service
from benchmarks.data import neighbour_distance, standardised
from benchmarks.engine_calls import ENGINES, ONE_HOT_BITS, Array, Codes, Engine, Filled, Place
from benchmarks.timing import Plan, Report
from bochner_client import Client

TITLE = "Other engines"
K, MANY = 10, 50
QUERIES = 500
SLOW_QUERIES = 20
"""Asked of engines that take longer than a tenth of a second for one."""
S = {"bits": 1024, "columns": 512}
_LENGTH_SCALES = 1.5
"""Length scale of the Gaussian kernel, in mean distances to the tenth neighbour."""
Rows = NDArray[np.float64]


class Task(NamedTuple):
    """What is to be found: for rows that no engine holds the nearest that it holds."""

    told: str
    held: dict[Codes, Array]
    """Codes of the rows that are held, as engines take them."""
    asked: dict[Codes, Array]
    """Codes of the queries."""
    near: NDArray[np.bool_]
    """For each query, which rows are among its ten nearest. Those as near as the tenth all are."""


def min_max(x: Rows, y: Rows) -> Rows:
    """The min-max kernel of rows without negative entries."""
    sums = x.sum(axis=1)[:, None] + y.sum(axis=1)
    apart = cdist(x, y, "cityblock")
    kernel: Rows = (sums - apart) / (sums + apart)
    return kernel


def among_nearest(kernel: Rows) -> NDArray[np.bool_]:
    """For each query, a row of the kernel, which rows are no farther than its tenth."""
    tenth = -np.partition(-kernel, K - 1, axis=1)[:, K - 1]
    near: NDArray[np.bool_] = kernel >= tenth[:, None] - 1e-12
    return near


def sets(plan: Plan) -> Iterator[tuple[str, Rows]]:
    """Rows by name: of real data, and without that the digits of scikit-learn."""
    if plan.data is None:
        yield "digits", load_digits().data[: 400 if plan.tiny else None]
    else:
        for name in ("letter", "satimage"):
            yield name, np.load(plan.data / f"{name}.npz")["X"].astype(np.float64)


def min_max_task(client: Client, name: str, rows: Rows, queries: int) -> Task:
    """Neighbours by the min-max kernel of raw rows."""
    hashing = {"input_dim": rows.shape[1], "seed": 1, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}}
    for takes, s in S.items():
        client.put_map(f"{name}-{takes}", {**hashing, "s": s})
    codes: dict[Codes, Array] = {
        "bits": client.codes(f"{name}-bits", rows, "packed", bits=1, bits_of="pair"),
        "columns": client.codes(f"{name}-columns", rows, "one_hot", bits=ONE_HOT_BITS, bits_of="pair"),
    }
    return Task(
        "the min-max kernel of raw rows",
        {takes: array[queries:] for takes, array in codes.items()},
        {takes: array[:queries] for takes, array in codes.items()},
        among_nearest(min_max(rows[:queries], rows[queries:])),
    )


def gaussian_task(client: Client, name: str, rows: Rows, queries: int) -> Task:
    """Neighbours by the Gaussian kernel, and so by distance, of standardised rows, by signed codes."""
    scaled = standardised(rows)
    asked, held = scaled[:queries], scaled[queries:]
    scale = _LENGTH_SCALES * neighbour_distance(asked, held)
    kernel = {"kind": "gaussian", "length_scale": scale}
    spec = {"input_dim": rows.shape[1], "seed": 1, "kernel": kernel, "sampler": {"kind": "orthogonal"}}
    client.put_map(f"{name}-signed", {**spec, "s": S["bits"]})
    codes = client.codes(f"{name}-signed", scaled)
    return Task(
        f"the Gaussian kernel of standardised rows, of length scale {scale:.3g}",
        {"bits": codes[queries:]},
        {"bits": codes[:queries]},
        among_nearest(-cdist(asked, held)),
    )


def recall(near: NDArray[np.bool_], found: list[Array], k: int) -> float:
    """The share of ten nearest rows that are among the first k found; missing ones are −1."""
    hits = [min(K, int(row[numbers[:k][numbers[:k] >= 0]].sum())) for row, numbers in zip(near, found, strict=True)]
    return float(np.mean(hits)) / K


class Asked:
    """An engine while it is asked, query after query."""

    def __init__(self, engine: Engine, task: Task, filled: Filled) -> None:
        self._engine, self._task, self._filled = engine, task, filled
        self._found: list[Array] = []
        begun = time.perf_counter()
        filled.ask(task.asked[engine.takes][0], MANY)
        self._most = SLOW_QUERIES if time.perf_counter() - begun > 0.1 else None
        self._seconds: list[float] = []

    def ask(self, query: int) -> None:
        """Ask the query of that number, unless there were enough."""
        if self._most is not None and query >= self._most:
            return
        row = self._task.asked[self._engine.takes][query]
        begun = time.perf_counter()
        found = self._filled.ask(row, MANY)
        self._seconds.append(time.perf_counter() - begun)
        self._found.append(np.asarray(found))

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        takes, filled = self._engine.takes, self._filled
        n, near = len(self._task.held[takes]), self._task.near[: len(self._found)]
        return (
            self._engine.name,
            f"{S[takes]} one-hot of {ONE_HOT_BITS} bits" if takes == "columns" else f"{S[takes]:,} bits",
            f"{recall(near, self._found, K):.3f}",
            f"{recall(near, self._found, MANY):.3f}",
            f"{filled.nbytes / n:,.0f}",
            f"{n / filled.seconds:,.0f}",
            f"{rate:,.0f}" if (rate := 1 / np.median(self._seconds)) >= 1 else "< 1",
            str(self._engine.lines),
        )


HEADS = ("engine", "codes of a row", "recall@10", "among fifty", "bytes a row", "filled a second", "queries a second")


def compared(task: Task, place: Place) -> list[tuple[str, ...]]:
    """The rows of the table: all engines hold the codes, and each query is asked of one after the other."""
    with ExitStack() as opened:
        asked = [
            Asked(engine, task, opened.enter_context(engine.open(task.held[engine.takes], place)))
            for engine in ENGINES
            if engine.takes in task.held
        ]
        for query in range(len(task.near)):
            for one in asked:
                one.ask(query)
    return [one.cells() for one in asked]


def run(report: Report, plan: Plan) -> None:
    """Write a table for each set of data."""
    queries = 10 if plan.tiny else QUERIES
    with (
        service() as (address, _),
        Client(f"http://{address}") as client,
        tempfile.TemporaryDirectory() as folder,
        closing(Place(folder)) as place,
    ):
        report.say(
            "Codes by a running service, and engines filled and asked by the functions of their pages. A query asks "
            "one engine after the other for its fifty nearest; a second holds so many queries of the median time. "
            "faiss answers with one thread. One that takes longer than a tenth of a second is asked "
            f"{SLOW_QUERIES} queries only, so that its recall is rough. Bytes are those of indexes and tables, in "
            "files; of lines of code those of the functions count."
        )
        for name, rows in sets(plan):
            shuffled = np.random.default_rng(0).permutation(rows)
            for task in (make(client, name, shuffled, queries) for make in (min_max_task, gaussian_task)):
                told = f"{len(rows) - queries:,} rows and {queries} queries that are none of them, by {task.told}"
                report.say(f"\n`{name}`, {told}:")
                report.table((*HEADS, "lines"), compared(task, place))
