"""Commands that send files of rows through a map, as users run them; and what such files hold."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import httpx
import numpy as np

from app.__main__ import main
from service_tests.checks import post_npy
from service_tests.running import Running

D = 5

SPEC = {"input_dim": D, "s": 24, "kernel": {"kind": "gaussian", "length_scale": 2.0}, "sampler": {"kind": "halton"}}


def command(running: Running, name: str, *options: object, call: str = "transform") -> list[str]:
    return [sys.executable, "-m", "app", call, "--url", running.url, "--map", name, *map(str, options)]


def run(*arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "app", *arguments], capture_output=True, text=True, timeout=60, check=False, **options
    )


class Ended(NamedTuple):
    """What a command said, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


def ran(running: Running, name: str, *options: object, call: str = "transform") -> Ended:
    """Run the command in this process: to start another takes longer than most of its work here."""
    code: object = 0
    argv = ["bochner", *command(running, name, *options, call=call)[3:]]
    said, wrong = io.StringIO(), io.StringIO()
    with redirect_stdout(said), redirect_stderr(wrong), mock.patch.object(sys, "argv", argv):
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


def computing(bulk: Any, **options: Any) -> Any:
    """A map without a service."""
    import bochner
    from service_tests.formats.exports.taken import taken, written

    spec = bochner.MapSpec.model_validate(SPEC)
    return bulk.Computing(written(taken(spec)[0], "npz"), **options)


def big(path: Path, n: int, row_group: int) -> np.ndarray:
    from pyarrow import parquet

    x = rows(n)
    parquet.write_table(table(x, id=np.arange(n)), path, row_group_size=row_group)
    return x
