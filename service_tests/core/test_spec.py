"""What a spec refuses, and its canonical text."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from app.core.spec import MapSpec
from service_tests.cases import each
from service_tests.core.specs import gmm_spec, refusal, spec


def where(**members: Any) -> tuple[str | int, ...]:
    """The place that pydantic complains of."""
    with pytest.raises(ValidationError) as caught:
        spec(**members)
    assert caught.value.error_count() == 1
    return caught.value.errors()[0]["loc"]


SOBOL_WITHIN = {"kind": "moment_matching", "base": {"kind": "sobol", "un": 1}}


@each(
    ("members", "place"),
    [
        ({"un": 1}, ("un",)),
        ({"kernel": {"kind": "gaussian", "length_scale": 1.0, "un": 1}}, ("kernel", "gaussian", "un")),
        ({"sampler": SOBOL_WITHIN}, ("sampler", "moment_matching", "base", "sobol", "un")),
        ({"kernel": {"kind": "sigmoid"}}, ("kernel",)),
        ({"sampler": {"kind": "latin"}}, ("sampler",)),
        ({"form": "tan"}, ("form",)),
        ({"kernel": {"kind": "laplacian"}}, ("kernel", "laplacian", "length_scale")),
    ],
)
def test_an_unknown_field_or_kind_and_a_missing_field_are_refused(
    members: dict[str, Any], place: tuple[str, ...]
) -> None:
    assert where(**members) == place


@pytest.mark.parametrize(("member", "most"), [("s", 1 << 24), ("input_dim", 1 << 31), ("seed", (1 << 64) - 1)])
def test_a_number_at_its_upper_bound_passes_and_the_next_does_not(member: str, most: int) -> None:
    assert getattr(spec(**{member: most}), member) == most
    assert where(**{member: most + 1}) == (member,)


@each("value", ["1.5", 0, -1.0, float("nan"), float("inf"), True, None, {}])
def test_a_length_scale_is_a_positive_finite_number(value: Any) -> None:
    assert where(kernel={"kind": "cauchy", "length_scale": value})[:3] == ("kernel", "cauchy", "length_scale")
    entries = [1.0, 1.0, value, 1.0]
    assert where(kernel={"kind": "cauchy", "length_scale": entries})[-1] == 2


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"form": "phase"}, "/form"),
        ({"form": "complex"}, "/form"),
        ({"normalize": True}, "/normalize"),
        ({"normalize": True, "form": "phase"}, "/normalize"),
    ],
)
def test_codes_have_neither_form_nor_norm(members: dict[str, Any], pointer: str) -> None:
    error = refusal(kernel={"kind": "gmm"}, sampler={"kind": "gcws"}, **members)
    assert error.pointer == pointer
    assert "leave out form and normalize" in error.detail


def test_the_canonical_text_fills_in_every_default_and_reads_back_as_itself() -> None:
    short = spec(sampler={"kind": "halton"}, dtype="float32", kernel={"kind": "gaussian", "sigma": 1})
    assert json.loads(short.canonical()) == {
        "input_dim": 4,
        "kernel": {"kind": "gaussian", "length_scale": 1.0},
        "sampler": {"kind": "halton", "scramble": "random", "skip": 0, "leap": 0},
        "s": 64,
        "seed": 7,
        "form": "cos_sin",
        "normalize": False,
        "dtype": "float32",
    }
    assert MapSpec.model_validate_json(short.canonical()).canonical() == short.canonical()
    matching = spec(sampler={"kind": "moment_matching"}).canonical()
    assert json.loads(matching)["sampler"] == {"kind": "moment_matching", "base": {"kind": "monte_carlo"}}
    assert json.loads(gmm_spec().canonical())["kernel"] == {"kind": "gmm", "p": 1.0, "center": None}
