"""Ten million rows of Parquet by `bochner transform`: its time beside a loop by hand, its memory, and five kills."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
from pyarrow import parquet

from benchmarks.bulk import Held
from benchmarks.clients import service
from benchmarks.timing import TIMES, Plan, Report, Times
from bochner_client import Client

TITLE = "Files in bulk"
D, S = 64, 128
LENGTH_SCALE = 8.0
_HERE = Path(__file__).parent.parent
_ROW_GROUP = 1 << 18
_ROUNDS = 3
_KILLS = 5


def by_hand(source: Path, target: Path) -> None:
    """The same features as pyarrow and NumPy make them, block by block."""
    frequencies = np.random.default_rng(1).standard_normal((D, S), dtype=np.float32) / np.float32(LENGTH_SCALE)
    lists = pa.list_(pa.float32(), 2 * S)
    schema = pa.schema([("id", pa.int64()), ("features", lists)])
    options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    with parquet.ParquetFile(source, memory_map=True) as rows, parquet.ParquetWriter(target, schema, **options) as out:
        for batch in rows.iter_batches(1 << 15):
            x = np.stack([column.to_numpy() for column in batch.columns[1:]], axis=1)
            phases, found = x @ frequencies, np.empty((len(x), 2 * S), np.float32)
            np.cos(phases, out=found[:, :S])
            np.sin(phases, out=found[:, S:])
            found *= np.float32(S**-0.5)
            features = pa.FixedSizeListArray.from_arrays(pa.array(found.reshape(-1)), 2 * S)
            out.write_table(pa.table([batch.column(0), features], schema=schema))


class Alone:
    """Work in a process of its own, time after time: seconds, of processors too, and the most anonymous memory."""

    def __init__(self, *command: str, processors: int | None = None) -> None:
        on = [] if processors is None else ["taskset", "--cpu-list", f"0-{processors - 1}"]
        self._command = [*on, sys.executable, *command]
        self.seconds: list[float] = []
        self.processor: list[float] = []
        self.bytes = 0

    def start(self) -> "subprocess.Popen[str]":
        """The process."""
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(_HERE), str(_HERE / "client")])}
        silent = subprocess.DEVNULL
        return subprocess.Popen(self._command, env=environment, stdout=subprocess.PIPE, stderr=silent, text=True)

    def __call__(self) -> str:
        """Do it once; what it said."""
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        process = self.start()
        with Held({"it": psutil.Process(process.pid)}) as held:
            said, _ = process.communicate()
        assert process.returncode == 0, said
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.seconds.append(time.perf_counter() - begun)
        self.processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        self.bytes = max(self.bytes, held.bytes["it"])
        return said


def make(path: Path, n: int) -> None:
    """A table of n rows."""
    rng = np.random.default_rng(7)
    with parquet.ParquetWriter(path, _table(rng, 0, 0).schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, n, _ROW_GROUP):
            writer.write_table(_table(rng, start, min(n, start + _ROW_GROUP)))


def _table(rng: np.random.Generator, start: int, stop: int) -> pa.Table:
    columns = rng.standard_normal((D, stop - start), dtype=np.float32)
    return pa.table({"id": np.arange(start, stop), **{f"x{j}": column for j, column in enumerate(columns)}})


def killed(work: Alone, out: Path, n_files: int, kills: int) -> str:
    """Do work whose process is killed so many times, each time with as much more done; what the last one said."""
    for kill in range(1, kills + 1):
        process = work.start()
        while process.poll() is None and len(list(out.glob("*.parquet"))) < n_files * kill / (kills + 1):
            time.sleep(0.001)
        process.kill()
        process.communicate()
    return work()


def ids(out: Path) -> Iterator[np.ndarray]:
    """The ids of all rows of a folder."""
    for path in sorted(out.glob("*.parquet")):
        yield parquet.read_table(path, columns=["id"]).column("id").to_numpy()


def run(report: Report, plan: Plan) -> None:
    """Write the table."""
    n = 60_000 if plan.tiny else 10_000_000
    with tempfile.TemporaryDirectory() as folder, service() as (address, _), Client(f"http://{address}") as client:
        kernel = {"kind": "gaussian", "length_scale": LENGTH_SCALE}
        client.put_map("bulk", {"input_dim": D, "s": S, "kernel": kernel, "sampler": {"kind": "monte_carlo"}})
        home = Path(folder)
        for name, rows in (("all", n), ("tenth", n // 10)):
            make(home / f"{name}.parquet", rows)
        command: tuple[str, ...] = ("-m", "app", "transform", "--url", f"http://{address}", "--map", "bulk")
        if plan.tiny:
            command += ("--rows-per-file", "5000")
        _measure(report, home, command, n, plan.tiny)


def _measure(report: Report, home: Path, command: tuple[str, ...], n: int, tiny: bool) -> None:
    source, by_command, in_loop = home / "all.parquet", home / "command", home / "loop.parquet"
    tenth = Alone(*command, str(home / "tenth.parquet"), str(home / "tenth"))
    tenth()
    ours = Alone(*command, str(source), str(by_command))
    theirs = Alone("-m", "benchmarks.bulk_files", str(source), str(in_loop))
    for _ in range(1 if tiny else _ROUNDS):
        ours()
        n_files = len(list(by_command.glob("*.parquet")))
        _remove(by_command)
        theirs()
        _remove(in_loop)
    report.say(
        f"{n:,} × {D} float32 rows of one Parquet file to {2 * S} columns in others, ids kept: by `bochner transform`, "
        "and by a loop of pyarrow and NumPy by hand, which reads, computes and writes block by block."
    )
    named = {"bochner transform": ours, "by hand": theirs}
    report.table(
        ("by", *TIMES, "of processors", "anonymous memory"),
        (
            (name, *Times(one.seconds).cells(), f"{np.median(one.processor):.1f} s", f"{one.bytes / 1e6:.0f} MB")
            for name, one in named.items()
        ),
    )
    figure = f"{n:,} × {D} → {2 * S} from Parquet to Parquet"
    ratio = Times(ours.seconds).over(Times(theirs.seconds))
    report.at_most(f"{figure}, of a loop by hand", ratio.median, 1.3, ratio.spread())
    growth = ours.bytes / tenth.bytes
    report.at_most(f"{figure}, memory of that for a tenth of the rows", growth, 1.2, f"{growth:.2f}")
    kills = 1 if tiny else _KILLS
    said = killed(ours, by_command, n_files, kills)
    found = np.bincount(np.concatenate(list(ids(by_command))), minlength=n)
    report.say(f"Killed {kills} times and run again: {said.strip()}.")
    told = f"{int((found == 1).sum()):,} once, {int((found != 1).sum()):,} otherwise"
    report.at_most(f"{figure}, rows that are not there once after {kills} kills", int((found != 1).sum()), 0, told)


def _remove(path: Path) -> None:
    for one in [path] if path.is_file() else [*path.iterdir()]:
        one.unlink()
    if path.is_dir():
        path.rmdir()


if __name__ == "__main__":
    by_hand(*map(Path, sys.argv[1:]))
