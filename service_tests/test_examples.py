import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from service_tests.checks import JSON, put
from service_tests.core.combinations import RULES

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
    "similarity": {"estimate", "standard_error"},
}


def operation(example: Path) -> str:
    return example.name.partition(".")[0]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_is_accepted(http: httpx.Client, name: str, example: Path) -> None:
    body = example.read_bytes()
    if operation(example) == "put_map":
        answer = put(http, name, body)
        assert answer.status_code == 201, answer.text
        # An example is no doubtful map, but a rule always says how far it reaches.
        assert bool(answer.json()["warnings"]) == (json.loads(body)["sampler"]["kind"] in RULES)
        return
    assert put(http, name, MAP_OF[operation(example)]).status_code == 201
    answer = http.post(f"/v1/maps/{name}/{operation(example)}", content=body, headers={"Content-Type": JSON})
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) - {"exact", "zero_bit"} == ANSWERS[operation(example)]
    rows = json.loads(body).get("vectors") or json.loads(body)["x"]
    numbers = next(iter(answer.json().values()))
    assert len(numbers) == len(rows)


def test_every_name_tells_operation_and_title() -> None:
    document = json.loads((FOLDER.parent / "openapi.json").read_text())
    with_body = {
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
        if "requestBody" in operation
    }
    assert {operation(example) for example in EXAMPLES} == with_body
    for example in EXAMPLES:
        _, title, suffix = example.name.split(".")
        assert title
        assert suffix == "json"


@pytest.mark.parametrize(("family", "member"), [("kernels", "kernel"), ("samplers", "sampler"), ("forms", "form")])
def test_every_kind_has_an_example(http: httpx.Client, family: str, member: str) -> None:
    specs = [json.loads(example.read_text()) for example in EXAMPLES if operation(example) == "put_map"]
    shown = {spec[member] if member == "form" else spec[member]["kind"] for spec in specs if member in spec}
    assert set(http.get("/v1/catalog").json()[family]) <= shown
