"""Files that `bochner transform` cannot use, and runs that it does not begin: what is said of them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.checks import put
from service_tests.commands.runs import SPEC, D, computing, ran, rows
from service_tests.running import Running


def cut(path: Path) -> None:
    np.save(path, np.ones((3, 5)))
    os.truncate(path, 140)


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "wide.npy": (lambda path: np.save(path, np.ones((3, 6))), "wide.npy: rows have 6 entries; this map takes 5"),
    "cut.npy": (cut, "cut.npy: it has 140 bytes; its header announces 248"),
    "nan.npy": (lambda path: np.save(path, [[1.0] * 5, [1.0] * 3 + [np.nan, 1.0]]), "nan.npy, row 1: column 3 is"),
    "damaged.parquet": (lambda path: path.write_bytes(b"PAR1" + bytes(100) + b"PAR1"), "damaged.parquet: "),
    "bare.csv": (lambda path: path.write_text("0,1,2,3,4\n5,6,7,8,9\n"), "bare.csv: its first line has the number 0: "),
    "short.csv": (lambda path: path.write_text("a,b,c,d,e\n1,2,3,4,5\n\n1,2,3,4\n"), "short.csv, row 1: it has 4"),
    "digits.csv": (
        lambda path: path.write_text("a,b,c,d,e\n1,2,3,4,5\n1,2,1_000,4,5\n"),
        "digits.csv, row 1: column 'c' is '1_000'; a ",
    ),
    "words.csv": (lambda path: path.write_text("a,b,c,d,e\n1,2,x,4,5\n"), "words.csv, row 0: column 'c' is 'x'; a "),
}
"""What makes a file, and what is said of it."""


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_another_map_another_output_or_another_run_is_not_mixed_in(
    running: Running, http: httpx.Client, map_name: str, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", rows(100))
    out = tmp_path / "out"
    assert ran(running, map_name, tmp_path / "x.npy", out).returncode == 0
    assert http.delete(f"/v1/maps/{map_name}").status_code == 204
    assert put(http, map_name, {**SPEC, "seed": 5}).status_code == 201
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    for options, told in (
        ((tmp_path / "x.npy", out), "was begun with map sha256:"),
        ((tmp_path / "x.npy", tmp_path / "x.npy"), "lie within each other"),
        ((tmp_path / "none", tmp_path / "new"), "there is nothing"),
        ((tmp_path / "mine" / "letter.txt", tmp_path / "new"), "expected a name that ends in .parquet, "),
        ((tmp_path / "x.npy", tmp_path / "mine"), "has files already"),
    ):
        found = ran(running, map_name, *options)
        assert found.returncode == 1
        assert told in found.stderr, found.stderr
    np.save(tmp_path / "x.npy", rows(100, 2))
    put(http, map_name + "2", SPEC)
    assert "x.npy has changed" in ran(running, map_name + "2", tmp_path / "x.npy", out).stderr


@pytest.mark.nightly
def test_a_file_takes_the_place_of_no_other_and_one_of_two_runs_at_once_is_refused(tmp_path: Path) -> None:
    bulk = pytest.importorskip("bochner.bulk")
    from bochner.bulk.plan import held

    (tmp_path / "in").mkdir()
    np.save(tmp_path / "in" / "a.npy", rows(3))
    source, one, columns = str(tmp_path / "in"), f"{tmp_path}/one.npy", bulk.Columns(D)
    with held(one, False), pytest.raises(bulk.Refused, match="another run is writing"):
        bulk.run(f"{source}/a.npy", one, computing(bulk), columns, {})
    assert bulk.run(f"{source}/a.npy", one, computing(bulk), columns, {}).new == 3
    with pytest.raises(bulk.Refused, match=r"one.npy is there already"):
        bulk.run(f"{source}/a.npy", one, computing(bulk), columns, {})
    np.savetxt(tmp_path / "in" / "a.csv", rows(3), delimiter=",", header="a,b,c,d,e", comments="")
    with pytest.raises(bulk.Refused, match=r"a.csv and .*a.npy would both become .*/out/a.npy"):
        bulk.run(source, str(tmp_path / "out"), computing(bulk), columns, {}, file_format="npy")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("zip://rows::a.zip", "zip://rows::a.zip: expected one address, got a chain of them"),
        ("nope://rows", "nope://rows: Protocol not known: nope"),
        ("data:,rows", "data://,rows: "),
        ("memory://clash", r"memory:///clash/x//b.npy and memory:///clash/x/b.npy would both become .*/out/x/b.npy"),
        ("memory://odd", ["%20 ü.npy", "x/b.npy"]),
        ("memory://odd/x/", ["b.npy"]),
        ("file:{}/per%20 ü//", ["a.npy"]),
    ],
)
def test_addresses_are_read_or_refused_in_a_sentence(source: str, told: str | list[str], tmp_path: Path) -> None:
    bulk, memory = pytest.importorskip("bochner.bulk"), pytest.importorskip("fsspec").filesystem("memory")
    folder, out = tmp_path / "per%20 ü", tmp_path / "out"
    folder.mkdir()
    np.save(folder / "a.npy", rows(3))
    for key in ("odd/x//b.npy", "odd/%20 ü.npy", "clash/x/b.npy", "clash/x//b.npy"):
        memory.pipe(f"/{key}", (folder / "a.npy").read_bytes())
    given: Any = (source.format(tmp_path), str(out), computing(bulk), bulk.Columns(D), {})
    if isinstance(told, str):
        with pytest.raises(bulk.Refused, match=told):
            bulk.run(*given)
        return
    assert bulk.run(*given).new == 3 * len(told)
    assert sorted(str(one.relative_to(out)) for one in out.rglob("*.npy")) == told
