"""The answer to a request for advice on an index."""

from typing import Annotated, Literal

from pydantic import Field, with_config
from typing_extensions import TypedDict


@with_config(use_attribute_docstrings=True)
class Spread(TypedDict):
    """Distribution of the kernels of pairs."""

    low: float
    """5 % quantile: one pair in twenty is below it."""
    median: float
    """Median."""
    high: float
    """95 % quantile: one pair in twenty is above it."""


@with_config(use_attribute_docstrings=True)
class SimilarityProfile(TypedDict):
    """How similar the rows of a dataset are."""

    neighbours: Spread
    """Kernels of the queries and their k nearest rows."""
    pairs: Spread
    """Kernels of the queries and all rows."""


class Found(TypedDict):
    """Recall of bands, and how many rows they make a search look at."""

    recall: Annotated[float, Field(description="Share of the k nearest rows that agree with the query in a band.")]
    share: Annotated[
        float,
        Field(
            description="Share of all rows that a search looks at: those that do, and as many "
            "others as come into the same bucket by chance."
        ),
    ]


@with_config(use_attribute_docstrings=True)
class Checked(Found):
    """Results of bands of the map's own codes, measured for queries that are not among the rows.

    A query whose buckets have more than a quarter of the rows is compared with all of them.
    """

    recall_standard_error: float
    """Standard error of the mean recall over the queries."""


@with_config(use_attribute_docstrings=True)
class Banding(TypedDict):
    """A way to cut codes into bands, and its results."""

    bands: int
    """Number of bands."""
    rows_per_band: int
    """Number of codes in a band."""
    predicted: Found
    """Mean of 1 - (1 - p^rows_per_band)^bands over the similarities; p is how often a hash agrees."""
    checked: Checked
    """What a check on other rows of the dataset measured."""
    candidates: float
    """Mean number of rows that a search looks at, as measured."""
    recall_of_search: float
    """Recall of a search, which returns the best of the candidates."""
    recall_of_codes: float
    """Recall if a search returns the k candidates whose codes agree most, as with keep=codes."""
    rerank: int | None
    """How many of the candidates whose codes agree most must be compared exactly to reach the requested recall; null
    if none of the numbers tried is enough.
    """
    microseconds: float
    """Time of a search, computed from the measured times of its parts."""
    serves: bool
    """Whether a search safely reaches the recall with no more candidates than allowed."""


@with_config(use_attribute_docstrings=True)
class BandCurve(TypedDict):
    """Results of bands of `rows_per_band` hashes, for several numbers of bands."""

    rows_per_band: int
    """Number of codes in a band."""
    bands: list[int]
    """Numbers of bands; the other lists have one entry for each."""
    predicted: list[Found]
    """Predicted results for each number of bands."""
    checked: list[Found]
    """Measured results for each number of bands, from the map's own codes."""


class ScannedCodes(TypedDict):
    """Results of a scan of codes of one length: the query is compared with the codes of all rows."""

    s: Annotated[int, Field(description="Hashes of a row: the first of the map's.")]
    bits: Annotated[int, Field(description="Of each.")]
    bytes: Annotated[int, Field(description="Of a row.")]
    recall: Annotated[float, Field(description="Where the k rows are taken whose codes agree most.")]
    rerank: Annotated[
        int | None,
        Field(
            description="How many of the rows whose codes agree most have to be compared exactly for the recall that "
            "is wanted; null where none of the numbers tried is enough."
        ),
    ]


@with_config(use_attribute_docstrings=True)
class Scan(ScannedCodes):
    """Results of a scan of the map's full codes, as an index keeps them."""

    microseconds: float
    """Measured time of a search."""
    recall_of_search: float
    """Recall of a search."""
    serves: bool
    """Whether a search safely reaches the requested recall."""
    narrower: list[ScannedCodes]
    """Results of scans with fewer hashes, or fewer bits per hash."""


@with_config(use_attribute_docstrings=True)
class Costs(TypedDict):
    """Times of the parts of a search in nanoseconds, measured on the machine that computed the advice."""

    search: float
    """Fixed time of a search, excluding the other parts."""
    scanned_row: float
    """Time to compare one row in a scan."""
    candidate: float
    """Time per row found in a band and compared."""
    band: float
    """Time to look up one band."""


class Chosen(TypedDict):
    """Bands to create an index with."""

    bands: int
    """Number of bands."""
    rows_per_band: int
    """Number of codes in a band."""


@with_config(use_attribute_docstrings=True)
class Advice(TypedDict):
    """How to search the rows of a dataset by codes of a map."""

    rows: int
    """Number of rows searched: all rows of the dataset except the queries."""
    queries: int
    """Number of rows of the dataset used as queries."""
    k: int
    """Number of vectors that each search returns."""
    recall: float
    """Share of the true nearest neighbours that searches must find."""
    keep: Literal["codes", "vectors"]
    """Whether the index keeps codes only or vectors too, as asked."""
    candidates: int
    """Maximum mean number of rows that a search by bands may look at."""
    s: int
    """Number of hashes per row."""
    bits: int
    """Number of bits of each hash that bands use."""
    similarities: SimilarityProfile
    """Similarities between rows of the dataset."""
    bandings: list[Banding]
    """For each number of rows per band: the fewest bands that reach the recall, or all available bands."""
    curves: list[BandCurve]
    """Measured recall of bands, for each number of rows per band."""
    scan: Scan
    """Measured recall and cost of a scan of all codes."""
    costs: Costs
    """Costs that the expected times are computed from."""
    best: Chosen | Literal["scan"]
    """Recommended bands, or `scan` to compare all codes."""
    serves: bool
    """Whether searches by what is best safely reach the recall."""
    why: str
    """Reason for the recommendation."""
