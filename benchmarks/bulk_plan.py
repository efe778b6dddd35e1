"""What the plan for a billion rows stands on: rows a second of a processor, memory, files, maps, and Ray."""

import shutil
import sys
import tempfile
import time
from pathlib import Path
from threading import Event, Thread

import numpy as np
import psutil
from pyarrow import parquet

from benchmarks.bulk import anonymous
from benchmarks.bulk_files import LENGTH_SCALE, Alone, D, S, make
from benchmarks.clients import service
from benchmarks.timing import Plan, Report, Times
from bochner_client import Client

TITLE = "Bulk work from one machine to a thousand"
_KERNEL = {"kind": "gaussian", "length_scale": LENGTH_SCALE}
_ROUNDS = 3
_WIDE = {"input_dim": 784, "s": 4096}
"""A map of 13 MB."""


def ray_data(frozen: Path, source: Path, target: Path) -> None:
    """The same features by a pipeline that Ray Data has for it: it reads and writes the files itself."""
    import ray

    import bochner

    class Features:
        def __init__(self) -> None:
            self._map = bochner.load(frozen, 1)

        def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            rows = np.stack([batch[f"x{j}"] for j in range(D)], axis=1)
            return {"id": batch["id"], "features": self._map.transform(rows)}

    ray.init(include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    read = ray.data.read_parquet(str(source))
    workers = ray.data.ActorPoolStrategy(min_size=1, max_size=psutil.cpu_count() or 1)
    done = read.map_batches(Features, batch_size=1 << 14, compute=workers)
    done.write_parquet(str(target), compression="none", use_dictionary=False)
    ray.shutdown()


class Workers(Thread):
    """Looks how much anonymous memory a worker of Ray has at most."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.bytes, self._ended = 0, Event()

    def run(self) -> None:
        """Look until it is over."""
        while not self._ended.wait(0.1):
            for process in psutil.process_iter(["cmdline"]):
                if (process.info["cmdline"] or [""])[0].startswith("ray::MapWorker"):
                    self.bytes = max(self.bytes, anonymous(process))

    def end(self) -> int:
        """The most that was seen."""
        self._ended.set()
        self.join()
        return self.bytes


def run(report: Report, plan: Plan) -> None:
    """Write the tables."""
    n = 20_000 if plan.tiny else 2_000_000
    with tempfile.TemporaryDirectory() as folder, service() as (address, _), Client(f"http://{address}") as client:
        home = Path(folder)
        monte_carlo = {"sampler": {"kind": "monte_carlo"}, "kernel": _KERNEL}
        client.put_map("bulk", {"input_dim": D, "s": S, **monte_carlo})
        client.put_map("hashes", {"input_dim": D, "s": S, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}})
        client.put_map("wide", {**({"input_dim": D, "s": S} if plan.tiny else _WIDE), **monte_carlo})
        make(home / "rows.parquet", n)
        make(home / "none.parquet", 0)
        at = ("--url", f"http://{address}")
        _results(report, home, at, n)
        _fixed(report, home, at, client, 20 if plan.tiny else 500)
        _by_ray(report, home, at, client, n, 1 if plan.tiny else _ROUNDS)


def _done(home: Path, call: str, *options: str, source: str = "rows.parquet", processors: int | None = None) -> Alone:
    """A command that has been run, alone in its folder."""
    work = Alone("-m", "app", call, str(home / source), str(home / "out"), *options, processors=processors)
    work()
    return work


def _results(report: Report, home: Path, at: tuple[str, ...], n: int) -> None:
    report.say(f"{n:,} × {D} float32 rows of a Parquet file, on one processor and on two.")
    features, codes = ("transform", *at, "--map", "bulk"), ("hash", *at, "--map", "hashes")
    kinds = {
        f"features, {2 * S} × float32": features,
        f"features, {2 * S} × float16": (*features, "--dtype", "float16"),
        f"codes, {S} × 8 bits": (*codes, "--encoding", "packed"),
    }
    table = []
    for name, (call, *options) in kinds.items():
        idle = _done(home, call, *options, source="none.parquet", processors=1)
        shutil.rmtree(home / "out")
        for processors in (1, 2):
            work = _done(home, call, *options, processors=processors)
            size = sum(one.stat().st_size for one in (home / "out").iterdir()) / n
            shutil.rmtree(home / "out")
            rate = n / (work.seconds[0] - idle.seconds[0])
            each = (work.processor[0] - idle.processor[0]) / n
            cells = (f"{each * 1e6:.2f} µs", f"{size:,.0f}", f"{work.bytes / 1e6:.0f} MB")
            table.append((name, str(processors), f"{rate:,.0f}", *cells))
    report.table(
        ("results", "processors", "rows a second", "processor time a row", "bytes a row", "anonymous memory"), table
    )


def _fixed(report: Report, home: Path, at: tuple[str, ...], client: Client, n_files: int) -> None:
    (home / "small").mkdir()
    for number in range(n_files):
        np.save(home / "small" / f"{number}.npy", np.ones((10, D), np.float32))
    table = []
    for name, source in (("a run, without rows", "none.parquet"), (f"a run of {n_files} files of 10 rows", "small")):
        work = _done(home, "transform", *at, "--map", "bulk", source=source)
        shutil.rmtree(home / "out")
        table.append((name, f"{work.seconds[0]:.2f} s", f"{work.processor[0]:.2f} s"))
    for name in ("bulk", "wide"):
        begun = time.perf_counter()
        frozen = client.export_map(name, "npz")
        taken = time.perf_counter() - begun
        table.append((f"to fetch a map of {len(frozen) / 1e6:,.2f} MB", f"{taken:.2f} s", ""))
    report.table(("what", "seconds", "of processors"), table)


def _by_ray(report: Report, home: Path, at: tuple[str, ...], client: Client, n: int, rounds: int) -> None:
    """The same files by threads, by `--ray`, and by a pipeline of Ray Data, in turns."""
    frozen, out = home / "map.npz", home / "out"
    frozen.write_bytes(client.export_map("bulk", "npz"))
    command = ("-m", "app", "transform", str(home / "rows.parquet"), str(out), *at, "--map", "bulk")
    ways = {
        "threads": Alone(*command),
        "--ray": Alone(*command, "--ray"),
        "read, map and write of Ray Data": Alone(
            "-m", "benchmarks.bulk_plan", str(frozen), str(home / "rows.parquet"), str(out)
        ),
    }
    most = dict.fromkeys(ways, 0)
    for _ in range(rounds):
        for name, work in ways.items():
            watch = Workers()
            watch.start()
            work()
            most[name] = max(most[name], watch.end(), work.bytes if name == "threads" else 0)
            found = sum(parquet.read_metadata(one).num_rows for one in out.glob("*.parquet"))
            assert found == n, name
            shutil.rmtree(out)
    report.say(f"{n:,} rows again, start and end of a Ray of this machine included:")
    report.table(
        ("by", "seconds", "anonymous memory of a process that computes"),
        ((name, f"{Times(one.seconds).median:.1f}", f"{most[name] / 1e6:.0f} MB") for name, one in ways.items()),
    )


if __name__ == "__main__":
    ray_data(*map(Path, sys.argv[1:]))
