"""What the service gives as long as nobody disturbs it, which it must give for ever."""

from typing import Any, NamedTuple

import httpx

from service_tests.checks import NPY, array, finished, post, put

GAUSSIAN = {"input_dim": 3, "kernel": {"kind": "gaussian", "length_scale": 1.5}, "s": 16}
LEARNED = {"kind": "global_adaptive", "base": {"kind": "halton"}, "box": 3.0, "iterations": 40}
SPECS: dict[str, dict[str, Any]] = {
    **{f"sobol {seed}": {**GAUSSIAN, "sampler": {"kind": "sobol"}, "seed": seed} for seed in range(3)},
    **{
        f"gcws {seed}": {"input_dim": 3, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 16, "seed": seed}
        for seed in range(2)
    },
    "pieces": {**GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "s": 60_000, "dtype": "float64"},
    **{f"learned {seed}": {**GAUSSIAN, "sampler": LEARNED, "s": 64, "seed": seed} for seed in range(2)},
}
"""Maps that clients make, some of more than one piece, some learned for a while."""
STANDING = "standing"
"""Name of a map that is never deleted."""
FEW = {"vectors": [[0.5, -1.25, 2], [3, 0.1, -0.125]]}


class Answers(NamedTuple):
    """What a map answers."""

    spec: Any
    digest: str
    content: bytes


Truth = dict[str, Answers]
"""Answers by key of SPECS."""


def use_of(name: str, spec: str) -> tuple[str, Any]:
    """Path and body of the request that shows what a map gives."""
    return (f"{name}/codes?encoding=pairs" if spec.startswith("gcws") else f"{name}/transform"), FEW


def learned(http: httpx.Client) -> Truth:
    """Make everything once, and keep what it gives."""
    maps: Truth = {}
    assert put(http, STANDING, {**SPECS["sobol 0"], "seed": 99}).status_code == 201
    for i, (key, spec) in enumerate(SPECS.items()):
        name = f"truth-{i}"
        made = put(http, name, spec)
        if made.status_code == 202:
            assert finished(http, http.get(made.json()["job"]), 120)
        record = http.get(f"/v1/maps/{name}").json()
        content = post(http, *use_of(name, key), NPY)
        assert array(content).size
        maps[key] = Answers(record["spec"], record["digest"], content.content)
        assert http.delete(f"/v1/maps/{name}").status_code == 204
    return maps
