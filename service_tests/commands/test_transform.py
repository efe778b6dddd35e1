"""Files of rows into files of features, as a user runs `bochner transform`: what is read, and what comes out."""

from functools import partial
from pathlib import Path

import httpx
import numpy as np
import pytest

from service_tests.commands.runs import D, big, by_service, computing, features, ran, ran_alone, rows, table
from service_tests.running import Running


@pytest.mark.nightly
def test_a_folder_of_parquet_has_the_features_of_the_service_bit_for_bit(
    running: Running, http: httpx.Client, map_name: str, tmp_path: Path
) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    source, out = tmp_path / "in", tmp_path / "out"
    (source / "deep").mkdir(parents=True)
    x = rows(1000)
    parquet.write_table(table(x, id=np.arange(1000)[::-1].copy()), source / "numbers.parquet", row_group_size=300)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(x[:70].reshape(-1)), D)
    parquet.write_table(pa.table({"id": [f"ü{i}" for i in range(70)], "v": lists}), source / "deep/texts.parquet")
    (source / "_SUCCESS").touch()
    found = ran(running, map_name, source, out, "--rows-per-file", 400)
    assert "1,070 rows of 2 files are in 4 files" in found.stdout, found.stderr
    parts = [out / f"numbers-{part:05}.parquet" for part in range(3)]
    np.testing.assert_array_equal(np.vstack([features(one) for one in parts]), by_service(http, map_name, x))
    ids = np.concatenate([parquet.read_table(one).column("id").to_numpy() for one in parts])
    np.testing.assert_array_equal(ids, np.arange(1000)[::-1])
    deep = out / "deep/texts.parquet"
    np.testing.assert_array_equal(features(deep), by_service(http, map_name, x[:70]))
    assert parquet.read_table(deep).column("id").to_pylist()[-1] == "ü69"
    times = {one: one.stat().st_mtime_ns for one in (*parts, deep)}
    parts[1].unlink()
    again = ran(running, map_name, source, out, "--rows-per-file", 400)
    assert "1,070 rows of 2 files are in 4 files, 300 of them now" in again.stdout
    assert [one for one in times if one.stat().st_mtime_ns != times[one]] == [parts[1]]


@pytest.mark.nightly
def test_arrays_and_csv_are_read_and_written(
    running: Running, http: httpx.Client, map_name: str, tmp_path: Path
) -> None:
    csv = pytest.importorskip("pyarrow.csv")
    x = rows(500)
    wanted = by_service(http, map_name, x)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(x.astype(np.float64)))
    csv.write_csv(table(x, id=[f"a {i}" for i in range(500)]), tmp_path / "x.csv")
    np.savetxt(tmp_path / "bare.csv", x, delimiter=",", fmt="%.9g")
    for source, target, options in (
        ("fortran.npy", "b.npy", ()),
        ("bare.csv", "c.npy", ("--no-header",)),
        ("x.csv", "d.parquet", ()),
    ):
        found = ran(running, map_name, tmp_path / source, tmp_path / target, *options)
        assert "500 rows of 1 file are in 1 file" in found.stdout, found.stderr
        read = features if target.endswith("parquet") else np.load
        np.testing.assert_array_equal(read(tmp_path / target), wanted)
    found = ran(running, map_name, tmp_path / "x.csv", tmp_path / "out", "--dtype", "float16", "--rows-per-file", 199)
    assert found.returncode == 0, found.stderr
    parts = [csv.read_csv(one).to_pandas() for one in sorted((tmp_path / "out").glob("*.csv"))]
    assert [one for part in parts for one in part["id"]] == [f"a {i}" for i in range(500)]
    numbers = np.vstack([one.drop(columns="id").to_numpy() for one in parts])
    np.testing.assert_array_equal(numbers.astype(np.float32), wanted.astype(np.float16).astype(np.float32))


@pytest.mark.nightly
def test_columns_are_chosen_by_name_and_numbers_of_all_types_make_rows(tmp_path: Path) -> None:
    bulk = pytest.importorskip("bochner.bulk")
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    x = np.round(np.abs(rows(90)) * 8)
    types = (pa.int8(), pa.float64(), pa.uint16(), pa.float16(), pa.int64())
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
    with pytest.raises(bulk.Refused, match=r"x.parquet: column 'label' is utf8"):
        run(str(tmp_path / "z.parquet"), computing(bulk), bulk.Columns(D))
    large = some.set_column(5, "x4", pa.array([2**53 + 1] * 90))
    parquet.write_table(large, tmp_path / "x.parquet")
    (complaint,) = run(str(tmp_path / "w.parquet"), computing(bulk), wanted).complaints
    assert "has 9007199254740993 in row 0, which float64 would round" in complaint


