"""Published clients of the Open Inference Protocol use maps as models, unchanged."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from filelock import FileLock

from service_tests.checks import array, post_npy
from service_tests.running import Running

pytestmark = pytest.mark.nightly

ROWS = np.random.default_rng(3).standard_normal((7, 3)).astype(np.float32)
KSERVE = "kserve>=0.21,<0.22"


def triton(running: Running, concurrency: int = 1) -> Any:
    """Triton's client of a service."""
    client = pytest.importorskip("tritonclient.http")
    return client.InferenceServerClient(running.url.removeprefix("http://"), concurrency=concurrency)


def tensor(rows: Any, datatype: str = "FP32", binary: bool = True) -> Any:
    client = pytest.importorskip("tritonclient.http")
    made = client.InferInput("vectors", [*rows.shape], datatype)
    made.set_data_from_numpy(rows, binary_data=binary)
    return made


def output(name: str, binary: bool) -> Any:
    return pytest.importorskip("tritonclient.http").InferRequestedOutput(name, binary_data=binary)


def test_triton_finds_out_what_there_is(running: Running, standing: dict[str, str]) -> None:
    client, name = triton(running), standing["phase"]
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(name)
    assert client.is_model_ready(name, "1")
    assert not client.is_model_ready("none")
    assert client.get_server_metadata()["name"] == "bochner"
    assert client.get_model_metadata(name, "1") == client.get_model_metadata(name)
    assert client.get_model_metadata(name)["inputs"][0]["shape"] == [-1, 3]
    index = {one["name"]: one["state"] for one in client.get_model_repository_index()}
    assert {index[name] for name in standing.values()} == {"READY"}


@pytest.mark.parametrize("binary", [True, False])
def test_triton_gets_features_and_codes(
    http: httpx.Client, running: Running, standing: dict[str, str], binary: bool
) -> None:
    client = triton(running)
    for form, rows in (("phase", ROWS), ("float64", ROWS.astype(np.float64))):
        datatype = "FP32" if rows.dtype == np.float32 else "FP64"
        expected = array(post_npy(http, f"{standing[form]}/transform", rows))
        asked = [tensor(rows, datatype, binary)]
        for wanted in (None, [output("features", True)], [output("features", False)]):
            answer = client.infer(standing[form], asked, outputs=wanted, request_id="a-7")
            assert answer.get_response()["id"] == "a-7"
            np.testing.assert_array_equal(answer.as_numpy("features"), expected)
    for packed in ("gzip", "deflate"):
        options = {"request_compression_algorithm": packed, "response_compression_algorithm": packed}
        answer = client.infer(standing["float64"], asked, model_version="1", **options)
        np.testing.assert_array_equal(answer.as_numpy("features"), expected)
    codes = client.infer(standing["gmm"], [tensor(ROWS, "FP32", binary)]).as_numpy("codes")
    assert codes.dtype == np.int64
    np.testing.assert_array_equal(codes, array(post_npy(http, f"{standing['gmm']}/codes", ROWS)))
    answer = client.infer(standing["complex"], [tensor(ROWS)], outputs=[output("real", binary), output("imag", True)])
    found = answer.as_numpy("real") + 1j * answer.as_numpy("imag")
    np.testing.assert_array_equal(found, array(post_npy(http, f"{standing['complex']}/transform", ROWS)))


def test_triton_shows_what_is_wrong(running: Running, standing: dict[str, str]) -> None:
    client, utils = triton(running), pytest.importorskip("tritonclient.utils")
    words = pytest.importorskip("tritonclient.http").InferInput("vectors", [1, 3], "BYTES")
    words.set_data_from_numpy(np.array([[b"a", b"b", b"c"]], np.object_))
    faults: list[tuple[str, Any, dict[str, Any]]] = [
        ("rows have 2 entries; this map takes 3", tensor(ROWS[:, :2]), {}),
        ("got 'BYTES'", words, {}),
        ("'priority' is not served here", tensor(ROWS), {"priority": 3}),
        ("there is no output 'logits'", tensor(ROWS), {"outputs": [output("logits", True)]}),
        ("expected version '1' of a model, got '3'", tensor(ROWS), {"model_version": "3"}),
    ]
    for said, asked, options in faults:
        with pytest.raises(utils.InferenceServerException, match=said):
            client.infer(standing["phase"], [asked], **options)
    with pytest.raises(utils.InferenceServerException, match="there is no map 'none'"):
        client.infer("none", [tensor(ROWS)])
    with pytest.raises(utils.InferenceServerException, match="there is no map 'none'"):
        client.get_model_metadata("none")


@pytest.fixture(scope="session")
def kserve() -> Path:
    """The interpreter of an environment that has KServe's package, made once for all runs."""
    home = Path.home() / ".cache" / "bochner-tests" / f"kserve-{sys.version_info.major}.{sys.version_info.minor}"
    home.parent.mkdir(parents=True, exist_ok=True)
    python = home / "bin" / "python"
    with FileLock(f"{home}.lock"):
        if not (home / "complete").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
            done = subprocess.run([python, "-m", "pip", "install", "-q", KSERVE], capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"kserve cannot be installed: {done.stderr[-300:]}")
            (home / "complete").touch()
    return python


def test_kserve_uses_maps_as_models(
    http: httpx.Client, running: Running, standing: dict[str, str], kserve: Path
) -> None:
    program = Path(__file__).parents[1] / "kserve_client.py"
    names = standing["phase"], standing["gmm"]
    done = subprocess.run([kserve, program, running.url, *names], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["live"] is found["ready"] is True
    assert found["models"] == [True, True, False]
    rows = np.arange(12, dtype=np.float32).reshape(4, 3) / 7
    features = array(post_npy(http, f"{names[0]}/transform", rows))
    codes = array(post_npy(http, f"{names[1]}/codes?on_zero=mark", rows))
    for binary in (True, False):
        np.testing.assert_array_equal(np.array(found[f"features {binary}"], np.float32), features)
        np.testing.assert_array_equal(found[f"codes {binary}"], codes)
        assert found[f"id {binary}"] == "a-7"
    for one in found["at once"]:
        np.testing.assert_array_equal(np.array(one, np.float32), features)
    assert "rows have 2 entries; this map takes 3" in found["error"]
