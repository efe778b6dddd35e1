"""The sampler gcws has no fields, and one kernel."""

import pytest
from pydantic import ValidationError

from service_tests.core.specs import PRODUCT_KERNELS, gmm_spec, kind, refusal, sampler


def test_it_goes_with_the_min_max_kernel() -> None:
    assert gmm_spec().sampler.kind == "gcws"


@pytest.mark.parametrize("name", [kind(model) for model in PRODUCT_KERNELS])
def test_it_is_refused_for_kernels_with_frequencies_and_one_that_works_is_named(name: str) -> None:
    error = refusal(kernel={"kind": name, "length_scale": 1.0}, sampler={"kind": "gcws"})
    assert error.pointer == "/sampler/kind"
    assert error.detail == f"sampler gcws hashes for kernel gmm only; kernel {name} takes, for instance, sobol"


def test_it_is_no_base_of_moment_matching() -> None:
    with pytest.raises(ValidationError, match="base"):
        sampler(kind="moment_matching", base={"kind": "gcws"})


def test_it_takes_no_field() -> None:
    with pytest.raises(ValidationError, match="bits"):
        sampler(kind="gcws", bits=8)
