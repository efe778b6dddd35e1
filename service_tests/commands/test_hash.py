"""Files of rows into files of codes, as a user runs `bochner hash`."""

import io
from pathlib import Path

import httpx
import numpy as np
import pytest

from service_tests.checks import post_npy, put
from service_tests.commands.runs import D, ran, rows, table
from service_tests.running import Running

SPEC = {"input_dim": D, "s": 40, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}}
SIGNED = {**SPEC, "kernel": {"kind": "gaussian", "length_scale": 2.0}, "sampler": {"kind": "sobol"}}


@pytest.mark.nightly
def test_codes_are_those_of_the_service(running: Running, http: httpx.Client, name: str, tmp_path: Path) -> None:
    pytest.importorskip("bochner.bulk")
    parquet = pytest.importorskip("pyarrow.parquet")
    put(http, name, SPEC)
    x = rows(600)
    x[17] = 0
    parquet.write_table(table(x, id=np.arange(600)), tmp_path / "x.parquet", row_group_size=250)
    refused = ran(running, name, tmp_path / "x.parquet", tmp_path / "a.parquet", call="hash")
    assert refused.returncode == 1
    assert "x.parquet, row 17: is all zero" in refused.stderr
    assert not (tmp_path / "a.parquet").exists()
    for target, options, query in (
        ("a.parquet", (), ""),
        ("b.parquet", ("--encoding", "pairs"), "&encoding=pairs"),
        ("c.npy", ("--encoding", "packed", "--bits", "4", "--bits-of", "pair"), "&encoding=packed&bits=4&bits_of=pair"),
    ):
        on_zero = ("--on-zero", "mark") if "packed" not in query else ("--on-zero", "hash")
        done = ran(running, name, tmp_path / "x.parquet", tmp_path / target, *on_zero, *options, call="hash")
        assert done.stdout.startswith("600 rows of 1 file are in 1 file"), done.stderr
        wanted = np.load(io.BytesIO(post_npy(http, f"{name}/codes?on_zero={on_zero[1]}{query}", x).content))
        if target.endswith(".npy"):
            found = np.load(tmp_path / target)
        else:
            column = parquet.read_table(tmp_path / target).column("codes").combine_chunks()
            while column.type.num_fields:
                column = column.flatten()
            found = column.to_numpy()
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


@pytest.mark.nightly
def test_options_without_a_meaning_are_refused_before_anything_is_read(
    running: Running, http: httpx.Client, name: str, tmp_path: Path
) -> None:
    pytest.importorskip("bochner.bulk")
    put(http, name, SPEC)
    np.save(tmp_path / "x.npy", rows(3))
    for call, options, told in (
        ("hash", ("--bits", "3"), "--bits: encoding zero_bit keeps whole numbers"),
        ("transform", (), "gives codes"),
    ):
        found = ran(running, name, tmp_path / "x.npy", tmp_path / "out", *options, call=call)
        assert found.returncode != 0
        assert told in found.stderr, found.stderr