@pytest.mark.gate
def test_files_go_by_the_names_of_their_columns(tmp_path: Path) -> None:
    bulk, parquet = pytest.importorskip("bochner.bulk"), pytest.importorskip("pyarrow.parquet")
    x, names = rows(3), [*"abcde"]
    (tmp_path / "in").mkdir()

    def write(name: str, order: list[str], first: str = "") -> None:
        lines = [",".join(order), *(",".join(str(row[names.index(one)]) for one in order) for row in x)]
        (tmp_path / "in" / name).write_text("\n".join(lines).replace("a", first or "a", 1))

    write("1.csv", names)
    write("2.csv", names[::-1])
    frame = table(x, name=["q", "r", "s"]).to_pandas().set_axis(["id", *names], axis=1).set_axis([7, 2, 9])
    frame[["e", "a", "d", "c", "id", "b"]].to_parquet(tmp_path / "in" / "3.parquet")
    run = partial(bulk.run, str(tmp_path / "in"), computing=computing(bulk), columns=bulk.Columns(D), note={})
    assert run(str(tmp_path / "out"), file_format="parquet").rows == 9
    for name in "123":
        np.testing.assert_array_equal(features(tmp_path / "out" / f"{name}.parquet"), computing(bulk).map.transform(x))
    assert parquet.read_table(tmp_path / "out" / "3.parquet").column("id").to_pylist() == ["q", "r", "s"]
    parquet.write_table(table(x, id=[b"\xff", b"b", b"c"]), tmp_path / "bytes.parquet")
    with pytest.raises(bulk.Refused, match=r"^bytes.parquet: CSV has no ids of type binary"):
        bulk.run(str(tmp_path / "bytes.parquet"), str(tmp_path / "bytes.csv"), **run.keywords, file_format="csv")
    write("2.csv", names[::-1], first="z")
    with pytest.raises(bulk.Refused, match=r"^2.csv: its columns are e, d, c, b, z\nexpected those of 1.csv"):
        run(str(tmp_path / "other"), file_format="parquet")


@pytest.mark.nightly
def test_other_filesystems_are_read_and_written(tmp_path: Path) -> None:
    bulk = pytest.importorskip("bochner.bulk")
    import fsspec

    x = rows(300)
    np.save(tmp_path / "x.npy", x)
    memory = fsspec.filesystem("memory")
    memory.makedirs("/from/deep", exist_ok=True)
    memory.pipe_file("/from/deep/x.npy", (tmp_path / "x.npy").read_bytes())
    for new in (300, 0):
        report = bulk.run("memory://from", "memory://to", computing(bulk), bulk.Columns(D), {}, rows_per_file=128)
        assert (report.rows, report.new, report.written) == (300, new, 3)
    found = sorted(memory.find("/to"))
    assert found == ["/to/_bochner.json", *(f"/to/deep/x-{part:05}.npy" for part in range(3))]
    with fsspec.open("memory://to/deep/x-00002.npy") as file:
        np.testing.assert_array_equal(np.load(file), computing(bulk).map.transform(x[256:]))
    for place in ("/from", "/to"):
        memory.rm(place, recursive=True)


@pytest.mark.nightly
def test_ray_writes_the_same_bytes(running: Running, map_name: str, tmp_path: Path) -> None:
    """Two workers of a Ray of this machine, each a process."""
    pytest.importorskip("ray")
    (tmp_path / "in").mkdir()
    big(tmp_path / "in" / "a.parquet", 30_000, 7_000)
    np.save(tmp_path / "in" / "c.npy", np.full((10, D), np.nan))
    options = ("--format", "parquet", "--rows-per-file", 8000)
    said = [
        ran(running, map_name, tmp_path / "in", tmp_path / "here", *options),
        ran_alone(running, map_name, tmp_path / "in", tmp_path / "there", *options, "--ray"),
    ]
    for one in said:
        assert "c.npy, row 0: column 0 is missing" in one.stderr
        assert "30,000 rows of 2 files are in 5 files" in one.stdout, one.stdout + one.stderr
    written = [{one.name: one.read_bytes() for one in (tmp_path / out).iterdir()} for out in ("here", "there")]
    assert written[0] == written[1]
