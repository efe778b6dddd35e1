"""For each call the requests, within the limits that a service has by default, that take most memory or most time."""

# ruff: noqa: E501 - a request is a line

import json
import time
from collections.abc import Callable
from itertools import repeat
from typing import Any, NamedTuple

import httpx
import numpy as np

from service_tests.checks import JSON, NPY, npy, put, put_dataset
from service_tests.costs import Sent, sent

MiB = 1 << 20
SVG = "image/svg+xml"


class Worst(NamedTuple):
    """A request."""

    why: str
    """What makes it cost."""
    path: str
    body: Callable[[], bytes] = bytes
    """Makes its body, most often of 16 MiB: memory and time grow as they do, and a test of 64 takes four times as long."""
    content_type: str = JSON
    accept: str = JSON
    beyond: str = ""
    """Why it takes more memory than it should."""
    of: int = 1
    """How many times as much the limits allow, where the worst would take a test too long."""

    def send(self, http: httpx.Client, method: str) -> Sent:
        """Send it."""
        return sent(http, method, self.path, self.body(), Content_Type=self.content_type, Accept=self.accept)


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


SPARSE, EMPTY = b'{"indices":[0],"values":[1]}', b'{"indices":[],"values":[]}'
BITS = 16 * MiB, 1
GAUSSIAN = {"kind": "gaussian", "length_scale": 1.0}
SUBSETS = [[(i + j) % 60 for j in range(14)] for i in range(1 << 16)]
MAPS: dict[str, dict[str, Any]] = {
    "one": {"input_dim": 1, "kernel": GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "s": 1},
    "wide": {"input_dim": 2700, "kernel": GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "s": 16},
    "many": {"input_dim": 1, "kernel": GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "s": 1 << 20, "form": "phase"},
    "frozen": {"input_dim": 256, "kernel": GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "s": 1 << 16},
    "computed": {"input_dim": 1000, "kernel": GAUSSIAN, "sampler": {"kind": "structured_orthogonal"}, "s": 1 << 16},
    "signed": {"input_dim": 3, "kernel": GAUSSIAN, "sampler": {"kind": "sparse_grid", "level": 3}},
    "subsets": {"input_dim": 60, "kernel": {"kind": "anova", "length_scale": 1.0, "subsets": SUBSETS}, "sampler": {"kind": "monte_carlo"}, "s": 1 << 16},
    "hashes": {"input_dim": 2, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 8},
    "long": {"input_dim": 1 << 31, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 8},
    "landmarks": {"input_dim": 2, "kernel": GAUSSIAN, "sampler": {"kind": "uploaded_landmarks", "landmarks": [[i / 7, i % 5] for i in range(200)]}},
    "sparse": {"input_dim": 1 << 20, "kernel": {"kind": "gmm"}, "sampler": {"kind": "uploaded_landmarks", "landmarks": [{"indices": [i, i + 9], "values": [1, i + 1]} for i in range(500)]}},
}  # fmt: skip


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
    # In the cache, as maps are once they are used: what is kept there is bounded by a setting of its own.
    assert http.post("/v1/maps/one/transform", json={"dataset": "bits", "rows": 1}).status_code == 200
    assert put_dataset(http, "ranges", np.zeros((100, 1 << 16), np.float32)).status_code == 201


def of_map(name: str, *calls: str) -> dict[str, list[Worst]]:
    """The worst of calls that fetch an array of one map."""
    return {f"GET /v1/maps/{{name}}/{one}": [Worst("all of it, as JSON", f"/v1/maps/{name}/{one}")] for one in calls}


