"""Every example body is accepted, and there is one of everything."""

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from app.services.keys import AskedKey
from app.store.keys import Role
from service_tests.checks import JSON, RESPOND_ASYNC, finished, put, put_dataset
from service_tests.core.combinations import RULES
from service_tests.keyed import bearer, made
from service_tests.running import Running

FOLDER = Path(__file__).parent.parent / "openapi" / "examples"
EXAMPLES = sorted(FOLDER.iterdir())

# The maps that examples of vectors are sent to.
FOURIER: dict[str, Any] = {
    "input_dim": 4,
    "kernel": {"kind": "gaussian", "length_scale": 2.0},
    "sampler": {"kind": "halton"},
    "s": 8,
    "form": "phase",
}
HASHES: dict[str, Any] = {"input_dim": 4, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 8}
MAP_OF = {"transform": FOURIER, "kernel": FOURIER, "codes": HASHES, "similarity": HASHES}
ANSWERS = {
    "transform": {"features"},
    "kernel": {"approximate"},
    "codes": {"codes"},
    "similarity": {"estimate", "standard_error", "interval"},
}


OF_INDEXES = {"put_index": None, "upsert_vectors": "vectors", "search_index": "search", "find_duplicates": "duplicates"}


BY_JOBS_TOO = ("diagnose.variance", "recommend.for_a_target")
# The dataset that they name.
POINTS = json.loads((FOLDER / "put_dataset.dense.json").read_text())["vectors"]
LETTERS = np.load(FOLDER.parent.parent / "examples" / "letters.npy")[:200]
BESIDE_VECTORS = {"exact", "zero_bit", "bias"}


def operation(example: Path) -> str:
    return example.name.partition(".")[0]


def query(example: Path) -> str:
    """What stands between title and suffix."""
    return ".".join(example.name.split(".")[2:-1])


def diagnosed(example: Path) -> str:
    """The kind of diagnostic, which the title begins with."""
    return example.name.split(".")[1].partition("_")[0]


def length(rows: Any) -> int:
    """Number of rows, also in CSR form, and of a sample of a dataset."""
    if isinstance(rows, dict) and "dataset" in rows:
        return int(rows["rows"])
    return len(rows["indptr"]) - 1 if isinstance(rows, dict) else len(rows)


def without_times(answer: Any) -> Any:
    """An answer without the seconds that a recommendation has measured."""
    if isinstance(answer, list):
        return [without_times(one) for one in answer]
    if isinstance(answer, dict):
        return {name: without_times(one) for name, one in answer.items() if name != "seconds_per_1000_rows"}
    return answer


@pytest.mark.parametrize(
    "example", [one for one in EXAMPLES if operation(one) in OF_INDEXES], ids=lambda example: example.stem
)
def test_an_example_of_indexes_is_accepted(http: httpx.Client, name: str, example: Path) -> None:
    body = json.loads(example.read_text())
    assert put(http, "letters", HASHES).status_code in (200, 201)
    asked: dict[str, Any] = body if operation(example) == "put_index" else {"map": "letters"}
    if "target" in asked:
        # Rows that are all alike, so that any search has the recall.
        assert put_dataset(http, name, np.ones((200, 4))).status_code == 201
        asked["target"]["dataset"] = name
    assert http.put(f"/v1/indexes/{name}", json=asked).status_code == 201
    if (path := OF_INDEXES[operation(example)]) is not None:
        answer = http.post(f"/v1/indexes/{name}/{path}", json=body)
        assert answer.is_success, answer.text


