"""Which specs are tried: by the kinds themselves, and within the columns."""

from typing import Any

import pytest

from app.core.errors import InvalidInput
from app.core.maps import make_map
from app.core.recommendations.candidates import (
    Wanted,
    at_multiples,
    candidates,
)
from app.core.samplers.base import AnySampler
from app.core.spec import MapSpec, Sampler
from service_tests.cases import each
from service_tests.core.recommendations.test_trials import KERNELS, kernel
from service_tests.core.specs import SAMPLERS

GAUSSIAN = kernel(KERNELS[0])


def tried(*asked: Any) -> list[tuple[Sampler, MapSpec | str]]:
    return [(one.sampler, one.spec) for one in candidates(*asked)]


@each("model", SAMPLERS)
def test_each_sampler_is_tried_or_says_why_not(model: type[AnySampler]) -> None:
    room = [(kernel(members), d, most) for members in KERNELS for d in (2, 16, 300) for most in (16, 512)]
    found = [one for its, d, most in room for one in model.suggest(its, d, most, "letters")]
    assert bool(found) != bool(model.untried), "either it is tried for some kernel, or says why it is not"
    assert all(type(one) is model for one in found)
    assert all(one.learned_from == "letters" for one in found if one.learns)
    assert not [one for its, d, most in room for one in model.suggest(its, d, most, None) if one.learns]


def test_kernels_are_stretched_by_their_length_scale() -> None:
    (half, same), (also,) = at_multiples(GAUSSIAN, (0.5, 1.0)), at_multiples(kernel({"kind": "gmm"}), (0.5, 1.0))
    assert (half, same) == (kernel({"kind": "gaussian", "length_scale": 2.5}), GAUSSIAN)
    assert also == kernel({"kind": "gmm"})
    for scale, factor in ((1e200, 1e200), (1e-200, 1e-200)):
        with pytest.raises(InvalidInput, match="times the length scale leaves the range") as caught:
            at_multiples(kernel({"kind": "gaussian", "length_scale": scale}), (1.0, factor))
        assert caught.value.pointer == "/multiples/1"
    of_each = kernel({"kind": "matern", "nu": 1.5, "length_scale": [1.0, 2.0]})
    assert at_multiples(of_each, (3.0,)) == [kernel({"kind": "matern", "nu": 1.5, "length_scale": [3.0, 6.0]})]


@pytest.mark.parametrize("members", KERNELS, ids=lambda members: str(members["kind"]))
def test_no_candidate_is_wider_than_asked_and_every_refusal_has_a_reason(members: dict[str, Any]) -> None:
    for _, candidate in tried(kernel(members), 16, 200, Wanted(None, None), 3):
        if isinstance(candidate, str):
            assert candidate
            continue
        assert make_map(candidate).n_output <= 200
        assert candidate.seed == 3
    specs = [one for _, one in tried(kernel(members), 16, 1 << 13, Wanted(None, None), 3) if not isinstance(one, str)]
    assert len(specs) >= (1 if members["kind"] == "gmm" else 5)
