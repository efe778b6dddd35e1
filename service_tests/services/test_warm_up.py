"""After the warm-up no request waits for a compiler."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import orjson
import pytest
from scipy import sparse

from app.core.arrays import vectors
from app.core.compiled import LOOPS
from app.core.diagnostics import DIAGNOSTICS
from app.core.hashing.encodings import CodeOptions, Encoding, encoder
from app.core.maps import FeatureMap, family_of, open_map
from app.core.maps.terms import Dtype, Form
from app.core.progress import Progress
from app.core.spec import MapSpec
from app.services.warm_up import warm_up
from service_tests.cases import pairwise
from service_tests.core.combinations import (
    D,
    Fields,
    dimensions,
    drawn_as,
    goes_together,
    named,
    pairs,
    rows,
    size_of,
    with_rows,
)
from service_tests.core.diagnostics.test_base import RUNS
from service_tests.core.specs import gmm_spec, spec

WITH_ANY_KERNEL = [*{drawn_as(pair[1]): pair for pair in pairs() if goes_together(*pair)}.values()]
"""Every sampler, and every base, with a kernel that it serves."""


def signatures() -> dict[str, list[Any]]:
    """The types of arguments that every loop is ready for."""
    return {f"{loop.__module__}.{loop.__name__}": loop.signatures for loop in LOOPS}


@pytest.fixture
def nothing_new() -> Iterator[None]:
    """Fails the test if a loop is compiled in it, or loaded, for arguments that it was not ready for."""
    warm_up()
    before = signatures()
    yield
    after = signatures()
    assert {loop: types for loop, types in after.items() if types != before.get(loop)} == {}


def as_posted(dtype: Dtype, n: int, d: int = D) -> list[Any]:
    """Rows behind the gate, from a body that nobody may write to, by columns, sparse, and of the other dtype."""
    whole = rows(n, 1, d, dtype=dtype.value)
    body = np.frombuffer(whole.tobytes(), whole.dtype).reshape(whole.shape)
    other = whole.astype(np.float32 if dtype is Dtype.float64 else np.float64)
    came = [whole, body, np.asfortranarray(whole), whole[::-1], sparse.csr_array(whole), other]
    return [vectors(one, d, np.dtype(dtype.value)) for one in came]


def kept(of: MapSpec, threads: int) -> FeatureMap:
    """A map as the store gives it back: nobody may write to its arrays."""
    arrays = family_of(of.sampler).build(of, with_rows(its_kernel=of.kernel.kind)).arrays
    for array in arrays.values():
        array.flags.writeable = False
    return open_map(of, arrays, threads)


@pytest.mark.parametrize(
    ("form", "dtype", "normalize", "sampler"),
    pairwise(Form, Dtype, (False, True), ("monte_carlo", "structured_orthogonal")),
)
@pytest.mark.usefixtures("nothing_new")
def test_features_of_any_form_and_rows(form: Form, dtype: Dtype, normalize: bool, sampler: str) -> None:
    d = 20 if sampler == "structured_orthogonal" else 4
    output = {"form": form.value, "dtype": dtype.value, "normalize": normalize}
    for threads in (1, 2):
        made = kept(spec(input_dim=d, sampler={"kind": sampler}, s=300, **output), threads)
        for n in (1, 2, 700):
            for x in as_posted(dtype, n, d):
                made.transform(x)
                made.gram(x, x[:1])
                made.exact_gram(x[:3], x)
                made.estimated_pairs(x, x)


@pytest.mark.parametrize(("its_kernel", "its_sampler"), WITH_ANY_KERNEL, ids=named)
@pytest.mark.usefixtures("nothing_new")
def test_maps_of_any_sampler(its_kernel: Fields, its_sampler: Fields) -> None:
    d = dimensions(its_sampler)
    of = spec(kernel=its_kernel, sampler=its_sampler, s=size_of(its_sampler), dtype="float64", input_dim=d)
    made = kept(of, 2)
    for posted in as_posted(Dtype.float64, 3, d):
        x = abs(posted) if its_kernel["kind"] == "chi_squared" else posted
        made.apply(x)
        made.gram(x, x)
        made.exact_gram(x, x)
        made.exact_pairs(x, x)


@pytest.mark.parametrize(
    ("encoding", "dtype", "options"), pairwise(Encoding, Dtype, ({}, {"p": 2.0}, {"center": [1.0, 0, 0, 0]}))
)
@pytest.mark.usefixtures("nothing_new")
def test_codes_of_any_encoding_and_rows(encoding: Encoding, dtype: Dtype, options: Fields) -> None:
    made = kept(gmm_spec(dtype=dtype.value, kernel={"kind": "gmm"} | options), 2)
    for n in (1, 70):
        for x in as_posted(dtype, n):
            made.codes(x, encoder(encoding, None, None, marked=False))
            made.gram(x, x)
            made.exact_gram(x, x)
            made.exact_pairs(x, x)


@pytest.mark.parametrize("dtype", Dtype)
@pytest.mark.parametrize("sampler", ["sobol", "structured_orthogonal"])
@pytest.mark.usefixtures("nothing_new")
def test_signed_codes_of_any_rows(sampler: str, dtype: Dtype) -> None:
    d = dimensions({"kind": sampler}, D)
    made = kept(spec(sampler={"kind": sampler}, dtype=dtype.value, input_dim=d, s=700), 2)
    for n in (1, 300):
        for x in as_posted(dtype, n, d):
            for options in (CodeOptions(), CodeOptions(Encoding.fingerprint)):
                made.codes(x, made.encoder_of(options))


@pytest.mark.parametrize(("kind", "options", "made", "posted"), RUNS)
@pytest.mark.usefixtures("nothing_new")
def test_any_diagnostic(kind: str, options: Fields, made: FeatureMap, posted: Mapping[str, Any]) -> None:
    more = {member: np.tile(one, (3, 1)) for member, one in posted.items()}
    for came in (posted, more):  # the norms of large matrices have a loop
        DIAGNOSTICS[kind].model_validate_json(orjson.dumps(options)).run(made, came, Progress(), 1)
