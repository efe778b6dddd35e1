"""Matrix on rows that were not learned from, and times of a row: landmarks, Fourier features, codes, scikit-learn's.

Columns of the data are standardised. The Gaussian kernel has σ the median distance of rows that are learned from, or
their mean distance to the tenth nearest neighbour.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.maps import make_map
from app.core.maps.landmarks.landmark_map import split
from app.core.maps.landmarks.samplers import Landmarks, Selection
from app.core.spec import MapSpec
from benchmarks.data import loaded, neighbour_distance, standardised
from benchmarks.timing import timed

Rows = NDArray[np.floating[Any]]
Matrix = NDArray[np.float64]

SELECTIONS = tuple(one.value for one in Selection)
FOURIER = ("monte_carlo", "orthogonal", "structured_orthogonal", "sobol")
CODES, NYSTROEM = "gcws", "Nystroem"
_SAME_NAME = ("letter", "cpu", "satimage", "car", "housing", "splice", "vowel")
_FILES = {"mnist": "mnist5000_raw"} | {name: name for name in _SAME_NAME}
SETS = {name: (f"{file}.npz", standardised) for name, file in _FILES.items()}
GMM = "gmm"
SCALES: dict[str, Callable[[Matrix], float]] = {
    "median": lambda rows: float(np.median(pdist(rows))),
    "tenth": neighbour_distance,
}
"""How the length scale of the Gaussian kernel is taken from rows; `GMM` has none."""
# Their selection takes longest.
_SEEDS_AT_MOST = {"k_means": 3, "leverage": 3}
_SCALED_BY, _CALLS = 1000, 5


class Data(NamedTuple):
    """Rows to learn from, rows to judge by, and the kernel of both."""

    learned: Rows
    judged: Rows
    sigma: float | None
    """Of the Gaussian kernel; None for the min-max kernel."""

    @property
    def kernel(self) -> dict[str, Any]:
        """The kernel as a spec has it."""
        return {"kind": "gmm"} if self.sigma is None else {"kind": "gaussian", "length_scale": self.sigma}


class Fitted(NamedTuple):
    """What is ready to make features or codes."""

    columns: int
    """How many there are, which may be fewer than were asked for."""
    gram: Callable[[Rows], NDArray[Any]]
    apply: Callable[[Rows], object]
    exact: Callable[[Rows], Matrix]
    """The Gram block itself."""


def data_of(folder: Path, name: str, most: int, scale: str, dtype: str = "float64") -> Data:
    """At most so many rows of a set, two thirds of them to learn from; the same each time."""
    rows = loaded(folder, SETS, name, most)
    n = len(rows) * 2 // 3
    sigma = None if scale == GMM else SCALES[scale](rows[: min(n, _SCALED_BY)])
    return Data(rows[:n].astype(dtype), rows[n:].astype(dtype), sigma)


def spec_of(method: str, data: Data, columns: int, seed: int) -> MapSpec:
    """The spec of a map with so many columns or hashes; InvalidInput if there is none.

    That of the peer is of a map which learns from the same rows.
    """
    sampler, s = {"kind": method}, columns // 2 if method in FOURIER else columns
    if method in (*SELECTIONS, NYSTROEM):
        sampler = {"kind": "landmarks", "dataset": "learned", "selection": "uniform" if method == NYSTROEM else method}
    members = {"input_dim": data.learned.shape[1], "s": s, "seed": seed, "dtype": data.learned.dtype.name}
    return MapSpec.model_validate(members | {"kernel": data.kernel, "sampler": sampler})


def fitted(method: str, data: Data, columns: int, seed: int) -> Fitted:
    """A method made ready for so many columns; InvalidInput if it has no map of the data."""
    spec, building = spec_of(method, data, columns, seed), Building(rows=lambda *_: data.learned)
    if method == NYSTROEM and data.sigma is not None:
        return _peer(spec, building, 0.5 / data.sigma**2)
    feature_map = make_map(spec, building)
    return Fitted(
        feature_map.n_output,
        lambda rows: feature_map.gram(rows, rows),
        feature_map.apply,
        lambda rows: feature_map.exact_gram(rows, rows),
    )


def _peer(spec: MapSpec, building: Building, gamma: float) -> Fitted:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.metrics.pairwise import rbf_kernel

    if not isinstance(spec.sampler, Landmarks) or spec.s is None:
        raise TypeError("the spec is of no landmarks")
    learned = split(spec, spec.sampler, spec.kernel, building).learned
    columns = min(spec.s, learned.shape[0])
    peer = Nystroem(gamma=gamma, n_components=columns, random_state=spec.seed).fit(learned)

    def gram(rows: Rows) -> Rows:
        features: Rows = peer.transform(rows)
        return features @ features.T

    return Fitted(columns, gram, peer.transform, lambda rows: rbf_kernel(rows.astype(np.float64), gamma=gamma))


def errors(data: Data, columns: int, seeds: int, methods: tuple[str, ...]) -> dict[str, Matrix]:
    """Relative Frobenius error of the Gram matrix of the judged rows by method, one for each seed.

    Of k-means and leverage scores there are three at most. Methods that have no map of such rows are left out.
    """
    found, exact = {}, None
    for method in methods:
        of_seeds = np.empty(min(seeds, _SEEDS_AT_MOST.get(method, seeds)))
        try:
            for seed in range(len(of_seeds)):
                one = fitted(method, data, columns, seed)
                exact = one.exact(data.judged) if exact is None else exact
                of_seeds[seed] = np.linalg.norm(one.gram(data.judged) - exact) / np.linalg.norm(exact)
        except InvalidInput:
            continue
        found[method] = of_seeds
    return found


def microseconds(data: Data, columns: int, n: int, methods: tuple[str, ...]) -> dict[str, float]:
    """Least time of a row among some calls with n rows, on one thread, by method; left out as above."""
    found, rows = {}, np.resize(data.judged, (n, data.judged.shape[1]))
    for method in methods:
        try:
            apply = fitted(method, data, columns, 0).apply
        except InvalidInput:
            continue
        call = timed(partial(apply, rows))
        found[method] = 1e6 * min(call() for _ in range(1 + _CALLS)) / n
    return found
