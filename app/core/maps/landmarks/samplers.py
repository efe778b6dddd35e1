"""The samplers of landmark maps: rows that a method selects from a dataset, or rows that the client uploads."""

from enum import StrEnum
from itertools import chain
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Discriminator, Field, Tag
from scipy import sparse

from app.core.arrays import PostedRows
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel
from app.core.model import Frozen, check_entries
from app.core.samplers.base import AnySampler
from app.core.samplers.learning import Dataset

_NYSTROM = "Williams and Seeger (2001), Using the Nyström method to speed up kernel machines"
# Recommendations try k_means up to this number of clusters: on letter, cpu, satimage and car its error was .99 to 1.13
# times that of rp_cholesky with 1,024 clusters, and .74 to 1.42 times with 256.
_MOST_CLUSTERS = 512


class Selection(StrEnum):
    """Method by which rows of a dataset become landmarks."""

    rp_cholesky = "rp_cholesky"
    k_means = "k_means"
    leverage = "leverage"
    uniform = "uniform"


class Landmarks(AnySampler):
    """s landmarks L from a dataset: Nyström features k(x, L) V Λ^(−1/2), where k(L, L) = V Λ Vᵀ.

    A tenth of the rows, at most 1,000, is held out, and the report of the map has the error on these rows.

    Choose when:
        Use it, with any kernel, if you have rows similar to those that the map will receive. With few columns its error
        is a fraction of that of Fourier features (satimage, 128 columns: .002, orthogonal .16). Each row costs
        s·(input_dim + s) multiplications.
    """

    source = (
        f"{_NYSTROM}; Chen, Epperly, Tropp, Webber (2023), Randomly pivoted Cholesky, algorithm 1; Arthur and "
        "Vassilvitskii (2007), k-means++; Alaoui and Mahoney (2015), ridge leverage scores"
    )
    limits = ("a dataset of input_dim columns; of fewer distinct rows than s, each is a landmark",)

    kind: Literal["landmarks"]
    selection: Annotated[Selection, Field(strict=False)] = Selection.rp_cholesky
    """How landmarks are selected. rp_cholesky: each row with probability proportional to the part of k(x, x) that
    earlier landmarks do not explain. k_means: cluster centres. leverage: by ridge leverage scores. uniform: all rows
    with equal probability.
    """
    dataset: Dataset
    """Name of the dataset whose rows become landmarks."""
    rows: Annotated[int, Field(ge=1)] | None = None
    """Number of rows of the dataset to learn from, sampled by the seed; all rows that are not held out if not given."""

    @classmethod
    def suggest(cls, kernel: AnyKernel, input_dim: int, most: int, dataset: str | None) -> tuple[Self, ...]:
        """Return landmarks from the dataset by the methods with the least errors at `most` of them, for any kernel."""
        if dataset is None:
            return ()
        best = [Selection.rp_cholesky] + [Selection.k_means] * (most <= _MOST_CLUSTERS)
        return tuple(cls(kind="landmarks", dataset=dataset, selection=selection) for selection in best)

    always_learns = True


class SparseRow(Frozen):
    """A row given by its entries that are not 0."""

    indices: tuple[Annotated[int, Field(ge=0)], ...] = Field(fail_fast=True)
    """Column numbers, in increasing order."""
    values: tuple[float, ...] = Field(fail_fast=True)
    """Entries, one for each of the `indices`."""


Row = Annotated[
    Annotated[tuple[float, ...], Field(fail_fast=True), Tag("dense")] | Annotated[SparseRow, Tag("sparse")],
    Discriminator(lambda row: "dense" if isinstance(row, list | tuple) else "sparse"),
]


class UploadedLandmarks(AnySampler):
    """Landmarks L given in the request: Nyström features k(x, L) V Λ^(−1/2), where k(L, L) = V Λ Vᵀ.

    Choose when:
        Use it for landmarks chosen elsewhere, for instance by a model that must stay the same.
    """

    source = _NYSTROM
    limits = ("input_dim entries in each landmark", "all of them lists of numbers, or all of them sparse rows")
    untried = "It has landmarks of the client's own."

    kind: Literal["uploaded_landmarks"]
    landmarks: Annotated[tuple[Row, ...], Field(min_length=1, fail_fast=True)]
    """Landmarks, each a list of input_dim numbers or an object with `indices` and `values`, in the unit of the vectors.
    """

    def check_rows(self, input_dim: int) -> None:
        """Raise InvalidInput for landmarks that mix both forms, have another width, or have columns out of order."""
        first = isinstance(self.landmarks[0], SparseRow)
        for i, row in enumerate(self.landmarks):
            pointer = f"/sampler/landmarks/{i}"
            if isinstance(row, SparseRow) != first:
                raise InvalidInput(f"expected landmarks of one form, got another in landmark {i}", pointer)
            if not isinstance(row, SparseRow):
                check_entries(row, input_dim, f"landmark {i}", pointer)
                continue
            if len(row.indices) != len(row.values):
                detail = f"landmark {i} has {len(row.indices)} indices and {len(row.values)} values, not as many"
                raise InvalidInput(detail, pointer)
            rising = np.diff(np.array([-1, *row.indices, input_dim]))
            if (rising <= 0).any():
                raise InvalidInput(
                    f"expected increasing indices below {input_dim} in landmark {i}", f"{pointer}/indices"
                )

    def as_rows(self, input_dim: int) -> PostedRows:
        """Return the landmarks as rows, in the form in which they were posted: dense or sparse."""
        parts = [row for row in self.landmarks if isinstance(row, SparseRow)]
        if not parts:
            return np.array(self.landmarks, np.float64)
        ends = np.cumsum([0, *(len(row.values) for row in parts)])
        values = np.fromiter(chain.from_iterable(row.values for row in parts), np.float64, ends[-1])
        columns = np.fromiter(chain.from_iterable(row.indices for row in parts), np.int64, ends[-1])
        return sparse.csr_array((values, columns, ends), shape=(len(parts), input_dim))
