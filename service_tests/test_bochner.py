"""The package `bochner`: the core under names of its own, for processes without a service."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import bochner
from service_tests.core.combinations import rows
from service_tests.core.specs import spec
from service_tests.formats.exports.taken import taken, written
from service_tests.formats.exports.test_npz import script

SPEC = {"input_dim": 4, "s": 32, "kernel": {"kind": "gaussian", "length_scale": 1.5}, "sampler": {"kind": "halton"}}
HASHES = {"input_dim": 4, "s": 32, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}}


def test_a_map_that_is_built_approximates_its_kernel() -> None:
    built = bochner.build(SPEC | {"s": 2000})
    x, y = rows(9, 1).tolist(), rows(7, 2)
    features = built.transform(x)
    assert features.shape == (9, built.n_output) == (9, 4000)
    exact = built.kernel(x, y, exact=True)
    np.testing.assert_allclose(built.kernel(x, y), exact, atol=0.05)
    np.testing.assert_allclose(built.kernel(x), features @ features.T, atol=1e-5)
    assert np.ptp(exact) > 0.2
    assert built.spec["form"] == "cos_sin"


def test_rows_are_checked_as_a_service_checks_them() -> None:
    built = bochner.build(SPEC)
    for bad, told in (([[1, 2, 3]], "rows have 3 entries"), ([[1, 2, 3, np.nan]], "row 0, column 3 is missing")):
        with pytest.raises(bochner.InvalidInput, match=told):
            built.transform(bad)
    rule = bochner.build(SPEC | {"s": None, "sampler": {"kind": "sparse_grid", "level": 1}})
    with pytest.raises(bochner.InvalidInput, match="weights of their own"):
        rule.codes([[1, 2, 3, 4]])


@pytest.mark.parametrize("sampler", ["gcws", "dart_minhash"])
def test_codes_of_dense_and_sparse_rows_are_the_same(sampler: str) -> None:
    built, x = bochner.build(HASHES | {"sampler": {"kind": sampler}}), rows(9, 1)
    x[:, 2] = 0
    codes = built.codes(x, "b_bit", bits=4, bits_of="pair")
    assert codes.dtype == np.uint8
    assert (codes == built.codes(sparse.csr_matrix(x), "b_bit", bits=4, bits_of="pair")).all()
    assert (built.codes([[0, 0, 0, 0]], on_zero="mark") == -1).all()
    with pytest.raises(bochner.InvalidOption):
        built.codes(x, bits=4)


@pytest.mark.parametrize("kernel", ["gmm", "chi_squared"])
def test_columns_that_come_twice_or_in_any_order_are_added(kernel: str) -> None:
    """SciPy allows them, and kernels of sparse rows pass over columns in order."""
    twice = sparse.csr_array((np.arange(1.0, 8), [3, 0, 3, 1, 3, 3, 1], [0, 3, 7]), shape=(2, 4))
    before, summed = twice.indices.copy(), twice.toarray()
    landmarks = {"kind": "landmarks", "dataset": "d", "selection": "uniform"}
    of = {"input_dim": 4, "s": 2, "kernel": {"kind": kernel}, "sampler": landmarks}
    built = bochner.build(of, {"d": twice})
    known = bochner.build(of, {"d": summed})
    np.testing.assert_allclose(built.kernel(twice, exact=True), known.kernel(summed, exact=True), rtol=1e-12)
    for sparse_rows in (twice, twice.astype(np.int8)):
        np.testing.assert_allclose(built.transform(sparse_rows), known.transform(summed), atol=1e-6)
    assert (twice.indices == before).all()


def test_the_lines_of_the_page_run(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    away, here = taken(spec(input_dim=16))
    folder = tmp_path_factory.mktemp("maps")
    (folder / "letters.npz").write_bytes(written(away, "npz"))
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"rows": rows(120, 1, 16), "bochner": bochner}
    exec(script("import bochner"), names)
    assert (names["features"] == here.transform(names["rows"])).all()
    exec(script("gaussian = "), names)
    assert np.abs(names["approximate"] - names["exact"]).max() < 0.5
