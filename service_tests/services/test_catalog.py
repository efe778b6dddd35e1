import re
from typing import Any

import pytest

from app.core.model import Kind
from app.services.catalog import catalog
from service_tests.cases import each
from service_tests.core.specs import KERNELS, SAMPLERS, kind, refusal, spec

CATALOG = catalog().model_dump(mode="json")
KINDS = [(family, name) for family in ("kernels", "samplers", "forms") for name in CATALOG[family]]
MODELS = [(family, model) for family, models in (("kernels", KERNELS), ("samplers", SAMPLERS)) for model in models]
NORMAL_ONLY = ("dense_grid", "sparse_grid", "subsampled_grid", "polynomially_exact", "orthogonal")


@each(("family", "name"), KINDS)
def test_a_kind_says_what_it_is_where_it_is_from_and_when_to_choose_it(family: str, name: str) -> None:
    entry = CATALOG[family][name]
    for member in ("description", "source", "choose_when"):
        assert len(entry[member].split()) > 2, member
        assert entry[member] == entry[member].strip()
    assert entry["source"] != entry["choose_when"]


@each(("family", "name"), [(family, name) for family, name in KINDS if family != "forms"])
def test_every_field_of_a_kind_is_described(family: str, name: str) -> None:
    schema = CATALOG[family][name]
    for part in (schema, *schema.get("$defs", {}).values()):
        for field, described in part.get("properties", {}).items():  # a choice of words has none
            assert described.get("description"), f"{part['title']}.{field}"


@each(("family", "model"), MODELS)
def test_advice_is_the_kinds_own_and_no_field(family: str, model: type[Kind]) -> None:
    # Inherited advice would be another kind's.
    assert {"source", "choose_when"} <= vars(model).keys()
    assert not {"source", "choose_when", "limits"} & model.model_fields.keys()
    limits = CATALOG[family][kind(model)].get("limits")
    assert limits == (list(model.limits) or None)
    assert all(model.limits)


def test_advice_stays_out_of_a_canonical_spec() -> None:
    canonical = spec(sampler={"kind": "moment_matching", "base": {"kind": "sobol"}}).canonical()
    assert all(member not in canonical for member in ("source", "choose_when", "limits"))


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
    "global_adaptive": (
        {"box": 1.0, "s": 37_000, "input_dim": 4},
        {"box": 1.0, "s": 38_000, "input_dim": 4},
        str(1 << 40),
    ),
    "greedy_adaptive": (
        {"box": 1.0, "s": 42_000, "input_dim": 4},
        {"box": 1.0, "s": 43_000, "input_dim": 4},
        str(1 << 40),
    ),
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


def test_interlacing_divides_the_dimensions() -> None:
    for alpha in (1, 2, 4):
        most = 21201 // alpha
        sampler = {"kind": "digital_net", "alpha": alpha}
        spec(sampler=sampler, input_dim=most)
        assert str(most) in refusal(sampler=sampler, input_dim=most + 1).detail
    assert "21201 divided by alpha" in CATALOG["samplers"]["digital_net"]["limits"][0]


@each("its_kernel", [{"kind": "matern", "nu": 2.5}, {"kind": "rational_quadratic", "alpha": 1.0}])
@each("name", ["sobol", "halton", "lattice", "digital_net"])
def test_kernels_that_mix_normal_laws_have_one_dimension_less(name: str, its_kernel: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"kernel": its_kernel | {"length_scale": 1.0}, "sampler": {"kind": name}}
    most = {"digital_net": 21201 // 2}.get(name) or EDGES[name][0]["input_dim"]
    spec(**fields, input_dim=most - 1)
    assert str(most - 1) in refusal(**fields, input_dim=most).detail
    assert "one less for kernels matern and rational_quadratic" in CATALOG["samplers"][name]["limits"][0]


@pytest.mark.nightly
def test_all_windows_together_name_so_many_coordinates() -> None:
    def anova(height: int) -> dict[str, Any]:
        windows = {"image_shape": [height, 512], "patch_shape": [1, 1]}
        return {
            "kernel": {"kind": "anova", "length_scale": 1.0, "windows": windows},
            "input_dim": height * 512,
            "s": 1 << 20,
        }

    spec(**anova(512))
    assert "262144" in refusal(**anova(513)).detail
    assert any("262144" in limit for limit in CATALOG["kernels"]["anova"]["limits"])


@pytest.mark.parametrize("name", NORMAL_ONLY)
def test_a_rule_for_the_normal_law_names_its_kernels(name: str) -> None:
    limits = " ".join(CATALOG["samplers"][name]["limits"])
    assert all(its in limits for its in ("gaussian", "correlation_rbf", "anova"))
    within = EDGES.get(name, ({"points_per_dim": 3}, {}, ""))[0]
    fields = _of_sampler(name, within) | {"input_dim": 4}
    spec(**fields)
    assert "normally distributed" in refusal(**fields, kernel={"kind": "laplacian", "length_scale": 1.0}).detail


def _of_sampler(name: str, members: dict[str, Any]) -> dict[str, Any]:
    """Members of a spec, of which some are fields of its sampler."""
    ours = {"input_dim", "s"} & members.keys()
    sampler = {"kind": name} | {member: members[member] for member in members.keys() - ours}
    return {member: members[member] for member in ours} | {"sampler": sampler}
