"""How to search the rows of a dataset by codes of a map: predicted from similarities, and checked by hashing."""

from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from app.core.arrays import Matrix, Rows
from app.core.datasets import held_out, sampled
from app.core.diagnostics import Finding
from app.core.errors import InvalidInput
from app.core.indexes.advice_drawing import drawing
from app.core.indexes.answer import Advice, Costs, Scan, ScannedCodes, SimilarityProfile, Spread
from app.core.indexes.band_curves import FirstBands, first_bands
from app.core.indexes.choosing import Bands, Wishes, chosen
from app.core.indexes.costs import measured
from app.core.indexes.equal_runs import HashBytes
from app.core.indexes.hashed_rows import hashed, law_of
from app.core.indexes.options import compared_exactly
from app.core.indexes.scan_ranks import found_by_depth, most_depth, ranks
from app.core.indexes.true_neighbours import Neighbours, block_bytes, true_neighbours
from app.core.maps import FeatureMap
from app.core.model import NAME_PATTERN, Frozen
from app.core.progress import Parts, Pause, Progress, begin_anew

# Queries, and rows that the share of candidates is counted on: a mean over a million pairs.
_MOST_QUERIES, _MOST_SAMPLED = 500, 2000
# Of a dataset one row in so many is a query at the most.
_ROWS_PER_QUERY = 5
_LEAST_QUERIES = 20
# Without a budget, a search of bands may look at one row in so many: those lie anywhere in memory.
_ROWS_PER_CANDIDATE = 10
# Fractions of the hashes that shorter codes have.
_FRACTIONS = (1, 2, 4, 8)
_SEED = 0
_BYTES_PER_CODE = 4
_BYTES_PER_PLACE = 64


class AdviceOptions(Frozen):
    """What an index is wanted for."""

    map: Annotated[str, Field(pattern=NAME_PATTERN, description="The map whose codes the index would keep.")]
    dataset: Annotated[
        str, Field(pattern=NAME_PATTERN, description="Rows like those that the index would hold, best all of them.")
    ]
    k: Annotated[int, Field(ge=1, le=100, description="How many rows a search is to find.")] = 10
    recall: Annotated[
        float, Field(gt=0, lt=1, description="Share of the k most similar rows that a search is to find, on average.")
    ] = 0.95
    keep: Annotated[
        Literal["codes", "vectors"],
        Field(
            description="What the index would keep. With `vectors` the best candidates are compared exactly, five for "
            "each that is wanted and at least fifty."
        ),
    ] = "vectors"
    candidates: (
        Annotated[
            int,
            Field(
                ge=1,
                le=1 << 40,
                description="Most rows of the dataset that a search of bands may look at, on average; a tenth of them "
                "if not given.",
            ),
        ]
        | None
    ) = None


def check(feature_map: FeatureMap, n: int, k: int) -> None:
    """Raise InvalidInput for a map without codes, and for fewer rows than tell anything."""
    law_of(feature_map)
    least = max(_ROWS_PER_QUERY * _LEAST_QUERIES, 2 * k)
    if n < least:
        raise InvalidInput(f"the dataset has {n} rows; advice for {k} neighbours wants {least}", "/vectors")


def advice_bytes(feature_map: FeatureMap, rows: Rows, k: int) -> int:
    """The most memory that `advised` takes beside the map and the rows."""
    n = int(rows.shape[0])
    q = _count_of_queries(n)
    of_places = _BYTES_PER_PLACE * q * (most_depth(k, n) + feature_map.n_frequencies)
    copies = rows.nbytes if isinstance(rows, np.ndarray) else rows.data.nbytes + rows.indices.nbytes
    return _BYTES_PER_CODE * n * feature_map.n_frequencies + block_bytes(q) + of_places + copies


def advised(
    feature_map: FeatureMap, rows: Rows, options: AdviceOptions, progress: Progress, threads: int
) -> Finding[Advice]:
    """Search by bands and by scan, for some rows among the others; nothing but the times hangs on the machine.

    InvalidInput for rows without codes.
    """
    feature_map.check_rows(rows, "/vectors")
    return _Advising(feature_map, rows, options, progress, threads).finding()


