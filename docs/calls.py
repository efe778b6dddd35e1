"""A call of every operation of the service, on small maps of the example rows: for recorded answers, and for tests.

A new operation needs a call here. Those that delete come last.
"""

import io
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np

EXAMPLES = Path(__file__).parent.parent / "openapi" / "examples"
_LETTERS = Path(__file__).parent.parent / "examples" / "letters.npy"
JSON, NPY, SVG = "application/json", "application/x-npy", "image/svg+xml"

_NOTHING: Mapping[str, Any] = {}


class Call(NamedTuple):
    """A request of one operation."""

    operation: str
    title: str = "small"
    """Tells it from others of its operation."""
    path: Mapping[str, str] = _NOTHING
    query: Mapping[str, Any] = _NOTHING
    headers: Mapping[str, str] = _NOTHING
    body: Any = None
    content: bytes = b""
    """The body where it is not JSON but .npy."""
    accept: str = JSON
    status: int = 200

    @property
    def asked(self) -> dict[str, str]:
        """Headers of the request. Without a Prefer of its own it waits, so that slow machines give the same answers."""
        return {"Accept": self.accept, "Prefer": "wait=60", **self.headers}


class Prepared(NamedTuple):
    """What was made for the calls to meet."""

    points: list[list[float]]
    job: str
    """The id of a job that has ended."""
    running: str
    """The id of one that runs, or waits to."""
    key: str
    """The id of a key to revoke."""


def example(name: str) -> Any:
    """A body of `openapi/examples`."""
    return json.loads((EXAMPLES / f"{name}.json").read_text())


_SMALL = {"input_dim": 4, "s": 4, "kernel": {"kind": "gaussian", "length_scale": 2.0}}
FOURIER = {**_SMALL, "sampler": {"kind": "halton"}, "form": "phase"}
HASHES = {**_SMALL, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}}
_SPARSE = [{"indices": [0, 2], "values": [1.0, 0.5]}, {"indices": [1], "values": [2.0]}]
_UPLOADED = {"kind": "uploaded_landmarks", "landmarks": _SPARSE}
MAPS: dict[str, dict[str, Any]] = {
    "letters": FOURIER,
    "hashes": HASHES,
    "rule": {**_SMALL, "s": None, "sampler": {"kind": "sparse_grid", "level": 1}},
    "structured": {**_SMALL, "input_dim": 8, "s": 8, "sampler": {"kind": "structured_orthogonal"}},
    "landmarks": {**_SMALL, "s": 2, "sampler": {"kind": "landmarks", "dataset": "points"}},
    "sparse": {"input_dim": 4, "kernel": {"kind": "chi_squared"}, "sampler": _UPLOADED},
    "outdated": FOURIER,
}


INDEX = {"map": "hashes", "bands": 2, "rows_per_band": 2}


def prepared(http: httpx.Client) -> Prepared:
    """Put what the calls meet: datasets, maps, jobs and a key. `http` sends the key of an administrator."""
    points = example("put_dataset.dense")
    for name in ("points", "outdated"):
        http.put(f"/v1/datasets/{name}", json=points).raise_for_status()
    letters = np.load(_LETTERS)[:100, :4].tolist()
    http.put("/v1/datasets/letters", json={"vectors": letters}).raise_for_status()
    for name, spec in MAPS.items():
        made = http.put(f"/v1/maps/{name}", json=spec, headers={"Prefer": "wait=60"})
        if made.status_code not in (200, 201, 202):
            raise RuntimeError(f"{name}: {made.status_code} {made.text}")
    for name in ("near", "outdated"):
        http.put(f"/v1/indexes/{name}", json=INDEX).raise_for_status()
    taken = http.post(
        "/v1/maps/letters/diagnostics/max-error",
        json={"diameters": [1.0, 2.0], "samples": 100},
        headers={"Prefer": "respond-async"},
    ).json()
    deadline = time.monotonic() + 120
    while http.get(f"/v1/jobs/{taken['id']}").json()["state"] != "succeeded" and time.monotonic() < deadline:
        time.sleep(0.1)
    # Minutes of trials: it is there to be cancelled, after whatever comes first.
    long = {
        "dataset": "letters",
        "kernel": _SMALL["kernel"],
        "budget": 1 << 18,
        "seeds": 20,
        "multiples": [*range(1, 11)],
    }
    running = http.post("/v1/recommendations", json=long, headers={"Prefer": "respond-async"}).json()
    key = http.post("/v1/keys", json={"name": "outdated", "role": "read"}).json()
    return Prepared(points["vectors"], taken["id"], running["id"], key["id"])


