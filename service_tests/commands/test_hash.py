"""Files of rows into files of codes, as a user runs `bochner hash`."""

import io
from pathlib import Path

import httpx
import numpy as np
import pytest

from service_tests.checks import post_npy, put
from service_tests.commands.runs import D, ran, rows
from service_tests.running import Running

SPEC = {"input_dim": D, "s": 40, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}}
SIGNED = {**SPEC, "kernel": {"kind": "gaussian", "length_scale": 2.0}, "sampler": {"kind": "sobol"}}


@pytest.mark.nightly
def test_codes_are_those_of_the_service(running: Running, http: httpx.Client, name: str, tmp_path: Path) -> None:
    pytest.importorskip("bochner.bulk")
    put(http, name, SPEC)
    x = rows(600)
    x[17] = 0
    np.save(tmp_path / "x.npy", x)
    refused = ran(running, name, tmp_path / "x.npy", tmp_path / "a.npy", call="hash")
    assert refused.returncode == 1
    assert "x.npy, row 17: is all zero" in refused.stderr
    assert not (tmp_path / "a.npy").exists()
    b_bit = ("--encoding", "b_bit", "--bits", "4", "--bits-of", "pair"), "&encoding=b_bit&bits=4&bits_of=pair"
    for number, (options, query) in enumerate((((), ""), (("--encoding", "pairs"), "&encoding=pairs"), b_bit)):
        target = tmp_path / f"{number}.npy"
        done = ran(running, name, tmp_path / "x.npy", target, "--on-zero", "mark", *options, call="hash")
        assert done.stdout.startswith("600 rows of 1 file are in 1 file"), done.stderr
        wanted = np.load(io.BytesIO(post_npy(http, f"{name}/codes?on_zero=mark{query}", x).content))
        found = np.load(target)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)
    told = ran(running, name, tmp_path / "x.npy", tmp_path / "out", "--bits", "3", call="hash").stderr
    assert "--bits: encoding zero_bit keeps whole numbers" in told