def _count_of_queries(n: int) -> int:
    return min(_MOST_QUERIES, n // _ROWS_PER_QUERY)


class _Advising:
    """The parts of the work, each done once: what an earlier attempt has finished is not done again."""

    def __init__(
        self, feature_map: FeatureMap, rows: Rows, options: AdviceOptions, progress: Progress, threads: int
    ) -> None:
        searched, apart = held_out(rows.shape[0], _count_of_queries(rows.shape[0]), _SEED)
        self._keep = options.keep
        self._map, self._law = feature_map, law_of(feature_map)
        self._rows, self._queries = rows[searched], rows[apart]
        self._n, self._s = len(searched), feature_map.n_frequencies
        budget = options.candidates or max(options.k, self._n // _ROWS_PER_CANDIDATE)
        taken = options.k if options.keep == "codes" else min(self._n, compared_exactly(options.k))
        self._wishes = Wishes(options.k, options.recall, budget, len(apart), taken)
        self._parts, self._progress, self._threads = Parts(progress), progress, threads
        self._depth = most_depth(options.k, self._n)
        self._sample = sampled(self._n, min(self._n, _MOST_SAMPLED), _SEED + 1)
        self._step = 0
        self._both: tuple[HashBytes, HashBytes] | None = None
        # The map's own codes are the first.
        self._codes = [
            (s, bits)
            for s in dict.fromkeys(max(1, self._s // fraction) for fraction in _FRACTIONS)
            for bits in self._law.widths
        ]

    def finding(self) -> Finding[Advice]:
        """The advice and its picture."""
        near = Neighbours(**self._arrays("neighbours", self._neighbours))
        first = FirstBands(**self._arrays("bands", partial(self._first_bands, near)))
        places = [
            self._arrays(f"codes {s} {bits}", partial(self._ranks, near, s, bits))["places"] for s, bits in self._codes
        ]
        costs: Costs = self._once("costs", self._costs)
        bands = Bands(self._law, near, first, len(self._sample), places[0], self._depth)
        shares = [found_by_depth(one, self._depth) for one in places]
        scan = self._scan(shares, costs)
        bandings = bands.bandings(self._wishes, costs)
        best, why = chosen(bandings, scan, self._wishes, self._n)
        answer = Advice(
            rows=self._n,
            queries=self._queries.shape[0],
            k=self._wishes.k,
            recall=self._wishes.recall,
            keep=self._keep,
            candidates=self._wishes.candidates,
            s=self._s,
            bits=self._law.bits,
            similarities=_profile(near),
            bandings=bandings,
            curves=bands.curves(),
            scan=scan,
            costs=costs,
            best="scan" if best is None else best,
            why=why,
        )
        return Finding(answer, drawing(answer, near, [one.mean(axis=0) for one in shares], self._codes))

    def _once(self, name: str, compute: Any) -> Any:
        steps = len(self._codes) + 3
        self._progress.report(self._step, steps)
        self._step += 1
        return self._parts.once(name, compute)

    def _arrays(self, name: str, compute: Any) -> dict[str, Any]:
        return {key: np.asarray(value) for key, value in self._once(name, compute).items()}

    def _neighbours(self, progress: Progress) -> dict[str, Any]:
        return true_neighbours(self._map, self._queries, self._rows, self._wishes.k, progress)._asdict()

    def _first_bands(self, near: Neighbours, progress: Progress) -> dict[str, Any]:
        queries, rows = self._hashed(progress)
        pause = _pausing(progress)
        return first_bands(queries, rows[near.slots], rows[self._sample], self._threads, pause)._asdict()

    def _ranks(self, near: Neighbours, s: int, bits: int, progress: Progress) -> dict[str, Any]:
        queries, rows = self._hashed(progress)
        pause = _pausing(progress)
        some = ranks(queries[:, :s], rows[:, :s], bits, near.slots, self._depth, self._threads, pause)
        return {"places": some}

    def _costs(self, progress: Progress) -> Costs:
        queries, rows = self._hashed(progress)
        return measured(queries, rows, self._law.bits, self._wishes.taken, _SEED, self._threads)

    def _hashed(self, progress: Progress) -> tuple[HashBytes, HashBytes]:
        """Codes of the queries and of the rows, made when they are first needed by a part that is not finished."""
        pause = _pausing(progress)
        pause()
        if self._both is None:
            self._both = hashed(self._map, self._queries, pause), hashed(self._map, self._rows, pause)
        return self._both

    def _scan(self, shares: list[Matrix], costs: Costs) -> Scan:
        every = [
            ScannedCodes(
                s=s,
                bits=bits,
                bytes=-(-s * bits // 8),
                recall=float(of_codes[:, self._wishes.k - 1].mean()),
                rerank=self._wishes.rerank(of_codes),
            )
            for (s, bits), of_codes in zip(self._codes, shares, strict=True)
        ]
        return Scan(
            **every[0],
            microseconds=(costs["search"] + self._n * costs["scanned_row"]) / 1000,
            recall_of_search=float(shares[0][:, self._wishes.taken - 1].mean()),
            serves=bool(self._wishes.is_met(shares[0][:, self._wishes.taken - 1 :][:, :1]).size),
            narrower=every[1:],
        )


def _pausing(progress: Progress) -> Pause:
    """Pauses of a part that is begun anew where it was not finished."""
    return lambda: progress.checkpoint(begin_anew)


def _profile(near: Neighbours) -> SimilarityProfile:
    low, median, high = np.quantile(near.similarities, [0.05, 0.5, 0.95]).tolist()
    cumulated = near.histogram.cumsum() / near.histogram.sum()
    of_pairs = [float(near.middles[np.searchsorted(cumulated, share)]) for share in (0.05, 0.5, 0.95)]
    return SimilarityProfile(
        neighbours=Spread(low=low, median=median, high=high),
        pairs=Spread(low=of_pairs[0], median=of_pairs[1], high=of_pairs[2]),
    )