def calls(of: Prepared) -> Iterator[Call]:
    """A call of every operation, of some several."""
    yield from _maps()
    yield from _vectors(of.points)
    yield from _measurements(of.points)
    yield from _datasets(of.points)
    yield from _indexes()
    yield from _aliases()
    yield from _jobs(of)
    yield from _duplicates()
    yield from _inference()
    yield Call("create_key", body={"name": "dashboard", "role": "read"}, status=201)
    yield Call("list_keys")
    yield Call("revoke_key", path={"id": of.key}, status=204)
    for operation in ("live", "ready", "info", "catalog"):
        yield Call(operation)
    yield Call("problem", path={"slug": "map-not-found"}, accept="text/html")
    yield Call("metrics", accept="text/plain")


def _inference() -> Iterator[Call]:
    model = {"name": "letters"}
    for operation in ("inference_server", "inference_live", "inference_ready"):
        yield Call(operation)
    yield Call("inference_model", path=model)
    yield Call("inference_model_ready", path=model)
    yield Call("inference_index", body={"ready": True})
    yield Call("infer", path=model, body=example("infer.rows"))


def _maps() -> Iterator[Call]:
    name = {"name": "letters"}
    yield Call("put_map", "again", name, body=FOURIER)
    yield Call("put_map", "tried_first", {"name": "new"}, {"dry_run": True}, body=FOURIER)
    yield Call("put_map", "new", {"name": "new"}, {"ttl": 3600}, body={**FOURIER, "seed": 7}, status=201)
    of_rows = {**_SMALL, "s": 2, "sampler": {"kind": "landmarks", "dataset": "points"}}
    yield Call("put_map", "by_a_job", {"name": "learned"}, {}, {"Prefer": "respond-async"}, of_rows, status=202)
    yield Call("list_maps", query={"limit": 2})
    yield Call("get_map", path=name)
    for array in ("frequencies", "weights", "offsets"):
        yield Call(f"get_{array}", path=name)
    yield Call("get_signature", path={"name": "rule"})
    for array in ("signs", "radii"):
        yield Call(f"get_{array}", path={"name": "structured"})
    for array in ("landmarks", "root"):
        yield Call(f"get_{array}", path={"name": "landmarks"})
    for array in ("landmark_values", "landmark_columns", "landmark_ends"):
        yield Call(f"get_{array}", path={"name": "sparse"})
    yield Call("export_map", path=name, query={"format": "safetensors"}, accept="application/octet-stream")
    yield Call("delete_map", path={"name": "outdated"}, status=204)


def _vectors(points: list[list[float]]) -> Iterator[Call]:
    fourier, hashes = {"name": "letters"}, {"name": "hashes"}
    buffer = io.BytesIO()
    np.save(buffer, np.array(points))
    array = buffer.getvalue()
    for title, body in (("dense", points), ("sparse", _SPARSE), ("of_a_dataset", {"dataset": "points", "rows": 2})):
        yield Call("transform", title, fourier, body={"vectors": body})
    yield Call("transform", "npy", fourier, content=array)
    yield Call("transform", "npy_both_ways", fourier, content=array, accept=NPY)
    yield Call("kernel", "beside_the_exact", fourier, {"exact": True}, body={"x": points, "y": points[:1]})
    yield Call("codes", "zero_bit", hashes, body={"vectors": points})
    yield Call("codes", "one_hot", hashes, {"encoding": "one_hot", "bits": 2}, body={"vectors": points})
    yield Call("codes", "signed", fourier, body={"vectors": points})
    yield Call("similarity", "of_signed_codes", fourier, body={"x": points[:2], "y": points[1:]})
    yield Call("similarity", "of_vectors", hashes, {"gamma": 2.0}, body={"x": points[:2], "y": points[1:]})


def _measurements(points: list[list[float]]) -> Iterator[Call]:
    of, job = {"vectors": points}, {"Prefer": "respond-async"}
    yield Call("diagnose", "gram", {"name": "letters", "kind": "gram"}, body={**of, "seeds": 2})
    yield Call("diagnose", "box-discrepancy", {"name": "letters", "kind": "box-discrepancy"}, body={"box": 1.5})
    yield Call("diagnose", "max-error", {"name": "letters", "kind": "max-error"}, body={"diameters": [1.0, 4.0]})
    pairs = {"x": points[:1], "y": points[1:2], "repeats": 20}
    yield Call("diagnose", "variance", {"name": "letters", "kind": "variance"}, body=pairs)
    yield Call("diagnose", "collisions", {"name": "hashes", "kind": "collisions"}, body={**of, "gamma": 2.0})
    yield Call("diagnose", "picture", {"name": "letters", "kind": "gram"}, body=of, accept=SVG)
    slow = {"name": "letters", "kind": "gram"}
    yield Call("diagnose", "by_a_job", slow, headers=job, body={**of, "seeds": 3}, status=202)
    body = {**example("recommend.within_a_budget"), "seeds": 2, "samplers": ["halton", "monte_carlo"]}
    yield Call("recommend", "two_samplers", body=body)
    yield Call("recommend", "by_a_job", headers=job, body=body, status=202)
    body = {**example("advise.bands_or_a_scan"), "map": "hashes"}
    yield Call("advise", "for_four_hashes", body=body)
    yield Call("advise", "by_a_job", headers=job, body=body, status=202)


