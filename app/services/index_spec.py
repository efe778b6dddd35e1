"""What a client asks of an index, and its record."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, model_validator

from app.core.errors import InvalidInput
from app.core.indexes.banding import Banding
from app.core.indexes.image import Layout
from app.core.model import NAME_PATTERN, Frozen
from app.store.indexes import BLOCK, IndexManifest, IndexState

_MOST_CODES = 1 << 16

Warnings = Annotated[
    list[str] | None, Field(description="There where something is doubtful, as in the header Bochner-Warning.")
]


class Target(Frozen):
    """What searches of an index are to find, for bands to be chosen by."""

    recall: Annotated[
        float,
        Field(gt=0, lt=1, description="Share of the k most similar vectors that a search is to find, on average."),
    ]
    k: Annotated[int, Field(ge=1, le=100, description="How many vectors a search is to find.")]
    dataset: Annotated[
        str, Field(pattern=NAME_PATTERN, description="Rows like those that the index will hold, best all of them.")
    ]


class AskedIndex(Frozen):
    """An index to be made: over which map, how it is searched, what it keeps."""

    map: Annotated[str, Field(pattern=NAME_PATTERN, description="Name of the map whose codes it keeps.")]
    bands: (
        Annotated[
            int,
            Field(
                ge=1,
                le=_MOST_CODES,
                description="A search looks at the vectors that agree with the query in all codes of one of so many "
                "bands. Without bands it looks at the codes of all vectors.",
            ),
        ]
        | None
    ) = None
    rows_per_band: (
        Annotated[
            int,
            Field(
                ge=1,
                le=_MOST_CODES,
                description="Codes of a band; bands · rows_per_band are at most those of a vector.",
            ),
        ]
        | None
    ) = None
    target: (
        Annotated[
            Target,
            Field(
                description="In the place of bands: those that have the recall in the least time, as "
                "`POST /v1/indexes/advice` finds them; none, where comparing all codes takes less."
            ),
        ]
        | None
    ) = None
    keep: Annotated[
        Literal["codes", "vectors"],
        Field(
            description="`codes`: similarities are estimated. `vectors`: these are kept too, and the best candidates "
            "of a search are compared exactly."
        ),
    ] = "codes"

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.bands is None) != (self.rows_per_band is None):
            missing = "bands" if self.bands is None else "rows_per_band"
            raise InvalidInput("bands and rows_per_band come together, or neither does", f"/{missing}")
        if self.target is not None and self.bands is not None:
            raise InvalidInput("bands and a target came; the target chooses the bands", "/target")
        return self

    @property
    def banding(self) -> Banding | None:
        """The bands that were asked for."""
        if self.bands is None or self.rows_per_band is None:
            return None
        return Banding(self.bands, self.rows_per_band)

    def check(self, s: int) -> None:
        """Raise InvalidInput for bands of more codes than a vector has."""
        wanted = (self.bands or 0) * (self.rows_per_band or 0)
        if wanted > s:
            detail = f"{self.bands} bands of {self.rows_per_band} codes are {wanted}; vectors of the map have {s}"
            raise InvalidInput(detail, "/bands")


class IndexRecord(BaseModel):
    """An index."""

    name: str
    map: str = Field(description="Name of the map whose codes it keeps.")
    keep: Literal["codes", "vectors"]
    banding: Literal["bands", "scan"] = Field(
        description="`bands`: a search looks at the vectors that share a band with the query. `scan`: at all codes."
    )
    bands: int | None = Field(description="Number of bands; null for a scan.")
    rows_per_band: int | None = Field(description="Codes of a band; null for a scan.")
    s: int = Field(description="Codes of a vector.")
    bits: int = Field(description="Of a code.")
    size: int = Field(description="Vectors in it.")
    bytes: int = Field(description="Size of what is kept.")
    created_at: datetime
    ttl: int | None = Field(
        description="Seconds that it lives after its last use: a search or a change. null for ever."
    )
    expires_at: datetime | None = Field(
        description="When it is deleted by itself if it is not used before; null for never. A use moves it on where "
        "more than a sixteenth of `ttl` has passed."
    )


class IndexPage(BaseModel):
    """Indexes in order of their names."""

    indexes: list[IndexRecord]
    next: str | None = Field(description="Cursor of the next page, null on the last one.")


class UpsertAnswer(BaseModel):
    """What has become of a batch of vectors."""

    upserted: int = Field(description="How many vectors it had, new and replaced ones.")
    warnings: Warnings = None


class SearchResult(BaseModel):
    """What is found for one query, best first."""

    ids: list[int | str]
    similarity: list[float] = Field(description="Estimated from codes. An estimate may be below 0.")
    standard_error: list[float] = Field(
        description="Of the estimates, by the rate at which codes agree. It is 0 where all agree or none does, which "
        "is no certainty. Of the best of many, estimates are too high: that is not in it."
    )
    exact: list[float] | None = Field(None, description="Of the vectors themselves; only where these are compared.")
    candidates: int = Field(description="How many vectors it was compared with.")


class SearchAnswer(BaseModel):
    """What a search has found."""

    results: list[SearchResult] = Field(description="One for each query, in their order.")
    warnings: Warnings = None


def record(manifest: IndexManifest, state: IndexState) -> IndexRecord:
    """The record of an index that holds so much."""
    return IndexRecord(
        name=manifest.name,
        map=manifest.map.name,
        keep=manifest.keep,
        banding="scan" if manifest.bands is None else "bands",
        bands=manifest.bands,
        rows_per_band=manifest.rows_per_band,
        s=manifest.s,
        bits=manifest.bits,
        size=state.size,
        bytes=state.nbytes,
        created_at=manifest.created_at,
        ttl=manifest.ttl,
        expires_at=manifest.expires_at,
    )


def layout(manifest: IndexManifest) -> Layout:
    """How an index keeps its vectors."""
    banding = None
    if manifest.bands is not None and manifest.rows_per_band is not None:
        banding = Banding(manifest.bands, manifest.rows_per_band)
    return Layout(manifest.s, manifest.bits, banding, BLOCK)