DIAGNOSE = "POST /v1/maps/{name}/diagnostics/{kind}"
CHEAP = [
    *("GET /v1/jobs", "GET /v1/jobs/{id}", "DELETE /v1/jobs/{id}", "GET /v1/jobs/{id}/result", "GET /v1/jobs/{id}/events"),
    *("GET /health/live", "GET /health/ready", "GET /v1/info", "GET /v1/catalog", "GET /problems/{slug}"),
    *("DELETE /v1/maps/{name}", "DELETE /v1/datasets/{name}"),
    *("GET /v1/keys", "POST /v1/keys", "DELETE /v1/keys/{id}"),
]  # fmt: skip
"""Calls without bodies, or with such of a few names, whose answers are short or pages of bounded length."""
WORST: dict[str, list[Worst]] = {
    "PUT /v1/maps/{name}": [
        Worst("a spec of 65,536 subsets", "/v1/maps/new", said(**MAPS["subsets"]), beyond="each subset is a kernel of its own while a map is built: 142 MB of 102"),
        Worst("a million subsets", "/v1/maps/new", lambda: b'{"input_dim":1,"kernel":{"kind":"anova","length_scale":1,' + member("subsets", b"[0]", 4_190_000) + b"}}"),
        Worst("members without end", "/v1/maps/new", lambda: json.dumps(dict(zip(map(str, range(330_000)), repeat(1), strict=False))).encode()),
        Worst("scales without end", "/v1/maps/new", lambda: b'{"input_dim":2,"s":1,"sampler":{"kind":"sobol"},"kernel":{"kind":"gaussian",' + member("length_scale", b"1", 4_190_000) + b"}}"),
        Worst("a fit beside much else", "/v1/maps/new", lambda: b'{"seed":null,"input_dim":2,"s":1,"sampler":{"kind":"sobol"},"kernel":{"kind":"gaussian",' + member("length_scale", b'""', 4_190_000) + b"}}"),
    ],
    "GET /v1/maps/{name}": [Worst("a spec of 65,536 subsets", "/v1/maps/subsets")],
    "GET /v1/maps": [Worst("long specs", "/v1/maps?limit=1000"), Worst("a query of thousands of names", "/v1/maps?" + "a&" * 30_000)],
    "GET /v1/maps/{name}/frequencies": [
        Worst("all are held", "/v1/maps/frozen/frequencies"),
        Worst("all are computed", "/v1/maps/computed/frequencies", accept=NPY),
        Worst("a header of thousands of types", "/v1/maps/frozen/frequencies", accept="a/b," * 15_000),
    ],
    **of_map("computed", "weights", "signs", "radii"),
    **of_map("many", "offsets"),
    **of_map("signed", "signature"),
    **of_map("landmarks", "landmarks", "root"),
    **of_map("sparse", "landmark_values", "landmark_columns", "landmark_ends"),
    "POST /v1/maps/{name}/transform": [
        Worst("rows of one digit", "/v1/maps/one/transform", vectors(b"[0]")),
        Worst("rows of one bit", "/v1/maps/one/transform", array(BITS), NPY, NPY),
        Worst("rows of one bit, answered in JSON", "/v1/maps/one/transform", array(BITS), NPY),
        Worst("rows of one entry", "/v1/maps/one/transform", vectors(SPARSE), accept=NPY),
        Worst("rows without entries", "/v1/maps/one/transform", vectors(EMPTY), accept=NPY),
        Worst("brackets", "/v1/maps/one/transform", vectors(b"[]")),
        Worst("as many features as may be", "/v1/maps/many/transform", array((30, 1)), NPY, NPY, of=98),
        Worst("options that are none", "/v1/maps/one/transform", lambda: b'{"dataset":"bits",' + member("rows", b"0") + b"}"),
        Worst("one row of a long dataset", "/v1/maps/one/transform", said(dataset="bits", rows=1)),
    ],
    "POST /v1/maps/{name}/kernel": [
        Worst("the largest block", "/v1/maps/one/kernel", array((8000, 1)), NPY, NPY),
        Worst("the largest block in JSON, and exactly", "/v1/maps/one/kernel?exact=true", array((5700, 1)), NPY),
        Worst("exactly, of long sparse rows", "/v1/maps/sparse/kernel?exact=true", said(x=[{"indices": [0], "values": [1]}] * 20)),
        Worst("exactly, of sparse rows that are made dense", "/v1/maps/wide/kernel?exact=true", said(x=[{"indices": [0], "values": [1]}] * 1200), of=17),
    ],
    "POST /v1/maps/{name}/codes": [
        Worst("rows of two digits", "/v1/maps/hashes/codes", vectors(b"[1,0]")),
        Worst("rows without entries", "/v1/maps/long/codes?on_zero=mark&encoding=pairs", vectors(EMPTY), accept=NPY),
        Worst("rows of two bits", "/v1/maps/hashes/codes?on_zero=mark", array((4 * MiB, 2)), NPY, NPY, of=15),
        Worst("ones of sparse rows", "/v1/maps/hashes/codes?encoding=one_hot&bits=16", vectors(b"[1,0]")),
    ],
    "POST /v1/maps/{name}/similarity": [
        Worst("vectors", "/v1/maps/hashes/similarity?gamma=1", pairs(b"[1,0]")),
        Worst("codes", "/v1/maps/hashes/similarity?of=codes&encoding=zero_bit", pairs(b"[0,1,2,3,0,1,2,3]")),
        Worst("pairs", "/v1/maps/hashes/similarity", pairs(b"[" + b",".join([b"[0,0]"] * 8) + b"]")),
        Worst("sparse rows", "/v1/maps/long/similarity", pairs(SPARSE)),
    ],
    "PUT /v1/datasets/{name}": [
        Worst("rows of one digit", "/v1/datasets/new", vectors(b"[0]")),
        Worst("rows of one entry", "/v1/datasets/newer", vectors(SPARSE, b',"input_dim":65536')),
        Worst("rows of one bit", "/v1/datasets/newest", array(BITS), NPY),
    ],
    "GET /v1/datasets/{name}": [Worst("65,536 columns", "/v1/datasets/ranges")],
    "GET /v1/datasets": [Worst("all of them", "/v1/datasets?limit=1000")],
    DIAGNOSE: [
        Worst("rows of one digit", "/v1/maps/one/diagnostics/gram", vectors(b"[0]")),
        Worst("options without end", "/v1/maps/hashes/diagnostics/variance", lambda: b"{" + member("correlations", b"0", 4_100_000) + b"}", beyond="two million numbers are a list, a text and a tuple for a moment: up to 172 MB of 121"),
    ],
    "POST /v1/recommendations": [
        Worst("labels without end", "/v1/recommendations", lambda: b'{"vectors":[[1]],"kernel":{"kind":"gaussian","length_scale":1},"budget":2,' + member("y", b"0", 4_100_000) + b"}", beyond="two million numbers are a list, a text and a tuple for a moment: up to 172 MB of 121"),
        Worst("subsets without end", "/v1/recommendations", lambda: b'{"vectors":[[1]],"budget":2,"kernel":{"kind":"anova","length_scale":1,' + member("subsets", b"[0]", 4_100_000) + b"}}"),
    ],
    **{call: [] for call in CHEAP},
}  # fmt: skip
