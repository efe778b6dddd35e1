"""For each call the requests, within the limits that a service has by default, that take most memory or most time."""

# ruff: noqa: E501 - a request or a map is a line

import gzip
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import httpx
import numpy as np

from app.api.bodies import zstd
from service_tests.checks import ARROW, JSON, NPY, PARQUET, arrow, npy, parquet_of, put, put_dataset
from service_tests.costs import MB, Sent, sent
from service_tests.formats.test_npz import npz

MiB = 1 << 20


def member(name: str, item: bytes, nbytes: int = 16 * MiB) -> bytes:
    """A member of a JSON object that is a list of one item again and again."""
    return b'"%b":[' % name.encode() + (item + b",") * (nbytes // (len(item) + 1)) + item + b"]"


def vectors(item: bytes, others: bytes = b"") -> Callable[[], bytes]:
    """A JSON body of rows that are all alike."""
    return lambda: b"{" + member("vectors", item) + others + b"}"


def pairs(item: bytes) -> Callable[[], bytes]:
    """A JSON body of x and y, whose rows are all alike."""
    return lambda: b"{" + member("x", item, 8 * MiB) + b"," + member("y", item, 8 * MiB) + b"}"


def said(**members: Any) -> Callable[[], bytes]:
    """A JSON body."""
    return lambda: json.dumps(members, separators=(",", ":")).encode()


def array(shape: tuple[int, int], dtype: Any = np.bool_) -> Callable[[], bytes]:
    """A .npy of zeros."""
    return lambda: npy(np.zeros(shape, dtype))


def tensor(shape: tuple[int, int], item: bytes) -> Callable[[], bytes]:
    """A request of inference whose numbers are all alike."""
    head = b'{"inputs":[{"name":"vectors","datatype":"FP32","shape":[%d,%d],' % shape
    return lambda: head + member("data", item, shape[0] * (len(item) + 1) - 1) + b"}]}"


def binary(n: int, *outputs: bool) -> Callable[[], bytes]:
    """Binary rows of one number after 1,024 bytes of JSON; the outputs `real` and `imag` are binary or not."""
    size = {"binary_data_size": 4 * n}
    rows = {"name": "vectors", "datatype": "FP32", "shape": [n, 1], "parameters": size}
    named = zip(("real", "imag"), outputs, strict=True)
    wanted = [{"name": name, "parameters": {"binary_data": is_binary}} for name, is_binary in named]
    head = json.dumps({"inputs": [rows], "outputs": wanted}).encode()
    return lambda: head.ljust(1024) + bytes(4 * n)


NPZ = "application/x-npz"
BITS = 16 * MiB, 1
PAIRS = {"dataset": "bits", "rows": 2 * MiB}
SAMPLE = {"dataset": "dense", "rows": 999}
GAUSSIAN = {"kind": "gaussian", "length_scale": 1.0}
SUBSETS = [[(i + j) % 60 for j in range(9)] for i in range(1 << 16)]
MAPS: dict[str, dict[str, Any]] = {
    "one": {"input_dim": 1, "kernel": GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "s": 1},
    "exact": {"input_dim": 1, "kernel": GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "s": 1, "dtype": "float64"},
    "wide": {"input_dim": 2700, "kernel": GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "s": 16},
    "many": {"input_dim": 1, "kernel": GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "s": 1 << 20, "form": "phase"},
    "phases": {"input_dim": 1, "kernel": GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "s": 1 << 20, "form": "complex"},
    "frozen": {"input_dim": 256, "kernel": GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "s": 1 << 16},
    "computed": {"input_dim": 1000, "kernel": GAUSSIAN, "sampler": {"kind": "structured_orthogonal"}, "s": 1 << 16},
    "signed": {"input_dim": 3, "kernel": GAUSSIAN, "sampler": {"kind": "sparse_grid", "level": 3}},
    "subsets": {"input_dim": 60, "kernel": {"kind": "anova", "length_scale": 1.0, "subsets": SUBSETS}, "sampler": {"kind": "monte_carlo"}, "s": 1 << 16},
    "hashes": {"input_dim": 2, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 8},
    "thousands": {"input_dim": 1000, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 64},
    "near": {"input_dim": 500, "kernel": {"kind": "gaussian", "length_scale": 28.0}, "sampler": {"kind": "monte_carlo"}, "s": 64},
    "millions": {"input_dim": 1 << 22, "kernel": GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "s": 1},
    "centred": {"input_dim": 1 << 18, "kernel": {"kind": "gmm", "center": [1] * (1 << 18)}, "sampler": {"kind": "gcws"}, "s": 2},
    "doubles": {"input_dim": 65_000, "kernel": {"kind": "correlation_rbf", "gamma": 1.0}, "sampler": {"kind": "monte_carlo"}, "s": 1, "dtype": "float64", "input": {"center": 0.5}},
    "landmarks": {"input_dim": 2, "kernel": GAUSSIAN, "sampler": {"kind": "uploaded_landmarks", "landmarks": [[i / 7, i % 5] for i in range(200)]}},
    "tables": {"input_dim": 1 << 15, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 128},
    "sparse": {"input_dim": 1 << 20, "kernel": {"kind": "gmm"}, "sampler": {"kind": "uploaded_landmarks", "landmarks": [{"indices": [i, i + 9], "values": [1, i + 1]} for i in range(500)]}},
}  # fmt: skip


INDEXES: dict[str, dict[str, Any]] = {
    "kept": {"map": "hashes"},
    "rows": {"map": "thousands", "keep": "vectors"},
    "near": {"map": "near", "keep": "vectors"},
    "millions": {"map": "millions", "keep": "vectors"},
}


def prepare(http: httpx.Client) -> None:
    """Put the maps and datasets that the requests are about, and have libraries loaded that only some calls need."""
    rows = [[float(i)] for i in range(30)]
    asked = {
        "vectors": rows,
        "kernel": {"kind": "gaussian", "length_scale": "median"},
        "budget": 8,
        "y": [i % 2 for i in range(30)],
    }
    http.post("/v1/recommendations", json=asked).raise_for_status()
    for name, spec in MAPS.items():
        answer = put(http, name, spec)
        while answer.is_success and answer.json()["status"] == "building":  # by a job, as the machine is slow
            time.sleep(0.5)
            answer = http.get(f"/v1/maps/{name}")
        assert answer.is_success, answer.text[:500]
        assert answer.json()["status"] == "ready", answer.text[-500:]
    assert put_dataset(http, "bits", np.zeros(BITS, np.bool_)).status_code == 201
    assert put_dataset(http, "dense", np.ones((1000, 65_000), np.uint8)).status_code == 201
    assert put_dataset(http, "two", np.ones((1 << 18, 2), np.bool_)).status_code == 201
    # In the cache, as maps are once they are used: what is kept there is bounded by a setting of its own.
    assert http.post("/v1/maps/one/transform", json={"dataset": "bits", "rows": 1}).status_code == 200
    for name, index in INDEXES.items():
        assert http.put(f"/v1/indexes/{name}", json=index).status_code == 201
        ones = np.ones((5000, min(1000, MAPS[index["map"]]["input_dim"])), np.uint8)
        for first in (0, 5000) if name != "millions" else ():
            body = npz(False, ids=np.arange(first, first + 5000), vectors=ones)
            assert http.post(f"/v1/indexes/{name}/vectors", content=body, headers={"Content-Type": NPZ}).is_success
    assert put_dataset(http, "ranges", np.zeros((100, 1 << 16), np.float32)).status_code == 201


SVG = "image/svg+xml"
AFTER_JSON = {"Inference_Header_Content_Length": "1024"}
BODY = 64 * MiB
"""By default: `max_body_bytes`."""


class Worst(NamedTuple):
    """A request."""

    why: str
    """What makes it cost."""
    path: str
    body: Callable[[], bytes] = bytes
    """Makes its body, most often of 16 MiB: memory and time grow as they do, and a test of 64 takes four times as long."""
    content_type: str = JSON
    accept: str = JSON
    within: int = 0
    """Bytes of a setting that bounds it, where that is more than a multiple of its body and answer."""
    method: str = ""
    """HEAD, in the place of that of the call."""
    headers: Mapping[str, str] = {}
    of: int = 1
    """How many times as much the limits allow, where the worst would take a test too long."""

    def send(self, http: httpx.Client, method: str) -> Sent:
        """Send it."""
        types = {"Content_Type": self.content_type, "Accept": self.accept}
        return sent(http, self.method or method, self.path, self.body(), **types, **self.headers)


BUILD, RESULT, JOB, MAX_DATASET = 512 * MiB, 256 * MiB, 4096 * MiB, 256 * MiB
"""By default: `max_build_bytes`; `max_result_bytes`, which measurements may take too; `max_job_bytes`; `max_dataset_bytes`."""


def allowed(one: Worst, found: Sent) -> int:
    """How many bytes of memory it may take: so many times its body, more if that is JSON, and its answer."""
    of_json = 14 * found.body if one.content_type == JSON else 0
    return max(of_json, 4 * (found.body + found.answer), one.within) + 64 * MB


def of_map(name: str, *calls: str) -> dict[str, list[Worst]]:
    """The worst of calls that fetch an array of one map."""
    return {f"GET /v1/maps/{{name}}/{one}": [Worst("all of it, as JSON", f"/v1/maps/{name}/{one}")] for one in calls}


DIAGNOSE = "POST /v1/maps/{name}/diagnostics/{kind}"
WORST: dict[str, list[Worst]] = {
    "PUT /v1/maps/{name}": [
        Worst("a spec of 65,536 subsets", "/v1/maps/new", said(**MAPS["subsets"])),
        Worst("as much as a map may be, by a job", "/v1/maps/largest", said(**MAPS["frozen"] | {"seed": 2, "s": 700_000}), within=JOB),
        Worst("numbers of a million digits", "/v1/maps/new", lambda: b'{"input_dim":1,"s":1,"sampler":{"kind":"sobol"},"kernel":{"kind":"gaussian",' + member("length_scale", b"1" * 1_000_000, 4_000_000) + b"}}"),
    ],
    "GET /v1/maps/{name}": [
        Worst("a spec of 65,536 subsets", "/v1/maps/subsets"),
    ],
    "GET /v1/maps": [Worst("long specs", "/v1/maps?limit=1000")],
    "GET /v1/maps/{name}/frequencies": [
        Worst("all are held", "/v1/maps/frozen/frequencies"),
        Worst("all are computed", "/v1/maps/computed/frequencies", accept=NPY),
    ],
    **of_map("computed", "weights", "signs", "radii"),
    **of_map("many", "offsets"),
    **of_map("signed", "signature"),
    **of_map("landmarks", "landmarks", "root"),
    **of_map("sparse", "landmark_values", "landmark_columns", "landmark_ends"),
    "GET /v1/maps/{name}/export": [
        Worst("many frequencies, as a graph", "/v1/maps/frozen/export?format=onnx"),
        Worst("the largest table of parameters", "/v1/maps/tables/export?format=npz", within=RESULT),
    ],
    "POST /v1/maps/{name}/transform": [
        Worst("rows of one digit", "/v1/maps/one/transform", vectors(b"[0]")),
        Worst("rows of one bit, packed", "/v1/maps/one/transform", lambda: npz(True, vectors=np.zeros(BITS, np.bool_)), NPZ, NPZ, within=BODY),
        Worst("columns of bytes, and one of doubles", "/v1/maps/wide/transform", lambda: arrow(**{str(i): np.zeros(6000, np.uint8 if i else np.float64) for i in range(2700)}), ARROW, ARROW, within=14 * 16 * MiB),
        Worst("bytes for a map of doubles, in gzip", "/v1/maps/exact/transform", lambda: gzip.compress(arrow(v=np.zeros((63 * MiB, 1), np.int8)), 1), ARROW, ARROW, within=2 * BODY, headers={"Content_Encoding": "gzip"}),
        Worst("rows of one byte in base64, all escaped", "/v1/maps/one/transform", lambda: b'{"vectors":{"shape":[4194304,1],"dtype":"uint8","base64":"' + b"\\u0041" * (4 * MiB * 4 // 3 // 4 * 4) + b'"}}', accept=NPY),
        Worst("rows of one digit, in gzip", "/v1/maps/one/transform", lambda: gzip.compress(vectors(b"[0]")(), 1), accept=NPY, within=14 * 16 * MiB, headers={"Content_Encoding": "gzip"}),
        Worst("a bomb", "/v1/maps/one/transform", lambda: zstd.compress(bytes(1 << 30)), NPY, NPY, within=2 * BODY, headers={"Content_Encoding": "zstd"}),
        Worst("brackets in brackets", "/v1/maps/one/transform", lambda: b'{"vectors":' + b"[" * 8 * MiB + b"]" * 8 * MiB + b"}"),
        Worst("numbers of thousands of digits", "/v1/maps/one/transform", vectors(b"[0." + b"1" * 4000 + b"e-300]")),
        Worst("as many features as may be", "/v1/maps/many/transform", array((30, 1)), NPY, NPY, of=33),
        Worst("rows of a dataset, made doubles and scaled", "/v1/maps/doubles/transform", said(vectors={"dataset": "dense"}), within=3 * MAX_DATASET),
    ],
    "POST /v1/maps/{name}/kernel": [
        Worst("exactly, of sparse rows that are made dense", "/v1/maps/wide/kernel?exact=true", said(x=[{"indices": [0], "values": [1]}] * 1000), within=RESULT, of=15),
        Worst("samples of a dataset, made doubles and scaled", "/v1/maps/doubles/kernel", said(x=SAMPLE, y=SAMPLE), within=3 * MAX_DATASET),
        Worst("one row with as many as may be, by many frequencies", "/v1/maps/phases/kernel", said(x=[[1]], y=PAIRS | {"rows": 110}), within=RESULT, of=10),
        Worst("exactly, of 65,536 subsets", "/v1/maps/subsets/kernel?exact=true", said(x=[[i / 9] * 60 for i in range(200)]), of=4),
    ],
    "POST /v1/maps/{name}/codes": [
        Worst("rows of two bits", "/v1/maps/hashes/codes?on_zero=mark", array((4 * MiB, 2)), NPY, NPY, of=13),
        Worst("as many signed codes as may be", "/v1/maps/many/codes", array((240, 1)), NPY, NPY, of=15),
        Worst("as many as may be, combined", "/v1/maps/many/codes?encoding=fingerprint&rows_per_band=1048576", said(vectors=PAIRS | {"rows": 570}), of=10),
    ],
    "POST /v1/maps/{name}/similarity": [
        Worst("vectors", "/v1/maps/hashes/similarity?gamma=1", pairs(b"[1,0]")),
        Worst("as many signed codes as may be", "/v1/maps/many/similarity", said(x=PAIRS | {"rows": 59}, y=PAIRS | {"rows": 59}), of=10),
        Worst("as many pairs as may be", "/v1/maps/one/similarity", said(x=PAIRS, y=PAIRS), within=RESULT),
        Worst("codes of one byte, packed", "/v1/maps/hashes/similarity?of=codes&encoding=b_bit&bits=8", lambda: npz(True, x=np.zeros((4 * MiB, 8), np.uint8), y=np.zeros((4 * MiB, 8), np.uint8)), NPZ, NPZ, within=BODY),
    ],
    "PUT /v1/datasets/{name}": [
        Worst("rows of one digit", "/v1/datasets/new", vectors(b"[0]")),
        Worst("zeros in a Parquet file, as many as a dataset may have", "/v1/datasets/zeros", lambda: parquet_of(v=np.zeros(((MAX_DATASET - MiB) // 8, 1))), PARQUET, within=3 * MAX_DATASET),
        Worst("columns of bytes, and one of doubles, in a Parquet file", "/v1/datasets/new", lambda: parquet_of(**{str(i): np.zeros(1_000_000, np.int8 if i else np.float64) for i in range(201)}), PARQUET, within=2 * MAX_DATASET),
    ],
    "GET /v1/datasets/{name}": [Worst("65,536 columns", "/v1/datasets/ranges")],
    "GET /v1/datasets": [Worst("all of them", "/v1/datasets?limit=1000")],
    "PUT /v1/indexes/{name}": [
        Worst("a target for a long dataset", "/v1/indexes/new", said(map="hashes", keep="vectors", target={"recall": 0.9, "k": 100, "dataset": "two"}), within=JOB),
    ],
    "POST /v1/indexes/{name}/vectors": [
        Worst("ids without end", "/v1/indexes/kept/vectors", lambda: b'{"vectors":[[1,0]],' + member("ids", b"1", 16 * MiB) + b"}"),
        Worst("as many as may come, of long rows", "/v1/indexes/rows/vectors", lambda: npz(False, ids=np.arange(10_000), vectors=np.ones((10_000, 1000), np.uint8)), NPZ, within=4 * BODY),
        Worst("as many as may come, which are near to each other and not similar enough", "/v1/indexes/near/vectors?unless_similar=.9", lambda: npz(True, ids=np.arange(10_000), vectors=np.random.default_rng(0).random((10_000, 500)) < 0.5), NPZ, within=2 * BODY),
        Worst("sparse rows that are compared exactly, by all columns", "/v1/indexes/millions/vectors?unless_similar=.1", lambda: json.dumps({"ids": [*range(64)], "vectors": [{"indices": [i], "values": [0.1]} for i in range(64)]}).encode(), within=RESULT),
    ],
    "POST /v1/indexes/{name}/vectors/count": [
        Worst("a filter of as many tags as may be", "/v1/indexes/rows/vectors/count", said(filter={member: ["\u0000" * 1024] * 100 for member in ("all", "any", "none")})),
    ],
    "POST /v1/indexes/{name}/vectors/delete": [
        Worst("as many ids as may come", "/v1/indexes/rows/vectors/delete", said(ids=[*range(10**6, 10**6 + 10_000)])),
        Worst("all with a filter", "/v1/indexes/rows/vectors/delete", said(filter={"all": ["\u0000" * 1024] * 100})),
    ],
    "PATCH /v1/indexes/{name}/vectors": [
        Worst("as many ids as may come", "/v1/indexes/rows/vectors", said(ids=[*range(10_000)], add_tags=["\u0000" * 1024] * 16), within=32 * MiB),
    ],
    "POST /v1/indexes/{name}/search": [
        Worst("as many vectors are asked for as are kept", "/v1/indexes/rows/search", said(k=1000, ids=[*range(1000)])),
        Worst("as many are compared exactly as may be", "/v1/indexes/rows/search", lambda: b'{"k":1000,"vectors":' + json.dumps([[1] * 1000] * 100).encode() + b"}"),
    ],
    "POST /v1/indexes/{name}/duplicates": [
        Worst("all are duplicates", "/v1/indexes/rows/duplicates", said(min_similarity=0.001), headers={"Prefer": "wait=20"}, within=JOB),
    ],
    DIAGNOSE: [
        Worst("gram, of as many rows as may be, by a job", "/v1/maps/one/diagnostics/gram", said(dataset="bits", rows=20_000, seeds=20, estimators=["map", "cv1", "cv2"]), within=JOB),
        Worst("variance, of as many maps as may be", "/v1/maps/one/diagnostics/variance", said(correlations=[0.5] * 1000, repeats=10_000), within=RESULT),
        Worst("box-discrepancy, of as many frequencies and scales as may be", "/v1/maps/many/diagnostics/box-discrepancy", said(box=1.0, box_scales=[1.0] * 20), within=RESULT),
        Worst("box-discrepancy, of rows of a dataset, made doubles and scaled", "/v1/maps/doubles/diagnostics/box-discrepancy", said(dataset="dense", box_scales=[0.1]), within=3 * MAX_DATASET),
        Worst("collisions, of sparse rows around a centre", "/v1/maps/centred/diagnostics/collisions", lambda: json.dumps({"vectors": [{"indices": [i], "values": [3]} for i in range(64)]}).encode(), within=RESULT),
        Worst("collisions, of as many rows as a request takes", "/v1/maps/hashes/diagnostics/collisions", lambda: b"{" + member("vectors", b"[1,0]", 600_000) + b"}", within=RESULT),
    ],
    "POST /v1/recommendations": [
        Worst("as many labels as may be", "/v1/recommendations", lambda: b'{"kernel":{"kind":"gaussian","length_scale":1},"budget":2,' + member("vectors", b"[0]", 4 * 598_999) + b"," + member("y", b"0,1", 2 * 598_998) + b"}", within=RESULT),
        Worst("every sampler, as wide as may be", "/v1/recommendations", said(dataset="bits", kernel=GAUSSIAN, budget=1 << 16, seeds=20, objective="time", target_error=1e-9), within=JOB),
        Worst("dense rows, for a kernel that compares sparse ones as they are", "/v1/recommendations", said(dataset="dense", kernel={"kind": "chi_squared"}, budget=16, mode="quick"), within=3 * RESULT),
    ],
    "POST /v1/indexes/{name}/copy": [Worst("of many vectors", "/v1/indexes/copied/copy", said(**{"from": "rows"}), headers={"Prefer": "wait=20"})],
    "POST /v1/indexes/{name}/recall": [Worst("of many queries", "/v1/indexes/rows/recall", said(k=100, queries=1000), headers={"Prefer": "wait=20"}, within=JOB)],
    "PUT /v1/aliases/{name}": [Worst("of a map", "/v1/aliases/other", said(map="hashes"))],
    "POST /v1/bands": [
        Worst("as many hashes as may be", "/v1/bands", said(hashes=1 << 16, min_similarity=1e-9, recall=0.999)),
    ],
    "POST /v1/indexes/advice": [
        Worst("a long dataset, for as many neighbours as may be", "/v1/indexes/advice", said(map="hashes", dataset="two", k=100, recall=0.999), within=JOB),
    ],
    "POST /v1/keys": [Worst("names without end", "/v1/keys", lambda: json.dumps(dict.fromkeys(map(str, range(330_000)), 1)).encode())],
    "POST /v2/models/{name}/infer": [
        Worst("brackets in brackets", "/v2/models/one/infer", lambda: b'{"inputs":' + b"[" * 8 * MiB + b"]" * 8 * MiB + b"}"),
        Worst("as many features as may be, both binary", "/v2/models/phases/infer", binary(30, True, True), "application/octet-stream", headers=AFTER_JSON, of=16),
    ],
    "POST /v2/repository/index": [
        Worst("all maps", "/v2/repository/index"),
    ],
}  # fmt: skip
