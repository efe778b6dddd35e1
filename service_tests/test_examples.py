"""Every example body is accepted, and there is one of every kind."""

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from app.services.keys import AskedKey
from app.store.keys import Role
from service_tests.checks import JSON, finished, put, put_dataset
from service_tests.core.combinations import RULES
from service_tests.keyed import bearer, made
from service_tests.running import Running

FOLDER = Path(__file__).parent.parent / "openapi" / "examples"
EXAMPLES = sorted(FOLDER.iterdir())
ADDRESSES = {
    **{operation: f"/v1/maps/{{name}}/{operation}?{{query}}" for operation in ("transform", "kernel")},
    **{operation: f"/v1/maps/{{name}}-hashes/{operation}?{{query}}" for operation in ("codes", "similarity")},
    "put_map": "/v1/maps/{name}-new", "put_dataset": "/v1/datasets/{name}?{query}", "create_key": "/v1/keys",
    "diagnose": "/v1/maps/{name}{of}/diagnostics/{kind}", "recommend": "/v1/recommendations",
    "copy_index": "/v1/indexes/{name}-copy/copy", "measure_recall": "/v1/indexes/{name}/recall",
    "put_index": "/v1/indexes/{name}-new", "put_alias": "/v1/aliases/{name}-alias",
    "upsert_vectors": "/v1/indexes/{name}/vectors?{query}",
    "count_vectors": "/v1/indexes/{name}/vectors/count", "search_index": "/v1/indexes/{name}/search",
    "find_duplicates": "/v1/indexes/{name}/duplicates", "delete_vectors": "/v1/indexes/{name}/vectors/delete",
    "change_tags": "/v1/indexes/{name}/vectors", "plan_bands": "/v1/bands",
    "infer": "/v2/models/{name}/infer", "inference_index": "/v2/repository/index", "advise": "/v1/indexes/advice",
}  # fmt: skip
KERNEL, HASHED = {"kind": "gaussian", "length_scale": 2.0}, {"kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}}
FOURIER: dict[str, Any] = {"input_dim": 4, "kernel": KERNEL, "sampler": {"kind": "halton"}, "s": 8, "form": "phase"}
HASHES: dict[str, Any] = {"input_dim": 4, "s": 8, **HASHED}
POINTS = json.loads((FOLDER / "put_dataset.dense.json").read_text())["vectors"]
LETTERS = np.load(FOLDER.parent.parent / "examples" / "letters.npy")[:200]


def prepare(http: httpx.Client, name: str, document: dict[str, Any]) -> None:
    """Put what examples are about, and give those that name a dataset or a map of their own one that is there."""
    assert put_dataset(http, "points", POINTS).status_code in (200, 201)
    assert put(http, name, FOURIER).status_code == 201
    assert put(http, f"{name}-hashes", HASHES).status_code == 201
    assert http.put(f"/v1/indexes/{name}", json={"map": f"{name}-hashes"}).status_code == 201
    ids = [*range(20)] if "queries" in document else document.get("ids", [])
    if ids and "vectors" not in document:  # queries that are there
        kept = {"ids": ids, "vectors": [[1.0] * 4] * len(ids)}
        assert http.post(f"/v1/indexes/{name}/vectors", json=kept).status_code == 200
    for member in ("index", "from"):
        document |= {member: name} if member in document else {}
    if str(document.get("map", "")).startswith("letters"):
        is_advice = "recall" in document
        dim = LETTERS.shape[1] if is_advice else 4
        assert put(http, f"{name}-letters", {**HASHES, "input_dim": dim}).status_code == 201
        document["map"] = f"{name}-letters"
        asked = document if is_advice else document.get("target", {})
        if "dataset" in asked:  # for an index rows that are all alike, so that any search has the recall
            assert put_dataset(http, f"{name}-rows", LETTERS if is_advice else np.ones((200, 4))).status_code == 201
            asked["dataset"] = f"{name}-rows"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_is_accepted(http: httpx.Client, running: Running, name: str, example: Path) -> None:
    operation, title, *query, _ = example.name.split(".")
    document = json.loads(example.read_text())
    prepare(http, name, document)
    of = "-hashes" if "hashes" in title or "collisions" in title else ""
    address = ADDRESSES[operation].format(name=name, query=".".join(query), kind=title.partition("_")[0], of=of)
    admin = bearer(made(running.socket, AskedKey(name="ops", role=Role.admin)).key) if operation == "create_key" else {}
    method = "PUT" if operation.startswith("put_") else "PATCH" if operation == "change_tags" else "POST"
    asked: dict[str, Any] = {"content": json.dumps(document), "headers": {"Content-Type": JSON, **admin}}
    answer = http.request(method, address, **asked)
    if operation == "put_map" and answer.status_code == 202:
        finished(http, httpx.Response(202, headers={"Location": answer.json()["job"]}))
        answer = http.request(method, address, **asked)
        assert (answer.status_code, answer.json()["status"]) == (200, "ready")
        return
    expected = 201 if method == "PUT" or admin else 202 if operation == "copy_index" else 200
    assert answer.status_code == expected, answer.text
    if operation == "put_map" and "dataset" not in str(document):
        # An example is no doubtful map, but a rule always says how far it reaches.
        assert bool(answer.json()["warnings"]) == (document["sampler"]["kind"] in RULES)
    if operation == "put_dataset":
        assert (answer.json()["expires_at"] is None) == ("ttl" not in ".".join(query))


def test_there_is_an_example_of_each_kind_and_operation(http: httpx.Client) -> None:
    catalog = http.get("/v1/catalog").json()
    specs = [json.loads(example.read_text()) for example in EXAMPLES if example.name.startswith("put_map.")]
    for family, member in (("kernels", "kernel"), ("samplers", "sampler"), ("forms", "form")):
        shown = {spec[member] if member == "form" else spec[member]["kind"] for spec in specs if member in spec}
        assert not set(catalog[family]) - shown, f"write openapi/examples/put_map.KIND.json of these {family}"
    diagnosed = {example.name.split(".")[1].partition("_")[0] for example in EXAMPLES if "diagnose." in example.name}
    assert not set(catalog["diagnostics"]) - diagnosed
    paths = json.loads((FOLDER.parent / "openapi.json").read_text())["paths"]
    with_body = {one["operationId"] for methods in paths.values() for one in methods.values() if "requestBody" in one}
    assert {example.name.partition(".")[0] for example in EXAMPLES} == with_body
