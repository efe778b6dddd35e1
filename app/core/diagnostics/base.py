"""The base of every diagnostic: options that a client writes, and what is measured with them."""

from abc import abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from pydantic import Field

from app.core.arrays import Matrix, Rows, Whole
from app.core.drawing import Drawing
from app.core.maps import FeatureMap
from app.core.model import Kind
from app.core.progress import Progress

Pairs = tuple[Whole, Whole]
"""The numbers of the rows of some pairs, of one and of the other."""

DRAWN_PAIRS = 20_000
"""So many pairs are drawn in a picture of a Gram matrix, or all if there are fewer."""
_STRETCHES = 16


def map_seeds(seed: int, count: int) -> list[int]:
    """Seeds for maps of their own, the first ones the same for any count."""
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(count, np.uint64)]


def row_pairs(n: int, most: int, seed: int) -> Pairs:
    """Pairs of rows i > j, each at most once: all n(n − 1)/2 in order, or `most` of them drawn evenly, in order."""
    total = n * (n - 1) // 2
    if total <= most:
        return find_pairs(np.arange(total))
    rng = np.random.Generator(np.random.PCG64(seed))
    return find_pairs(np.sort(rng.choice(total, most, replace=False, shuffle=False)))


def find_pairs(numbers: Whole) -> Pairs:
    """Rows i > j of pair number i(i − 1)/2 + j."""
    # The root may be off by rounding.
    i = ((1 + np.sqrt(1 + 8 * numbers.astype(np.float64))) / 2).astype(np.int64)
    i -= i * (i - 1) // 2 > numbers
    i += i * (i + 1) // 2 <= numbers
    return i, numbers - i * (i - 1) // 2


def rms_by_kernel(exact: Matrix, errors: Matrix) -> tuple[list[float], list[float]]:
    """The middles of stretches of the exact kernel, and the root of the mean square error of the pairs in each.

    Stretches have one width; those without a pair are left out.
    """
    if not len(exact):
        return [], []
    least, width = exact.min(), np.ptp(exact) / _STRETCHES
    # Pairs of one kernel, or of kernels nearer than numbers can tell, are one stretch.
    within = np.minimum((exact - least) / (width or 1.0), _STRETCHES - 1).astype(np.int64)
    largest = np.abs(errors).max() or 1.0  # squares of tiny and of huge errors leave the range of float64
    squares = np.bincount(within, np.square(errors / largest), _STRETCHES)
    counts = np.bincount(within, minlength=_STRETCHES)
    known = np.flatnonzero(counts)
    middles = least + (known + 0.5) * width
    return middles.tolist(), (largest * np.sqrt(squares[known] / counts[known])).tolist()


Answer_co = TypeVar("Answer_co", bound=Mapping[str, object], covariant=True)
Seed = Annotated[int, Field(ge=0, lt=1 << 64, description="Of everything that is drawn.")]
GivenRows = Mapping[str, Rows]
"""Rows behind the gate of the map, by the member of the body that they came in."""


class Takes(Enum):
    """Which rows a request for a diagnostic brings."""

    nothing = "nothing"
    rows = "rows"
    """`vectors`; over HTTP a dataset may be named instead."""
    optional_rows = "optional_rows"
    """`vectors`, or none: the diagnostic says in `check` when it can do without."""
    optional_pairs = "optional_pairs"
    """`x`, `y`, both or none; row i of one goes with row i of the other."""


class Finding(NamedTuple, Generic[Answer_co]):
    """The result of a diagnostic."""

    answer: Answer_co
    """Numbers, strings, lists and objects, as JSON has them."""
    drawing: Drawing | None = None
    """A picture of it; there if and only if the diagnostic `draws`."""


class Diagnostic(Kind):
    """One diagnostic: its fields are its options; `check`, `memory_bytes` and `run`, in this order, measure a map.

    The class docstring and `source`, `choose_when` and `limits` (see `Kind`) are what the catalogue says of it.
    """

    kind: ClassVar[str]
    """Its name in addresses: `POST /v1/maps/{name}/diagnostics/{kind}`."""
    takes: ClassVar[Takes]
    """The rows that it takes beside its options."""
    answer: ClassVar[type]
    """The type of its answer, a TypedDict. The OpenAPI document is made from it, its docstring and its descriptions."""
    draws: ClassVar[bool] = False
    """Whether there is a picture of what it finds."""

    def check(self, feature_map: FeatureMap, rows: GivenRows) -> None:
        """Raise InvalidInput for what can be seen at once to have no answer; `run` refuses what costs time to see."""

    def made_rows_bytes(self, feature_map: FeatureMap) -> int:
        """Memory of rows that the diagnostic makes itself: they are bounded as the rows of a request are."""
        return 0

    memory_advice: ClassVar[str] = ""
    """What to ask for where `run` takes more memory than any job may; nothing if there is no way."""

    @abstractmethod
    def memory_bytes(self, feature_map: FeatureMap, rows: GivenRows) -> int:
        """The most memory that `run` takes beside the map and the rows, asked before anything is computed."""

    @abstractmethod
    def run(
        self, feature_map: FeatureMap, rows: GivenRows, progress: Progress, threads: int
    ) -> Finding[Mapping[str, object]]:
        """Measure the map.

        The same arguments give the same finding bit for bit, whatever the number of threads, and wherever `progress`
        stops it and a later call goes on. It is told of each step of a quarter of a second or less, and offered what to
        go on from. InvalidInput where the rows or the options have no answer.
        """
