import re
from typing import Any

from app.api.routes.service import catalog
from service_tests.cases import each
from service_tests.core.specs import refusal, spec

CATALOG = catalog().model_dump(mode="json")
# Sampler and other members within the limit, what takes it just past it, and the number that says so.
EDGES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "sobol": ({"input_dim": 21201}, {"input_dim": 21202}, "21201"),
    "halton": ({"input_dim": 10000}, {"input_dim": 10001}, "10000"),
    "lattice": ({"input_dim": 9125}, {"input_dim": 9126}, "9125"),
    "orthogonal": ({"input_dim": 4096}, {"input_dim": 4097}, "4096"),
    "moment_matching": ({"input_dim": 2048, "s": 8192}, {"input_dim": 2049, "s": 8192}, "2048"),
    "dense_grid": ({"points_per_dim": 2, "input_dim": 20}, {"points_per_dim": 2, "input_dim": 21}, "1048576"),
    "sparse_grid": ({"level": 1, "input_dim": 65535}, {"level": 1, "input_dim": 65536}, "131072"),
    "weighted": ({"box": 1.0, "s": 4096}, {"box": 1.0, "s": 4097}, "4096"),
    "global_adaptive": ({"box": 1, "s": 37000, "input_dim": 4}, {"box": 1, "s": 38000, "input_dim": 4}, str(1 << 40)),
    "greedy_adaptive": ({"box": 1, "s": 42000, "input_dim": 4}, {"box": 1, "s": 43000, "input_dim": 4}, str(1 << 40)),
    "reweighted_grid": ({"dataset": "d", "s": 4096}, {"dataset": "d", "s": 4097}, "8192"),
    "polynomially_exact": ({"degree": 2, "input_dim": 26}, {"degree": 2, "input_dim": 27}, "400"),
}


@each("name", EDGES)
def test_a_limit_is_the_one_that_is_enforced(name: str) -> None:
    within, past, number = EDGES[name]
    spec(**_of_sampler(name, within))
    wanted = re.compile(rf"\b{number}\b")
    assert wanted.search(refusal(**_of_sampler(name, past)).detail)
    assert wanted.search(" ".join(CATALOG["samplers"][name]["limits"]))


def _of_sampler(name: str, members: dict[str, Any]) -> dict[str, Any]:
    """Members of a spec, of which some are fields of its sampler."""
    ours = {"input_dim", "s"} & members.keys()
    sampler = {"kind": name} | {member: members[member] for member in members.keys() - ours}
    return {member: members[member] for member in ours} | {"sampler": sampler}
