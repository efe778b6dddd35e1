"""What every family of maps must do; and that only the families themselves ask which family a map is of.

A new family is covered as soon as it stands in `FAMILIES` and one of its samplers goes with a kernel in `combinations`.
"""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import app
from app.core.errors import InvalidInput
from app.core.kernels.base import ShiftInvariantKernel
from app.core.maps import FAMILIES, FeatureMap, Gives, family_of, open_map
from app.core.samplers.base import FrequencySampler
from service_tests.cases import each, with_nightly
from service_tests.core.combinations import (
    dimensions,
    each_with_each,
    goes_together,
    pairs,
    rows,
    with_rows,
)
from service_tests.core.specs import KERNELS, SAMPLERS, kind, sampler, spec

ROOT = Path(app.__file__).parent
APART = [model for model in KERNELS if not issubclass(model, ShiftInvariantKernel)] + [
    model for model in SAMPLERS if not issubclass(model, FrequencySampler)
]
KINDS = {kind(model) for model in APART}
TOGETHER = [pair for pair in pairs() if goes_together(*pair)]
# A spec of each family, with the first of its samplers and the first of the kernels that go with it.
FIRST = {family_of(sampler(**pair[1])): pair for pair in reversed(TOGETHER)}

every_family = pytest.mark.parametrize("of", FAMILIES, ids=lambda of: of.__name__)


def names(node: ast.AST) -> set[str]:
    """Every name and text in a piece of source."""
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    found |= {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
    return found | {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def built(of: type[FeatureMap], **members: Any) -> FeatureMap:
    its_kernel, its_sampler = FIRST[of]
    made = spec(**{"kernel": its_kernel, "sampler": its_sampler} | members)
    return open_map(made, of.build(made, with_rows()).arrays)


@pytest.mark.parametrize("form", with_nightly(["phase"], ["cos_sin"]))
@each(("its_kernel", "its_sampler"), each_with_each(TOGETHER))
def test_what_is_built_is_what_was_said_before(
    its_kernel: dict[str, Any], its_sampler: dict[str, Any], form: str
) -> None:
    its_family = family_of(sampler(**its_sampler))
    if form == "phase" and (built(its_family).form is None or its_sampler["kind"] == "sparse_grid"):
        return  # codes have no form, and negative weights no phase
    d = dimensions(its_sampler)
    made = spec(kernel=its_kernel, sampler=its_sampler, form=form, input_dim=d)
    frozen = its_family.frozen(made)
    found = its_family.build(made, with_rows(d, its_kernel=its_kernel["kind"]))
    assert set(found.arrays) <= set(frozen)
    for name, array in found.arrays.items():
        assert array.dtype == frozen[name].dtype
        assert all(got <= most for got, most in zip(array.shape, frozen[name].shape, strict=True))
    assert sum(array.nbytes for array in found.arrays.values()) <= its_family.frozen_bytes(made)
    most, columns = its_family.largest(made)
    assert 0 < found.n_frequencies <= most
    feature_map = open_map(made, found.arrays)
    if feature_map.form is None:  # of dependent landmarks some columns are left out
        assert found.n_output <= columns == most
    else:
        assert columns * found.n_frequencies == found.n_output * most
    assert type(feature_map) is its_family
    assert (feature_map.n_frequencies, feature_map.n_output) == (found.n_frequencies, found.n_output)
    given = feature_map.arrays.keys() - feature_map.computed.keys()
    assert {name: feature_map.arrays[name].tobytes() for name in given} == {
        name: array.tobytes() for name, array in found.arrays.items()
    }


@every_family
def test_a_map_gives_what_it_says_and_refuses_the_rest_by_name(of: type[FeatureMap]) -> None:
    made, x, y = built(of), rows(3, 1, dtype="float32"), rows(3, 2, dtype="float32")
    calls: dict[Gives, list[Callable[[], object]]] = {
        Gives.features: [lambda: made.transform(x)],
        Gives.codes: [lambda: made.codes(x)],
        Gives.samples: [
            lambda: made.samples(x, slice(0, 2)),
            lambda: made.rbf_pairs(x, y, 1.0),
        ],
        Gives.frequencies: [made.spectrum],
    }
    words = f"kernel {made.spec.kernel.kind}|has sampler {made.spec.sampler.kind}, which gives no"
    for wanted, those in calls.items():
        for call in those:
            if wanted in made.gives:
                made.check_gives(wanted)
                call()
                continue
            with pytest.raises(InvalidInput, match=words):
                call()
            with pytest.raises(InvalidInput, match=words):
                made.check_gives(wanted, "map 'm'")
    assert "map 'm' has sampler" in str(FeatureMap.refusal(made, Gives.codes, "map 'm'"))
    applied = made.apply(x)
    assert applied.shape[:2] == (3, made.n_output)


@every_family
def test_pairs_are_those_of_the_gram_block(of: type[FeatureMap]) -> None:
    made, x, y = built(of, dtype="float64"), rows(4, 1), rows(4, 2)
    np.testing.assert_allclose(made.estimated_pairs(x, y), np.diag(made.gram(x, y)), rtol=1e-12)
    np.testing.assert_allclose(made.exact_pairs(x, y), np.diag(made.exact_gram(x, y)), rtol=1e-12)
    closed = made.closed_forms(x, y)
    assert closed.own is None or closed.own in closed.by_name
    assert all(variance.shape == (4,) for variance in closed.by_name.values())
