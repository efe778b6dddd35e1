import numpy as np
import pytest
import scipy

from app.core.arrays import Matrix, dense
from app.core.kernels.base import AnyKernel
from app.core.maps.landmarks.selection import k_means
from app.core.maps.landmarks.selection.base import values
from service_tests.cases import each
from service_tests.core.combinations import Fields
from service_tests.core.maps.landmarks.selection.chosen import GAUSSIAN, of, run


def inertia(rows: Matrix, centres: Matrix) -> float:
    """Sum of the squared distances to the nearest centre."""
    return float(scipy.spatial.distance.cdist(rows, centres, "sqeuclidean").min(axis=1).sum())


@pytest.mark.nightly
def test_clusters_are_as_close_as_those_of_scikit_learn() -> None:
    cluster = pytest.importorskip("sklearn.cluster")
    rng = np.random.default_rng(1)
    scales = np.array([0.2, 1.0, 5.0, 2.0, 1.0])
    rows = (rng.normal(size=(8, 5)).repeat(300, axis=0) + 0.4 * rng.normal(size=(2400, 5))) * scales
    made = of({"kind": "gaussian", "length_scale": scales.tolist()})
    for s in (8, 40):
        ours = [
            inertia(rows / scales, dense(run("k_means", made, rows, s, seed).landmarks) / scales) for seed in range(5)
        ]
        theirs = [cluster.KMeans(s, n_init=1, random_state=seed).fit(rows / scales).inertia_ for seed in range(5)]
        assert np.mean(ours) < 1.1 * np.mean(theirs), s


@each(
    "its_kernel",
    [
        {"kind": "gaussian", "length_scale": 1.5},
        {"kind": "laplacian", "length_scale": [1.0, 2.0, 3.0]},
        {"kind": "gmm"},
        {"kind": "correlation_rbf", "gamma": 2.0},
        {"kind": "anova", "length_scale": 1.5, "subsets": [[0, 1], [2]]},
    ],
)
@each("dtype", ["float32", "float64"])
def test_centres_of_clusters_that_lie_apart_are_their_means_or_medians(its_kernel: Fields, dtype: str) -> None:
    made = of(its_kernel)
    middles = np.array([[9.0, 0.1, 0.2], [0.1, 7.0, 0.3], [0.2, 0.1, 8.0]])
    noise = 0.3 * np.random.default_rng(2).exponential(size=(3, 41, 3))
    blobs = [dense(made.prepare((middle + some).astype(dtype))) for middle, some in zip(middles, noise, strict=True)]
    found = run("k_means", made, made.prepare(np.concatenate(blobs).astype(dtype)), 3)
    of_blob = np.median if its_kernel["kind"] == "laplacian" else np.mean
    wanted = dense(made.prepare(np.stack([of_blob(blob, axis=0) for blob in blobs])))
    order = np.argmax(dense(found.landmarks), axis=1).argsort()
    assert found.landmarks.dtype == dtype
    assert dense(found.landmarks)[order] == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("size", [1e200, 1e308])
@pytest.mark.parametrize("its_kernel", [GAUSSIAN, of({"kind": "laplacian", "length_scale": 1.0})], ids=type)
def test_rows_whose_distances_or_sums_leave_float64_have_centres(its_kernel: AnyKernel, size: float) -> None:
    """All are infinitely far from each other, or have a mean that is too large; there are more centres than rows."""
    rows = np.random.default_rng(1).uniform(0.1, 1, (30, 3)) * size
    every = dense(run("k_means", its_kernel, rows, 100).landmarks)
    assert sorted(map(tuple, every.tolist())) == sorted(map(tuple, rows.tolist()))
    blobs = np.concatenate([rows, rows * -1, rows[:, ::-1] * np.array([1, -1, 1])])
    few = dense(run("k_means", its_kernel, blobs, 4).landmarks)
    assert len(few) == 4
    assert np.isfinite(few).all()


def test_rows_are_compared_with_a_long_centre_many_at_a_time() -> None:
    """It costs as many multiplications as it has entries for each part; so, by the other side, the short rows do."""
    short, long = scipy.sparse.csr_array(np.eye(999, 500_000)), scipy.sparse.csr_array(np.ones((1, 500_000)))
    rows = scipy.sparse.csr_array(scipy.sparse.vstack([short, long], format="csr"))
    made = of({"kind": "gmm"})
    distances = k_means.distances_of(made, rows)
    for centre in (long, short[:1]):
        comparison = distances.against(centre)
        assert comparison.per_part > 900
        plain = 2 - 2 * values(made, rows[990:], centre)
        assert comparison.distances(slice(990, 1000)) == pytest.approx(plain, abs=1e-9)