@pytest.mark.parametrize(
    "example",
    [one for one in EXAMPLES if operation(one) not in {*OF_INDEXES, "advise"}],
    ids=lambda example: example.stem,
)
def test_an_example_is_accepted(http: httpx.Client, running: Running, name: str, example: Path) -> None:
    body = example.read_bytes()
    if operation(example) == "create_key":
        admin = bearer(made(running.socket, AskedKey(name="ops", role=Role.admin)).key)
        answer = http.post("/v1/keys", content=body, headers={"Content-Type": JSON, **admin})
        assert answer.status_code == 201, answer.text
        return
    if operation(example) == "put_map":
        learns_from_rows = b'"dataset"' in body
        if learns_from_rows:
            assert put_dataset(http, "points", POINTS).status_code in (200, 201)
        answer = put(http, name, body)
        if answer.status_code == 202:
            job = finished(http, httpx.Response(202, headers={"Location": answer.json()["job"]}))
            assert job["state"] == "succeeded", job
            answer = put(http, name, body)
            assert (answer.status_code, answer.json()["status"]) == (200, "ready")
            return
        assert answer.status_code == 201, answer.text
        # An example is no doubtful map, but a rule always says how far it reaches, and few rows teach little.
        if not learns_from_rows:
            assert bool(answer.json()["warnings"]) == (json.loads(body)["sampler"]["kind"] in RULES)
        return
    if operation(example) == "put_dataset":
        answer = http.put(f"/v1/datasets/{name}?{query(example)}", content=body, headers={"Content-Type": JSON})
        assert answer.status_code == 201, answer.text
        assert (answer.json()["expires_at"] is None) == ("ttl" not in query(example))
        return
    assert put_dataset(http, "points", POINTS).status_code in (200, 201)
    if operation(example) in ("diagnose", "recommend"):
        check_measured(http, name, example)
        return
    if operation(example).startswith("infer"):
        assert put(http, name, FOURIER).status_code == 201
        path = f"models/{name}/infer" if operation(example) == "infer" else "repository/index"
        answer = http.post(f"/v2/{path}", content=body, headers={"Content-Type": JSON})
        assert answer.status_code == 200, answer.text
        return
    assert put(http, name, MAP_OF[operation(example)]).status_code == 201
    answer = http.post(
        f"/v1/maps/{name}/{operation(example)}?{query(example)}", content=body, headers={"Content-Type": JSON}
    )
    assert answer.status_code == 200, answer.text
    with_gamma = {"rbf_estimate", "rbf_standard_error"} if "gamma=" in query(example) else set()
    beside = BESIDE_VECTORS | ({"rbf_exact", "rbf_bias", "rbf_interval"} if with_gamma else set())
    assert set(answer.json()) - beside == ANSWERS[operation(example)] | with_gamma
    rows = json.loads(body).get("vectors") or json.loads(body)["x"]
    numbers = next(iter(answer.json().values()))
    assert length(numbers) == length(rows)


def check_measured(http: httpx.Client, name: str, example: Path) -> None:
    """A diagnostic or a recommendation is answered, and some by a job too, with the same answer."""
    is_recommendation = operation(example) == "recommend"
    path = "recommendations" if is_recommendation else f"maps/{name}/diagnostics/{diagnosed(example)}"
    of_hashes = "hashes" in example.name or "collisions" in example.name
    assert put(http, name, HASHES if of_hashes else FOURIER).status_code == 201
    asked: dict[str, Any] = {"content": example.read_bytes(), "headers": {"Content-Type": JSON}}
    answer = http.post(f"/v1/{path}", **asked)
    assert answer.status_code == 200, answer.text
    if example.name.startswith(BY_JOBS_TOO):
        taken = http.post(f"/v1/{path}", content=asked["content"], headers=asked["headers"] | RESPOND_ASYNC)
        by_job = http.get(finished(http, taken)["result"]).json()
        assert without_times(by_job) == without_times(answer.json())


def test_the_example_of_advice_is_accepted(http: httpx.Client, name: str) -> None:
    body = json.loads((FOLDER / "advise.bands_or_a_scan.json").read_text()) | {"map": name, "dataset": name}
    assert put_dataset(http, name, LETTERS).status_code == 201
    assert put(http, name, {**HASHES, "input_dim": LETTERS.shape[1]}).status_code == 201
    answer = http.post("/v1/indexes/advice", json=body)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(("family", "member"), [("kernels", "kernel"), ("samplers", "sampler"), ("forms", "form")])
def test_every_kind_has_an_example(http: httpx.Client, family: str, member: str) -> None:
    specs = [json.loads(example.read_text()) for example in EXAMPLES if operation(example) == "put_map"]
    shown = {spec[member] if member == "form" else spec[member]["kind"] for spec in specs if member in spec}
    without = set(http.get("/v1/catalog").json()[family]) - shown
    assert not without, f"write {', '.join(f'openapi/examples/put_map.{kind}.json' for kind in sorted(without))}"


def test_every_diagnostic_has_an_example(http: httpx.Client) -> None:
    shown = {diagnosed(example) for example in EXAMPLES if operation(example) == "diagnose"}
    without = set(http.get("/v1/catalog").json()["diagnostics"]) - shown
    assert not without, f"write {', '.join(f'openapi/examples/diagnose.{kind}.json' for kind in sorted(without))}"
