"""Which specs are tried: by the kinds themselves, within the columns, and within the memory of a map."""

from typing import Any

import pytest

from app.core.errors import InvalidInput
from app.core.maps import FAMILIES, made
from app.core.recommendations.candidates import (
    Wanted,
    at_multiples,
    candidates,
    column_counts,
    fitting,
    widest_map_bytes,
)
from app.core.samplers.base import AnySampler
from app.core.spec import MapSpec, Sampler
from service_tests.cases import each
from service_tests.core.recommendations.test_trials import KERNELS, kernel, sampler
from service_tests.core.specs import SAMPLERS

GAUSSIAN = kernel(KERNELS[0])


def tried(*asked: Any) -> list[tuple[Sampler, MapSpec | str]]:
    return [(one.sampler, one.spec) for one in candidates(*asked)]


@each("model", SAMPLERS)
def test_each_sampler_is_tried_or_says_why_not(model: type[AnySampler]) -> None:
    room = [(kernel(members), d, most) for members in KERNELS for d in (2, 16, 300) for most in (16, 512)]
    found = [one for its, d, most in room for one in model.tried(its, d, most, "letters")]
    assert bool(found) != bool(model.untried), "either it is tried for some kernel, or says why it is not"
    assert all(type(one) is model for one in found)
    assert all(one.learned_from == "letters" for one in found if one.learns)
    assert not [one for its, d, most in room for one in model.tried(its, d, most, None) if one.learns]


def test_what_won_on_data_not_seen_before_is_tried() -> None:
    def labels(input_dim: int, dataset: str | None, columns: int = 64) -> set[str]:
        each = (family.tried(GAUSSIAN, input_dim, columns, dataset) for family in FAMILIES)
        every = [one.model_dump() for tried in each for one in tried]
        return {" ".join([one["kind"], one.get("base", {}).get("kind", ""), one.get("selection", "")]) for one in every}

    plain = labels(16, None)
    assert {"moment_matching halton ", "moment_matching sobol ", "orthogonal  ", "structured_orthogonal  "} <= plain
    learned = {"reweighted_grid  ", "weighted halton ", "landmarks  rp_cholesky", "landmarks  k_means"}
    assert labels(16, "letters") - plain == learned
    grids = [
        one for family in FAMILIES for one in family.tried(GAUSSIAN, 16, 64, "letters") if one.kind == "reweighted_grid"
    ]
    assert [one.model_dump()["points_per_dim"] for one in grids] == [5, 3]
    # Of very many landmarks, centres of clusters are no better than rows, and take long.
    assert labels(16, "letters", 512) - labels(16, "letters", 513) == {"landmarks  k_means"}
    assert labels(2, None) - plain == {"dense_grid  ", "sparse_grid  ", "polynomially_exact  "}


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


def test_rules_that_dictate_their_size_are_tried_as_far_as_there_is_room() -> None:
    def specs(of: str, input_dim: int, columns: int) -> list[Any]:
        every = tried(GAUSSIAN, input_dim, columns, Wanted(columns, None), 0)
        return [spec for one, spec in every if one.kind == of]

    for columns in (18, 64, 256, 1024):
        levels = [spec.sampler.level for spec in specs("sparse_grid", 16, columns)]
        # 1 + 2d points of level 1, and d(2d + 2) more of level 2 at d = 16.
        assert levels == list(range(1, 1 + (columns // 2 >= 33) + (columns // 2 >= 577)))
        (grid,) = specs("dense_grid", 2, columns)
        assert grid.sampler.points_per_dim**2 <= columns // 2 < (grid.sampler.points_per_dim + 1) ** 2
        assert made(grid).n_output <= columns


def test_landmarks_that_nobody_asked_for_are_left_out_where_they_are_too_large() -> None:
    learned = Wanted(256, None, dataset="letters", learned_rows=100)
    # 128 frequencies with weights in float32, and a signature in int8; 256 landmarks freeze their root too.
    of_frequencies = 128 * (4 * (16 + 1) + 1)
    limited = fitting(learned, 100, 16, GAUSSIAN, map_bytes=of_frequencies, work_bytes=1 << 40)
    every = dict(tried(GAUSSIAN, 16, 256, limited, 0))
    refused = [one.kind for one, spec in every.items() if isinstance(spec, str)]
    assert refused == ["landmarks", "landmarks"]
    assert all(str(of_frequencies) in str(spec) for spec in every.values() if isinstance(spec, str))
    assert widest_map_bytes(16, limited, GAUSSIAN) == of_frequencies
    # Those that a request names count.
    named = learned._replace(samplers=[sampler(kind="landmarks", dataset="letters")])
    limited = fitting(named, 100, 16, GAUSSIAN, map_bytes=of_frequencies, work_bytes=1 << 40)
    assert widest_map_bytes(16, limited, GAUSSIAN) > of_frequencies


def test_structured_maps_are_tried_where_they_serve() -> None:
    for members, serves in ((KERNELS[0], True), (KERNELS[3], True), (KERNELS[1], False), (KERNELS[5], False)):
        every = tried(kernel(members), 16, 256, Wanted(256, None), 0)
        (spec_or_reason,) = [one for over, one in every if over.kind == "structured_orthogonal"]
        assert isinstance(spec_or_reason, str) != serves
    refusals = tried(kernel(KERNELS[0]), 7, 256, Wanted(256, None), 0)
    assert "sampler orthogonal works" in next(one for over, one in refusals if over.kind == "structured_orthogonal")


@each(
    ("wanted", "counts"),
    [
        (Wanted(1000, None), [250, 500, 1000]),
        (Wanted(2, None), [2]),
        (Wanted(5, None), [2, 5]),
        (Wanted(300, 0.1), [16, 32, 64, 128, 256, 300]),
        (Wanted(128, 0.1), [16, 32, 64, 128]),
        (Wanted(50, 0.1), [16, 32, 50]),
        (Wanted(10, 0.1), [10]),
        (Wanted(None, 0.1), [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]),
    ],
)
def test_sizes_follow_budget_and_target(wanted: Wanted, counts: list[int]) -> None:
    assert column_counts(wanted) == counts


@pytest.mark.parametrize("members", KERNELS, ids=lambda members: str(members["kind"]))
def test_no_candidate_is_wider_than_asked_and_every_refusal_has_a_reason(members: dict[str, Any]) -> None:
    for _, candidate in tried(kernel(members), 16, 200, Wanted(None, None), 3):
        if isinstance(candidate, str):
            assert candidate
            continue
        assert made(candidate).n_output <= 200
        assert candidate.seed == 3
    specs = [one for _, one in tried(kernel(members), 16, 1 << 13, Wanted(None, None), 3) if not isinstance(one, str)]
    assert len(specs) >= (1 if members["kind"] == "gmm" else 5)


def test_sets_balanced_at_powers_of_two_get_them() -> None:
    specs = {one.kind: its for one, its in tried(kernel(KERNELS[0]), 16, 1000, Wanted(None, None), 0)}
    sizes = {kind: its.s for kind, its in specs.items() if not isinstance(its, str)}
    assert sizes["sobol"] == sizes["lattice"] == sizes["digital_net"] == 256
    assert sizes["halton"] == sizes["orthogonal"] == 500


def test_the_yardstick_is_tried() -> None:
    assert "monte_carlo" in [one.kind for one, _ in tried(GAUSSIAN, 16, 200, Wanted(None, None), 0)]