def _datasets(points: list[list[float]]) -> Iterator[Call]:
    yield Call("put_dataset", "again", {"name": "points"}, body={"vectors": points})
    yield Call("put_dataset", "for_an_hour", {"name": "brief"}, {"ttl": 3600}, body={"vectors": points}, status=201)
    yield Call("get_dataset", path={"name": "points"})
    yield Call("list_datasets", query={"limit": 1})
    yield Call("delete_dataset", path={"name": "outdated"}, status=204)


def _indexes() -> Iterator[Call]:
    name = {"name": "near"}
    yield Call("put_index", "again", name, body=INDEX)
    yield Call(
        "put_index", "that_keeps_vectors", {"name": "new"}, {"ttl": 3600}, body={**INDEX, "keep": "vectors"}, status=201
    )
    target = {"recall": 0.5, "k": 1, "dataset": "letters"}
    body = {"map": "hashes", "keep": "vectors", "target": target}
    yield Call("put_index", "with_a_target", {"name": "aimed"}, body=body, status=201)
    yield Call("put_index", "by_a_job", {"name": "later"}, headers={"Prefer": "respond-async"}, body=body, status=202)
    body = {"map": "hashes", "target": {"min_similarity": 0.8, "recall": 0.9}}
    yield Call("put_index", "for_a_similarity", {"name": "alike"}, body=body, status=201)
    yield Call("plan_bands", "of_128_hashes", body=example("plan_bands.of_128_hashes"))
    yield Call("list_indexes", query={"limit": 2})
    yield Call("upsert_vectors", "with_tags", name, body=example("upsert_vectors.with_tags"))
    body = example("upsert_vectors.unlike_all_others.unless_similar=0.8")
    yield Call("upsert_vectors", "unlike_all_others", name, {"unless_similar": 0.8}, body=body)
    yield Call("get_index", path=name)
    yield Call("search_index", "of_a_tag", name, body=example("search_index.of_a_tag"))
    yield Call("search_index", "with_a_filter", name, body=example("search_index.with_a_filter"))
    yield Call("search_index", "of_its_own_vectors", name, body=example("search_index.of_its_own_vectors"))
    yield Call("list_vectors", "of_a_tag", name, {"tag": "letters"})
    yield Call("count_vectors", "with_a_filter", name, body=example("count_vectors.with_a_filter"))
    yield Call("change_tags", "add_and_remove", name, body=example("change_tags.add_and_remove"))
    yield Call("delete_vectors", "by_ids", name, body=example("delete_vectors.by_ids"))
    yield Call("get_vector", path={**name, "id": "7"})
    yield Call("delete_vector", path={**name, "id": "7"}, status=204)
    yield Call("delete_index", path={"name": "outdated"}, status=204)


def _aliases() -> Iterator[Call]:
    yield Call("put_alias", "of_an_index", {"name": "live"}, body={"index": "near"}, status=201)
    yield Call("put_alias", "of_a_map", {"name": "live-map"}, body={"map": "letters"}, status=201)
    yield Call("put_alias", "again", {"name": "live"}, body={"index": "near"})
    yield Call("get_alias", path={"name": "live"})
    yield Call("list_aliases", query={"limit": 1})
    yield Call("delete_alias", path={"name": "live"}, status=204)


def _duplicates() -> Iterator[Call]:
    """After the calls about jobs that wait, which have ended once these are answered."""
    wait, near = {"Prefer": "wait=60"}, {"name": "near"}
    body = example("copy_index.into_other_bands") | {"from": "near", "rows_per_band": 1}
    yield Call("copy_index", "into_other_bands", {"name": "copy"}, headers=wait, body=body, status=202)
    yield Call("measure_recall", "of_one", near, headers=wait, body={"k": 1, "queries": 2})
    yield Call("measure_recall", "by_a_job", near, headers={"Prefer": "respond-async"}, body={}, status=202)
    body = example("find_duplicates.clusters_with_the_one_to_keep")
    yield Call("find_duplicates", "with_the_one_to_keep", {"name": "near"}, headers={"Prefer": "wait=60"}, body=body)
    body = example("find_duplicates.much_alike")
    yield Call("find_duplicates", "waited_for", {"name": "near"}, headers={"Prefer": "wait=60"}, body=body)
    yield Call(
        "find_duplicates", "by_a_job", {"name": "near"}, headers={"Prefer": "respond-async"}, body=body, status=202
    )


def _jobs(of: Prepared) -> Iterator[Call]:
    yield Call("list_jobs", query={"state": "succeeded", "limit": 2})
    yield Call("get_job", path={"id": of.job})
    yield Call("get_job_result", path={"id": of.job})
    yield Call("watch_job", path={"id": of.job}, accept="text/event-stream")
    yield Call("cancel_job", path={"id": of.running}, status=202)
