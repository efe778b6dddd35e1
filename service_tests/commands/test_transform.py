"""Files of rows through a frozen map, as a user runs `bochner transform`: what comes out, and what can go wrong."""

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import httpx
import numpy as np
import pytest

from app.__main__ import main
from service_tests.checks import post_npy, put
from service_tests.memory import KiB
from service_tests.running import Running
from service_tests.store.small_disk import small_disk

D = 5
SPEC = {"input_dim": D, "s": 24, "kernel": {"kind": "gaussian", "length_scale": 2.0}, "sampler": {"kind": "halton"}}


@pytest.fixture
def map_name(http: httpx.Client, name: str) -> str:
    for package in ("pyarrow", "fsspec"):
        pytest.importorskip(package)
    assert put(http, name, SPEC).status_code == 201
    return name


def command(running: Running, name: str, *options: object, call: str = "transform") -> list[str]:
    return [sys.executable, "-m", "app", call, "--url", running.url, "--map", name, *map(str, options)]


class Ended(NamedTuple):
    """What a command said, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


def ran(running: Running, name: str, *options: object, call: str = "transform") -> Ended:
    """Run the command in this process: to start another takes longer than most of its work here."""
    code: object = 0
    argv = ["bochner", *command(running, name, *options, call=call)[3:]]
    with (
        redirect_stdout(io.StringIO()) as said,
        redirect_stderr(io.StringIO()) as wrong,
        mock.patch.object(sys, "argv", argv),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code
    words = "" if isinstance(code, int) else str(code)  # which Python would write
    return Ended(code if isinstance(code, int) else 1, said.getvalue(), wrong.getvalue() + words)


def ran_alone(running: Running, name: str, *options: object) -> Ended:
    """Run it in a process of its own."""
    found = subprocess.run(command(running, name, *options), capture_output=True, text=True, timeout=300, check=False)
    return Ended(found.returncode, found.stdout, found.stderr)


def rows(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, D)).astype(np.float32)


def table(x: np.ndarray, **first: Any) -> Any:
    """Rows as columns of numbers, behind some others."""
    import pyarrow as pa

    return pa.table({**first, **{f"x{j}": np.ascontiguousarray(column) for j, column in enumerate(x.T)}})


def features(file: Path) -> np.ndarray:
    from pyarrow import parquet

    column = parquet.read_table(file).column("features").combine_chunks()
    found: np.ndarray = column.flatten().to_numpy().reshape(len(column), -1)
    return found


def by_service(http: httpx.Client, name: str, x: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.load(io.BytesIO(post_npy(http, f"{name}/transform", x).content))
    return found


def test_without_its_packages_the_command_says_what_to_install(running: Running, tmp_path: Path) -> None:
    code = (
        "import sys, importlib.util as u; found = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name in ('pyarrow', 'fsspec') else found(name, *rest)\n"
        "from app.__main__ import main; main()"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, *command(running, "m", tmp_path, tmp_path / "out")[3:]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 1
    assert told.stderr.startswith("pyarrow and fsspec is not installed: pip install '.[bulk]'"), told.stderr


@pytest.mark.long
def test_a_folder_of_parquet_has_the_features_of_the_service_bit_for_bit(
    running: Running, http: httpx.Client, map_name: str, tmp_path: Path
) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    source, out = tmp_path / "in", tmp_path / "out"
    (source / "deep" / "deeper").mkdir(parents=True)
    x = rows(1000)
    parquet.write_table(table(x, id=np.arange(1000)[::-1].copy()), source / "numbers.parquet", row_group_size=300)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(x[:70].reshape(-1)), D)
    parquet.write_table(
        pa.table({"id": [f"ü{i}" for i in range(70)], "v": lists}), source / "deep/deeper/texts.parquet"
    )
    (source / "_SUCCESS").touch()
    (source / "notes.txt").touch()
    found = ran(running, map_name, source, out, "--rows-per-file", 400)
    assert found.returncode == 0, found.stderr
    assert "1,070 rows of 2 files are in 4 files" in found.stdout
    parts = [out / f"numbers-{part:05}.parquet" for part in range(3)]
    np.testing.assert_array_equal(np.vstack([features(one) for one in parts]), by_service(http, map_name, x))
    ids = np.concatenate([parquet.read_table(one).column("id").to_numpy() for one in parts])
    np.testing.assert_array_equal(ids, np.arange(1000)[::-1])
    deep = out / "deep/deeper/texts.parquet"
    np.testing.assert_array_equal(features(deep), by_service(http, map_name, x[:70]))
    assert parquet.read_table(deep).column("id").to_pylist()[-1] == "ü69"
    times = {one: one.stat().st_mtime_ns for one in (*parts, deep)}
    parts[1].unlink()
    again = ran(running, map_name, source, out, "--rows-per-file", 400)
    assert "1,070 rows of 2 files are in 4 files, 300 of them now" in again.stdout
    assert [one for one in times if one.stat().st_mtime_ns != times[one]] == [parts[1]]
    np.testing.assert_array_equal(features(parts[1]), by_service(http, map_name, x[300:600]))


@pytest.mark.long
def test_arrays_and_csv_are_read_and_written(
    running: Running, http: httpx.Client, map_name: str, tmp_path: Path
) -> None:
    csv = pytest.importorskip("pyarrow.csv")
    x = rows(500)
    wanted = by_service(http, map_name, x)
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "fortran.npy").write_bytes(b"")
    np.save(tmp_path / "fortran.npy", np.asfortranarray(x.astype(np.float64)))
    csv.write_csv(table(x, id=[f"a {i}" for i in range(500)]), tmp_path / "x.csv")
    np.savetxt(tmp_path / "bare.csv", x, delimiter=",", fmt="%.9g")
    for source, target, options in (
        ("x.npy", "a.npy", ()),
        ("fortran.npy", "b.npy", ()),
        ("bare.csv", "c.npy", ("--no-header",)),
        ("x.csv", "d.parquet", ()),
    ):
        found = ran(running, map_name, tmp_path / source, tmp_path / target, *options)
        assert found.returncode == 0, found.stderr
        assert "500 rows of 1 file are in 1 file" in found.stdout
        read = features if target.endswith("parquet") else np.load
        np.testing.assert_array_equal(read(tmp_path / target), wanted)
    found = ran(running, map_name, tmp_path / "x.csv", tmp_path / "out", "--dtype", "float16", "--rows-per-file", 199)
    assert found.returncode == 0, found.stderr
    parts = [csv.read_csv(one).to_pandas() for one in sorted((tmp_path / "out").glob("*.csv"))]
    assert len(parts) > 2
    assert [one for part in parts for one in part["id"]] == [f"a {i}" for i in range(500)]
    numbers = np.vstack([one.drop(columns="id").to_numpy() for one in parts])
    np.testing.assert_array_equal(numbers.astype(np.float32), wanted.astype(np.float16).astype(np.float32))


def cut(path: Path) -> None:
    np.save(path, np.ones((3, 5)))
    os.truncate(path, 140)


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "wide.npy": (lambda path: np.save(path, np.ones((3, 6))), "wide.npy: rows have 6 entries; this map takes 5"),
    "flat.npy": (lambda path: np.save(path, np.ones(5)), "flat.npy: the array has shape (5,)"),
    "none.npy": (Path.touch, "none.npy: "),
    "cut.npy": (cut, "cut.npy: it has 140 bytes; its header announces 248"),
    "text.npy": (lambda path: np.save(path, np.full((3, 5), "a")), "text.npy: the array has dtype <U1"),
    "nan.npy": (
        lambda path: np.save(path, np.where(np.arange(5000).reshape(1000, 5) == 777 * 5 + 3, np.nan, 1.0)),
        "nan.npy, row 777: column 3 is missing",
    ),
    "none.parquet": (Path.touch, "none.parquet: "),
    "damaged.parquet": (lambda path: path.write_bytes(b"PAR1" + bytes(100) + b"PAR1"), "damaged.parquet: "),
    "none.csv": (Path.touch, "none.csv: it is empty; a line of names is wanted"),
    "bare.csv": (
        lambda path: path.write_text("1.5,2,3,4,5\n"),
        "bare.csv: its first line has the number 1.5: say --no-header",
    ),
    "short.csv": (
        lambda path: path.write_text("a,b,c,d,e\n1,2,3,4,5\n\n1,2,3,4,5\n1,2,3,4\n"),
        "short.csv, row 2: it has 4 cells; 5 are wanted",
    ),
    "words.csv": (
        lambda path: path.write_text("a,b,c,d,e\n1,2,3,4,5\n1,2,x,4,5\n"),
        "words.csv, row 1: column 'c' is 'x'; a number is wanted",
    ),
    "gap.csv": (
        lambda path: path.write_text("a,b,c,d,e\n1,2,3,4,5\n1,,3,4,5\n"),
        "gap.csv, row 1: column 1 is missing",
    ),
}
"""What makes a file, and what is said of it."""


@pytest.mark.long
@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_with_a_file_is_told_with_its_name_and_row(name: str, tmp_path: Path) -> None:
    bulk = pytest.importorskip("bochner.bulk")
    make, told = BAD[name]
    make(tmp_path / name)
    try:
        report = bulk.run(str(tmp_path / name), str(tmp_path / "out"), computing(bulk), bulk.Columns(D), {})
    except bulk.Refused as error:
        assert str(error).startswith(told)  # noqa: PT017
        assert not (tmp_path / "out").exists()
    else:
        assert report.complaints[0].startswith(told)
        assert report.new == 0
        assert [one.name for one in (tmp_path / "out").iterdir() if one.name[0] != "_"] == []


def computing(bulk: Any, **options: Any) -> Any:
    """A map without a service."""
    import bochner
    from service_tests.formats.exports.taken import taken, written

    spec = bochner.MapSpec.model_validate(SPEC)
    return bulk.Computing(written(taken(spec)[0], "npz"), **options)


@pytest.mark.long
def test_files_without_rows_make_files_without_rows(tmp_path: Path) -> None:
    bulk = pytest.importorskip("bochner.bulk")
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "in").mkdir()
    names = [f"x{j}" for j in range(D)]
    np.save(tmp_path / "in" / "a.npy", rows(0))
    with parquet.ParquetWriter(tmp_path / "in" / "b.parquet", pa.schema([(name, pa.float32()) for name in names])):
        pass  # without a row group
    parquet.write_table(table(rows(0)), tmp_path / "in" / "c.parquet")
    (tmp_path / "in" / "d.csv").write_text(",".join(names))
    (tmp_path / "in" / "e.csv").write_text("\ufeff" + ",".join(names) + "\r\n" + "\r\n")
    source, wanted = str(tmp_path / "in"), bulk.Columns(D)
    for kind in ("parquet", "csv", "npy"):
        out = tmp_path / kind
        report = bulk.run(source, str(out), computing(bulk), wanted, {}, file_format=kind)
        assert (report.rows, report.written, report.complaints) == (0, 5, ())
        assert len([one for one in out.iterdir() if one.name.endswith(kind)]) == 5


@pytest.mark.long
def test_columns_are_chosen_by_name_and_numbers_of_all_types_make_rows(tmp_path: Path) -> None:
    bulk = pytest.importorskip("bochner.bulk")
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    x = np.round(rows(90) * 8)
    types = (pa.int8(), pa.float64(), pa.uint16(), pa.float16(), pa.int64())
    x[:, 2] = np.abs(x[:, 2])
    columns = {f"x{j}": pa.array(x[:, j].astype(kind.to_pandas_dtype())) for j, kind in enumerate(types)}
    some = pa.table({"label": ["a"] * 90, **columns, "key": pa.array(range(90), pa.timestamp("ms"))})
    parquet.write_table(some, tmp_path / "x.parquet")
    wanted = bulk.Columns(D, tuple(columns)[::-1], "key")
    run = partial(bulk.run, str(tmp_path / "x.parquet"), note={})
    assert run(str(tmp_path / "y.parquet"), computing(bulk), wanted).new == 90
    np.testing.assert_array_equal(
        features(tmp_path / "y.parquet"), computing(bulk).map.transform(np.ascontiguousarray(x[:, ::-1]))
    )
    assert parquet.read_table(tmp_path / "y.parquet").column("id").equals(some.column("key"))
    for columns_, told in (
        (bulk.Columns(D), "x.parquet: column 'label' is of type string"),
        (bulk.Columns(D, ("x0", "x1")), "x.parquet: rows have 2 entries"),
        (bulk.Columns(D, tuple(columns), "id"), "x.parquet: there is no column 'id'"),
    ):
        with pytest.raises(bulk.Refused, match=told):
            run(str(tmp_path / "z.parquet"), computing(bulk), columns_)
    with pytest.raises(bulk.Refused, match="no room for ids"):
        run(str(tmp_path / "z.npy"), computing(bulk), wanted)
    large = some.set_column(5, "x4", pa.array([2**53 + 1] * 90))
    parquet.write_table(large, tmp_path / "x.parquet")
    (complaint,) = run(str(tmp_path / "w.parquet"), computing(bulk), wanted).complaints
    assert "9007199254740993 not in range" in complaint
    assert not (tmp_path / "w.parquet").exists()


@pytest.mark.long
def test_a_row_is_named_by_its_place_in_the_file_wherever_that_is_cut(tmp_path: Path) -> None:
    bulk = pytest.importorskip("bochner.bulk")
    parquet = pytest.importorskip("pyarrow.parquet")
    x = rows(50_000)
    x[41_234, 2] = np.inf
    parquet.write_table(table(x), tmp_path / "x.parquet", row_group_size=7_000)
    np.save(tmp_path / "x.npy", x)
    np.savetxt(tmp_path / "x.csv", x, delimiter=",", header="a,b,c,d,e", comments="")
    for name in ("x.parquet", "x.npy", "x.csv"):
        for most in (1_000, 10_000, 100_000):
            out = tmp_path / f"{name}{most}"
            report = bulk.run(str(tmp_path / name), str(out), computing(bulk), bulk.Columns(D), {}, rows_per_file=most)
            assert report.complaints == (f"{name}, row 41234: column 2 is not finite",)
            assert report.rows == report.new < 50_000


def big(path: Path, n: int, row_group: int) -> np.ndarray:
    from pyarrow import parquet

    x = rows(n)
    parquet.write_table(table(x, id=np.arange(n)), path, row_group_size=row_group)
    return x


@pytest.mark.long
def test_a_run_that_is_killed_five_times_goes_on_and_has_every_row_once(
    running: Running, map_name: str, tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "in").mkdir()
    n = 400_000
    big(tmp_path / "in" / "groups.parquet", n, 20_000)
    big(tmp_path / "in" / "one.parquet", n, n)
    out, most, n_files = tmp_path / "out", 2_000, 400
    options = (tmp_path / "in", out, "--rows-per-file", most)
    assert ran(running, map_name, tmp_path / "in", tmp_path / "whole", "--rows-per-file", most).returncode == 0
    counts = [0]
    for _ in range(5):
        going = subprocess.Popen(command(running, map_name, *options), stderr=subprocess.DEVNULL)
        while going.poll() is None and len([*out.glob("*.parquet")]) < counts[-1] + 5:
            time.sleep(0.001)
        going.send_signal(signal.SIGKILL)
        assert going.wait() == -signal.SIGKILL
        counts.append(len([*out.glob("*.parquet")]))
    assert all(later > before for before, later in pairwise(counts))
    last = ran(running, map_name, *options)
    assert last.returncode == 0, last.stderr
    left = 2 * n - most * counts[-1]
    assert f"{2 * n:,} rows of 2 files are in {n_files} files, {left:,} of them now" in last.stdout
    names = sorted(one.name for one in (tmp_path / "out").iterdir())
    assert names == sorted(one.name for one in (tmp_path / "whole").iterdir()), "something is left of the killed"
    for stem in ("groups", "one"):
        parts = sorted((tmp_path / "out").glob(f"{stem}-*.parquet"))
        ids = np.concatenate([parquet.read_table(one, columns=["id"]).column("id").to_numpy() for one in parts])
        np.testing.assert_array_equal(ids, np.arange(n))
        assert all(one.read_bytes() == (tmp_path / "whole" / one.name).read_bytes() for one in parts)


@pytest.mark.long
def test_another_map_another_output_or_another_run_is_not_mixed_in(
    running: Running, http: httpx.Client, map_name: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    np.save(tmp_path / "x.npy", rows(100))
    out = tmp_path / "out"
    assert ran(running, map_name, tmp_path / "x.npy", out).returncode == 0
    assert http.delete(f"/v1/maps/{map_name}").status_code == 204
    assert put(http, map_name, {**SPEC, "seed": 5}).status_code == 201
    for options, told in (
        ((tmp_path / "x.npy", out), "was begun with map sha256:"),
        ((tmp_path / "x.npy", tmp_path / "x.npy"), "lie within each other"),
        ((tmp_path, out), "lie within each other"),
        ((tmp_path / "none", tmp_path / "new"), "there is nothing"),
        ((out / "x.npy", tmp_path), "lie within each other"),
        ((tmp_path / "x.npy", tmp_path / "y.npy", "--dtype", "float64"), "--dtype is float64; a map of dtype float32"),
        ((tmp_path / "x.npy", "nowhere://a/b"), "nowhere"),
    ):
        found = ran(running, map_name, *options)
        assert found.returncode == 1
        assert told in found.stderr, found.stderr
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    assert "has files already" in ran(running, map_name, tmp_path / "x.npy", tmp_path / "mine").stderr
    np.save(tmp_path / "x.npy", rows(100, 2))
    put(http, map_name + "2", SPEC)
    assert "x.npy has changed" in ran(running, map_name + "2", tmp_path / "x.npy", out).stderr


@pytest.mark.long
def test_one_of_two_runs_at_once_is_refused(tmp_path: Path) -> None:
    bulk = pytest.importorskip("bochner.bulk")
    from bochner.bulk.plan import held

    np.save(tmp_path / "x.npy", rows(10))
    for name, is_folder in (("out", True), ("out.npy", False)):
        with (
            held(str(tmp_path / name), is_folder),
            pytest.raises(bulk.Refused, match="another run is writing"),
        ):
            bulk.run(str(tmp_path / "x.npy"), str(tmp_path / name), computing(bulk), bulk.Columns(D), {})
        assert bulk.run(str(tmp_path / "x.npy"), str(tmp_path / name), computing(bulk), bulk.Columns(D), {}).new == 10


@pytest.mark.long
def test_on_a_full_disk_a_run_ends_and_goes_on_when_there_is_room(
    running: Running, map_name: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    np.save(tmp_path / "x.npy", rows(100_000))  # 19 MB of features
    with small_disk(tmp_path, 12) as disk:
        options = (tmp_path / "x.npy", disk / "out", "--rows-per-file", 10_000)
        full = ran(running, map_name, *options)
        assert full.returncode == 1
        assert "No space left on device" in full.stderr
        assert "The same command goes on from here" in full.stderr
        assert not [*disk.rglob("*.partial")]
        assert 3 <= len([*disk.rglob("x-*.npy")]) <= 6
        subprocess.run(["mount", "-o", "remount,size=40m", str(disk)], check=True)
        assert "100,000 rows of 1 file are in 10 files" in ran(running, map_name, *options).stdout


@pytest.mark.long
def test_a_row_group_of_any_size_takes_the_same_memory(
    running: Running, http: httpx.Client, name: str, tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("bochner.bulk")
    d, peaks = 200, []
    assert put(http, name, {**SPEC, "input_dim": d, "s": 8, "sampler": {"kind": "monte_carlo"}}).status_code == 201
    x = np.random.default_rng(3).standard_normal((400_000, d), dtype=np.float32)
    for n in (40_000, 400_000):  # of 32 and 320 MB
        parquet.write_table(table(x[:n]), tmp_path / f"{n}.parquet", row_group_size=n, use_dictionary=False)
        code = (
            "import re, sys, threading, time, pathlib\n"
            "seen = [0]\n"
            "def look():\n"
            "    while True:\n"
            "        told = pathlib.Path('/proc/self/status').read_text()\n"
            "        seen.append(max(seen.pop(), int(re.search(r'RssAnon:\\s+(\\d+)', told)[1]))); time.sleep(.002)\n"
            "threading.Thread(target=look, daemon=True).start()\n"
            "from app.__main__ import main; main(); print(seen[0])"
        )
        arguments = command(running, name, tmp_path / f"{n}.parquet", tmp_path / f"out{n}", "--dtype", "float16")
        told = subprocess.run([sys.executable, "-c", code, *arguments[3:]], capture_output=True, text=True, check=True)
        assert f"{n:,} rows" in told.stdout
        peaks.append(int(told.stdout.split()[-1]) * KiB)
        (tmp_path / f"{n}.parquet").unlink()
    assert peaks[1] < 1.3 * peaks[0], peaks
    assert peaks[1] < 512 << 20


@pytest.mark.long
def test_other_filesystems_are_read_and_written(tmp_path: Path) -> None:
    bulk = pytest.importorskip("bochner.bulk")
    import fsspec

    x, wanted = rows(300), None
    np.save(tmp_path / "x.npy", x)
    memory = fsspec.filesystem("memory")
    memory.makedirs("/from/deep", exist_ok=True)
    memory.pipe_file("/from/deep/x.npy", (tmp_path / "x.npy").read_bytes())
    for target in ("memory://to", "memory://to"):  # the second finds all of it
        report = bulk.run("memory://from", target, computing(bulk), bulk.Columns(D), {}, rows_per_file=128)
        wanted = 300 if wanted is None else 0
        assert (report.rows, report.new, report.written) == (300, wanted, 3)
    found = sorted(memory.find("/to"))
    assert found == ["/to/_bochner.json", *(f"/to/deep/x-{part:05}.npy" for part in range(3))]
    with fsspec.open("memory://to/deep/x-00002.npy") as file:
        np.testing.assert_array_equal(np.load(file), computing(bulk).map.transform(x[256:]))
    memory.rm("/from", recursive=True)
    memory.rm("/to", recursive=True)


@pytest.mark.long
def test_ray_writes_the_same_bytes(running: Running, map_name: str, tmp_path: Path) -> None:
    """Two workers of a Ray of this machine, each a process."""
    pytest.importorskip("ray")
    pytest.importorskip("pyarrow")
    (tmp_path / "in").mkdir()
    big(tmp_path / "in" / "a.parquet", 30_000, 7_000)
    np.save(tmp_path / "in" / "b.npy", rows(9_000))
    np.save(tmp_path / "in" / "c.npy", np.full((10, D), np.nan))
    options = ("--format", "parquet", "--rows-per-file", 8000)
    said = [
        ran(running, map_name, tmp_path / "in", tmp_path / "here", *options),
        ran_alone(running, map_name, tmp_path / "in", tmp_path / "there", *options, "--ray"),
    ]
    for one in said:
        assert one.returncode == 1
        assert "c.npy, row 0: column 0 is missing" in one.stderr
        assert "39,000 rows of 3 files are in 7 files" in one.stdout, one.stdout + one.stderr
    written = [{one.name: one.read_bytes() for one in (tmp_path / out).iterdir()} for out in ("here", "there")]
    assert len(written[0]) == 7 + 2
    assert written[0] == written[1]
