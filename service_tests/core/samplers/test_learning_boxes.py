"""Where samplers that learn take their box from, and what they refuse."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.core.arrays import Rows
from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.samplers import learning
from app.core.samplers.learning import of_a_box
from service_tests.cases import each
from service_tests.core.combinations import Fields, rows, with_rows
from service_tests.core.samplers.learned import (
    as_set,
    built,
    digest,
    every,
    on,
)
from service_tests.core.specs import kernel, refusal, spec


@every
@pytest.mark.parametrize("as_sparse", [False, True])
def test_the_box_of_a_dataset_is_the_ranges_of_its_columns(over: Fields, as_sparse: bool) -> None:
    data = rows(120, 17)
    box = np.ptp(data, axis=0).tolist()

    def mine(dataset: str, pointer: str) -> Rows:
        assert (dataset, pointer) == ("mine", "/sampler/dataset")
        return sparse.csr_array(data) if as_sparse else data

    its = {"kind": "gaussian", "length_scale": 1.5}
    made = built(Building(rows=mine), **on(over | {"dataset": "mine"}, its))
    assert digest(made) == digest(built(**on(over | {"box": box, "box_scale": 0.25}, its)))
    assert made.report is not None
    for some, name in zip(of_a_box(data), ("gram_error", "gram_error_held_out"), strict=True):
        features = np.exp(1j * some @ made.arrays["frequencies"].T)
        exact = kernel(**its).gram(some, some)
        approximate = ((features * made.arrays["weights"]) @ features.conj().T).real
        error = np.linalg.norm(approximate - exact) / np.linalg.norm(exact)
        assert made.report[name] == pytest.approx(error, rel=1e-9)
        assert 0 < error < 0.5


@every
def test_rows_of_correlation_rbf_are_brought_to_unit_length_first(over: Fields) -> None:
    its = {"kind": "correlation_rbf", "gamma": 2.0}
    data = rows(120, 17)
    box = np.ptp(data / np.linalg.norm(data, axis=1, keepdims=True), axis=0).tolist()
    made, given = (
        built(with_rows(), **on(over | fields, its)) for fields in ({"dataset": "d"}, {"box": box, "box_scale": 0.25})
    )
    np.testing.assert_allclose(as_set(made).frequencies, as_set(given).frequencies, rtol=1e-6, atol=1e-9)


@every
@each(
    ("data", "words"),
    [
        (np.ones((5, 3)), r"of 4 entries in dataset 'd', got shape \(5, 3\)"),
        (np.ones((1, 4)), "2 rows or more"),
        (np.ones((5, 4)), "are equal"),
    ],
)
def test_a_dataset_that_does_not_fit_is_refused(over: Fields, data: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        built(Building(rows=lambda *_: data), **on(over | {"dataset": "d"}))
    assert caught.value.pointer == "/sampler/dataset"
    with pytest.raises(InvalidInput, match="'d' is not at hand") as caught:
        built(**on(over | {"dataset": "d"}))
    assert caught.value.pointer == "/sampler/dataset"


@every
def test_what_has_no_meaning_is_refused(over: Fields) -> None:
    members = on(over)
    fields = {name: value for name, value in members["sampler"].items() if name not in ("box", "box_scale")}
    for wrong, pointer, words in (
        ({}, "/sampler/box", "one of box and dataset, got neither"),
        ({"box": 1.0, "dataset": "d"}, "/sampler/box", "one of box and dataset, got both"),
        ({"box": [1.0, 2.0, 3.0]}, "/sampler/box", "3 entries; input_dim 4"),
    ):
        error = refusal(**members | {"sampler": fields | wrong})
        assert (error.pointer, words in error.detail) == (pointer, True)
    for its in (
        {"kind": "matern", "nu": 2.5, "length_scale": 1.0},
        {"kind": "anova", "length_scale": 1.0, "subsets": [[0], [1]]},
    ):
        error = refusal(**members | {"kernel": its})
        assert error.pointer == "/sampler/kind"
        assert "sampler sobol works" in error.detail
    with pytest.raises(InvalidInput, match="got inf in entry") as caught:
        built(**members | {"sampler": fields | {"box": 1e300, "box_scale": 1e300}})
    assert caught.value.pointer == "/sampler/box_scale"


@every
def test_a_box_on_which_the_kernel_is_nearly_0_is_refused_when_building(
    over: Fields, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = on(over | {"box": [1e8] * 40}, d=40)
    with monkeypatch.context() as patched:
        patched.setattr(learning, "BoxDiscrepancy", lambda *_: pytest.fail("a spec that is only read"))
        spec(**members)
    with pytest.raises(InvalidInput, match="nearly 0 on this box") as caught:
        built(**members)
    assert caught.value.pointer == "/sampler/box"
