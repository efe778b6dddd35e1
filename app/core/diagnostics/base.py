"""Base class of the diagnostics, whose fields are options of a request, and helpers to choose rows and seeds."""

from abc import abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from pydantic import Field

from app.core.arrays import Matrix, Rows, Whole
from app.core.drawing import Drawing
from app.core.maps import FeatureMap, Gives
from app.core.model import Kind
from app.core.progress import Progress
from app.core.samplers.base import AnySampler

Pairs = tuple[Whole, Whole]
"""Row numbers of pairs: of the first rows, and of the second rows."""

DRAWN_PAIRS = 20_000
"""Most pairs shown in the figure of a Gram matrix."""
_STRETCHES = 16


def map_seeds(seed: int, count: int) -> list[int]:
    """Return seeds for `count` different maps; the first seeds are the same for any count."""
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(count, np.uint64)]


def row_pairs(n: int, most: int, seed: int) -> Pairs:
    """Return different pairs of rows i > j, in order: all n(n − 1)/2, or `most` of them drawn uniformly."""
    total = n * (n - 1) // 2
    if total <= most:
        return find_pairs(np.arange(total))
    rng = np.random.Generator(np.random.PCG64(seed))
    return find_pairs(np.sort(rng.choice(total, most, replace=False, shuffle=False)))


def find_pairs(numbers: Whole) -> Pairs:
    """Return the rows i > j of the pairs with the numbers i(i − 1)/2 + j."""
    # Rounding of the root may put i off by one.
    i = ((1 + np.sqrt(1 + 8 * numbers.astype(np.float64))) / 2).astype(np.int64)
    i -= i * (i - 1) // 2 > numbers
    i += i * (i + 1) // 2 <= numbers
    return i, numbers - i * (i - 1) // 2


def rms_by_kernel(exact: Matrix, errors: Matrix) -> tuple[list[float], list[float]]:
    """Return the midpoints of intervals of the exact kernel, and the root mean square error of the pairs in each.

    All intervals have one width; intervals without a pair are left out.
    """
    if not len(exact):
        return [], []
    least, width = exact.min(), np.ptp(exact) / _STRETCHES
    # Pairs with equal kernels, or kernels closer than floats can resolve, are one interval.
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
"""Rows, checked and preprocessed by the map's gate, by their member in the request body."""


class Takes(Enum):
    """Which rows a request for a diagnostic has."""

    nothing = "nothing"
    rows = "rows"
    """`vectors`; over HTTP a dataset may be named instead."""
    optional_rows = "optional_rows"
    """`vectors`, or none if the diagnostic's `check` accepts that."""
    optional_pairs = "optional_pairs"
    """`x`, `y`, both or none; row i of `x` is paired with row i of `y`."""


class Finding(NamedTuple, Generic[Answer_co]):
    """The result of a diagnostic."""

    answer: Answer_co
    """Numbers, strings, lists and objects, as in JSON."""
    drawing: Drawing | None = None
    """Figure of the answer; present if and only if the diagnostic `draws`."""


class Diagnostic(Kind):
    """A diagnostic with its options as fields; `check`, `memory_bytes` and `run`, in this order, measure a map.

    The class docstring and `source` and `limits` (see `Kind`) are its entry in the catalogue.
    """

    kind: ClassVar[str]
    """Name in URLs: `POST /v1/maps/{name}/diagnostics/{kind}`."""
    takes: ClassVar[Takes]
    """Rows that a request has beside the options."""
    answer: ClassVar[type]
    """Type of the answer, a TypedDict. The OpenAPI document is made from it, its docstring and its descriptions."""
    needs: ClassVar[frozenset[Gives]] = frozenset()
    """Results of which a map must give one; empty for a diagnostic of every map."""
    draws: ClassVar[bool] = False
    """Whether the finding has a figure."""

    @classmethod
    def is_for(cls, sampler: type[AnySampler], gives: frozenset[Gives]) -> bool:
        """Return whether it measures maps of a kind of sampler that give these results."""
        return not cls.needs or bool(cls.needs & gives)

    def check(self, feature_map: FeatureMap, rows: GivenRows) -> None:
        """Raise InvalidInput if there clearly is no answer; `run` refuses what takes time to detect."""

    def made_rows_bytes(self, feature_map: FeatureMap) -> int:
        """Return the memory of rows that the diagnostic makes itself; their limit is that of rows in a request."""
        return 0

    memory_advice: ClassVar[str] = ""
    """Options to choose if `run` takes more memory than any job may; empty if none helps."""

    @abstractmethod
    def memory_bytes(self, feature_map: FeatureMap, rows: GivenRows) -> int:
        """Return the most memory that `run` takes beside the map and the rows; called before anything is computed."""

    @abstractmethod
    def run(
        self, feature_map: FeatureMap, rows: GivenRows, progress: Progress, threads: int
    ) -> Finding[Mapping[str, object]]:
        """Measure the map.

        The same arguments give the same finding bit for bit, whatever the number of threads, and wherever `progress`
        stops the work and a later call resumes it. Each step, of a quarter of a second or less, is reported to
        `progress` and offers it a state to resume from. Raises InvalidInput if the rows or options have no answer.
        """
