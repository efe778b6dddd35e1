"""The samplers of the family of landmark maps, and how landmarks are frozen.

They are rows of a dataset that a method selects, or rows that the client has; frozen as a matrix or, where they are
sparse, as the three parts of one.
"""

from enum import StrEnum
from itertools import chain
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Discriminator, Field, Tag
from scipy import sparse

from app.core.arrays import PostedRows, Rows
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel
from app.core.maps.terms import Arrays, FrozenArray
from app.core.model import Frozen, check_entries
from app.core.samplers.base import AnySampler
from app.core.samplers.learning import Dataset

_NYSTROM = "Williams and Seeger (2001), Using the Nyström method to speed up kernel machines"
# Recommendations try no more clusters: with 1,024 of them on letter, cpu, satimage and car the error was .99 to 1.13 of
# rp_cholesky's, with 256 it was .74 to 1.42 of it.
_MOST_CLUSTERS = 512


class Selection(StrEnum):
    """How rows of a dataset become landmarks."""

    rp_cholesky = "rp_cholesky"
    k_means = "k_means"
    leverage = "leverage"
    uniform = "uniform"


class Landmarks(AnySampler):
    """s landmarks L from a dataset: features k(x, L) V Λ^(−1/2), where k(L, L) = V Λ Vᵀ.

    A tenth of the rows, at most 1,000, is held out: the report of the map tells the error on rows it has not seen.
    """

    source = (
        f"{_NYSTROM}; Chen, Epperly, Tropp, Webber (2023), Randomly pivoted Cholesky, algorithm 1; Arthur and "
        "Vassilvitskii (2007), k-means++; Alaoui and Mahoney (2015), ridge leverage scores"
    )
    choose_when = (
        "With rows at hand that are like those to come, and any kernel: at few columns the error is a fraction of that "
        "of Fourier features (satimage, 128 columns: .002, orthogonal .16). A row costs s·(input_dim + s) products."
    )
    limits = ("a dataset of input_dim columns; of fewer distinct rows than s, each is a landmark",)

    kind: Literal["landmarks"]
    selection: Annotated[
        Selection,
        Field(
            strict=False,
            description="rp_cholesky: each with probability proportional to what those before it leave of k(x, x). "
            "k_means: centres of clusters. leverage: by ridge leverage scores. uniform: any row alike.",
        ),
    ] = Selection.rp_cholesky
    dataset: Dataset = Field(description="Name of the dataset whose rows become landmarks.")
    rows: Annotated[int, Field(ge=1)] | None = Field(
        None,
        description="Rows of the dataset to learn from, a sample by the seed; all but those held out if not given.",
    )

    @classmethod
    def tried(cls, kernel: AnyKernel, input_dim: int, most: int, dataset: str | None) -> tuple[Self, ...]:
        """Landmarks from the dataset by the methods with the least errors at so many of them, for every kernel."""
        if dataset is None:
            return ()
        best = [Selection.rp_cholesky] + [Selection.k_means] * (most <= _MOST_CLUSTERS)
        return tuple(cls(kind="landmarks", dataset=dataset, selection=selection) for selection in best)

    @property
    def learns(self) -> bool:
        """Yes: it looks at rows."""
        return True


class SparseRow(Frozen):
    """A row by the entries that are not 0."""

    indices: tuple[Annotated[int, Field(ge=0)], ...] = Field(fail_fast=True, description="Columns, increasing.")
    values: tuple[float, ...] = Field(fail_fast=True, description="One for each of the indices.")


Row = Annotated[
    Annotated[tuple[float, ...], Field(fail_fast=True), Tag("dense")] | Annotated[SparseRow, Tag("sparse")],
    Discriminator(lambda row: "dense" if isinstance(row, list | tuple) else "sparse"),
]


class UploadedLandmarks(AnySampler):
    """Landmarks L brought along: features k(x, L) V Λ^(−1/2), where k(L, L) = V Λ Vᵀ."""

    source = _NYSTROM
    choose_when = "For landmarks that were chosen elsewhere, for instance by a model that stays the same."
    limits = ("input_dim entries in each landmark", "all of them lists of numbers, or all of them sparse rows")
    untried = "It has landmarks of the client's own."

    kind: Literal["uploaded_landmarks"]
    landmarks: Annotated[
        tuple[Row, ...],
        Field(
            min_length=1,
            fail_fast=True,
            description="Lists of input_dim numbers, or objects of indices and values, in the unit of the vectors.",
        ),
    ]


