"""Which rows are learned from, which are held out, and what the report says of both."""

from typing import Any

import numpy as np
import pytest

from app.core.arrays import dense
from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.maps.landmarks.landmark_map import LandmarkMap, split
from app.core.maps.landmarks.samplers import Landmarks
from service_tests.cases import each
from service_tests.core.combinations import rows
from service_tests.core.interrupted import WatchedWork
from service_tests.core.specs import spec


def of(**sampler: Any) -> Any:
    return spec(s=15, dtype="float64", sampler={"kind": "landmarks", "dataset": "d", "selection": "uniform"} | sampler)


def building(n: int = 200, **members: Any) -> Building:
    return Building(rows=lambda *_: rows(n, 3), **members)


@pytest.mark.parametrize(
    ("n", "wanted", "learned"), [(200, None, 180), (200, 50, 50), (9, None, 9), (30_000, None, 29_000)]
)
def test_a_tenth_at_most_a_thousand_is_held_out(n: int, wanted: int | None, learned: int) -> None:
    its = of(rows=wanted)
    assert isinstance(its.sampler, Landmarks)
    parts = split(its, its.sampler, its.kernel, building(n))
    assert parts.learned.shape == (learned, 4)
    assert parts.held_out.shape == (min(1000, n // 10), 4)
    every = {row.tobytes() for row in rows(n, 3)}
    one, other = ({row.tobytes() for row in dense(part)} for part in parts[:2])
    assert len(one) == learned
    assert one | other <= every
    assert not one & other


def test_the_report_says_what_the_features_miss() -> None:
    its = of()
    assert isinstance(its.sampler, Landmarks)
    built = LandmarkMap.build(its, building())
    parts, opened = split(its, its.sampler, its.kernel, building()), LandmarkMap(its, built.arrays)
    report = built.report
    assert report is not None
    for name, part in (("trace_error", parts.learned), ("trace_error_held_out", parts.held_out)):
        assert isinstance(part, np.ndarray)
        missed = np.diag(opened.exact_gram(part, part) - opened.gram(part, part)).sum()
        assert report[name] == pytest.approx(missed / len(part), rel=1e-9)
    assert isinstance(parts.learned, np.ndarray)
    covariance = opened.gram(parts.learned, parts.learned) / 180
    wanted = np.trace(covariance @ np.linalg.inv(covariance + report["trace_error"] * np.eye(180)))
    assert report["effective_dimension"] == pytest.approx(wanted, rel=1e-6)


def test_an_interrupted_build_comes_to_the_same_bits() -> None:
    whole = LandmarkMap.build(of(), building())
    watched = WatchedWork()
    LandmarkMap.build(of(), building(progress=watched))
    assert watched.states
    for state in watched.states:
        again = LandmarkMap.build(of(), building(progress=WatchedWork(state)))
        assert again.report == whole.report
        for name, array in whole.arrays.items():
            assert again.arrays[name].tobytes() == array.tobytes()


@each("selection", ["rp_cholesky", "k_means", "leverage", "uniform"])
@each(
    "kernel",
    [
        {"kind": "polynomial", "degree": 1, "coef0": 0.0, "gamma": 1e306},
        {"kind": "polynomial", "degree": 2, "gamma": 1e-148, "coef0": 1e-148},
        {"kind": "anova", "subsets": [[0, 1], [2]], "weights": [1e308, 1e308], "length_scale": 1.0},
        {"kind": "anova", "subsets": [[0, 1], [2]], "weights": [1e-320, 1e-320], "length_scale": 1.0},
    ],
)
def test_kernels_without_room_for_their_sums_are_refused(kernel: dict[str, Any], selection: str) -> None:
    its = of(selection=selection)
    its = spec(**its.model_dump() | {"kernel": kernel})
    with pytest.raises(InvalidInput, match="dataset 'd': the rows' kernels with themselves sum to") as refused:
        LandmarkMap.build(its, building())
    assert refused.value.pointer == "/sampler/dataset"