# Of all landmarks together: entries of sparse ones, and of dense ones, which come from a dataset or a request.
_MOST_ENTRIES, _MOST_DENSE_ENTRIES = 1 << 24, 1 << 26


def frozen_landmarks(s: int, input_dim: int, dtype: np.dtype[np.floating]) -> dict[str, FrozenArray]:
    """The arrays that s landmarks may be frozen as, each as large as it can become.

    Numbers of columns, and where rows end, are float64, which holds them exactly.
    """
    entries, of_columns = min(s * input_dim, _MOST_ENTRIES), np.dtype(np.float64)
    rows = min(s, _MOST_DENSE_ENTRIES // input_dim)  # none of vectors so long that only sparse ones are taken
    return {
        "landmarks": FrozenArray((rows, input_dim), dtype),
        "landmark_values": FrozenArray((entries,), dtype),
        "landmark_columns": FrozenArray((entries,), of_columns),
        "landmark_ends": FrozenArray((s + 1,), of_columns),
    }


def check_made_dense(s: int, input_dim: int, kernel: AnyKernel, pointer: str) -> None:
    """Raise InvalidInput for more landmarks than there is room for, where the kernel makes sparse rows dense."""
    if not kernel.compares_sparse and s * input_dim > _MOST_DENSE_ENTRIES:
        most = _MOST_DENSE_ENTRIES // input_dim
        takes = f"{s} came; for vectors of {input_dim} entries {most} are the most" if most else "none fits"
        raise InvalidInput(f"kernel {kernel.kind} compares landmarks in their dense form: {takes}", pointer)


def landmark_arrays(landmarks: Rows, pointer: str) -> Arrays:
    """The landmarks (s, d) as they are frozen; InvalidInput if they have too many entries."""
    size = landmarks.size if isinstance(landmarks, np.ndarray) else landmarks.nnz
    most = _MOST_DENSE_ENTRIES if isinstance(landmarks, np.ndarray) else _MOST_ENTRIES
    if size > most:
        raise InvalidInput(f"the landmarks have {size} entries; {most} are the most: take a smaller s", pointer)
    if isinstance(landmarks, np.ndarray):
        return {"landmarks": landmarks}
    return {
        "landmark_values": landmarks.data,
        "landmark_columns": landmarks.indices.astype(np.float64),
        "landmark_ends": landmarks.indptr.astype(np.float64),
    }


def opened_landmarks(arrays: Arrays, input_dim: int) -> Rows:
    """The landmarks, (s, d), from their frozen arrays."""
    if "landmarks" in arrays:
        return arrays["landmarks"]
    indices, ends = (arrays[name].astype(np.int64) for name in ("landmark_columns", "landmark_ends"))
    return sparse.csr_array((arrays["landmark_values"], indices, ends), shape=(len(ends) - 1, input_dim))


def check_uploaded(sampler: UploadedLandmarks, input_dim: int) -> None:
    """Raise InvalidInput for landmarks in two forms, of another width, or with columns out of order."""
    first = isinstance(sampler.landmarks[0], SparseRow)
    for i, row in enumerate(sampler.landmarks):
        pointer = f"/sampler/landmarks/{i}"
        if isinstance(row, SparseRow) != first:
            raise InvalidInput(f"landmark {i} has another form than those before it; one form is wanted", pointer)
        if not isinstance(row, SparseRow):
            check_entries(row, input_dim, f"landmark {i}", pointer)
            continue
        if len(row.indices) != len(row.values):
            detail = f"landmark {i} has {len(row.indices)} indices and {len(row.values)} values; as many are wanted"
            raise InvalidInput(detail, pointer)
        rising = np.diff(np.array([-1, *row.indices, input_dim]))
        if (rising <= 0).any():
            raise InvalidInput(
                f"indices of landmark {i} are not increasing and below {input_dim}", f"{pointer}/indices"
            )


def uploaded_rows(sampler: UploadedLandmarks, input_dim: int) -> PostedRows:
    """The landmarks as rows, as they came: dense, or sparse."""
    parts = [row for row in sampler.landmarks if isinstance(row, SparseRow)]
    if not parts:
        return np.array(sampler.landmarks, np.float64)
    ends = np.cumsum([0, *(len(row.values) for row in parts)])
    values = np.fromiter(chain.from_iterable(row.values for row in parts), np.float64, ends[-1])
    columns = np.fromiter(chain.from_iterable(row.indices for row in parts), np.int64, ends[-1])
    return sparse.csr_array((values, columns, ends), shape=(len(parts), input_dim))
