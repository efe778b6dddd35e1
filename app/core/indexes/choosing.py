"""Which bands serve, what they cost, and whether a scan of all codes is the better search."""

from typing import NamedTuple

import numpy as np

from app.core.arrays import Matrix, Whole
from app.core.indexes.answer import BandCurve, Banding, Checked, Chosen, Costs, Found, Scan
from app.core.indexes.band_curves import FirstBands, predicted, tried
from app.core.indexes.banding import CHANCE
from app.core.indexes.hashed_rows import Law
from app.core.indexes.scan_ranks import found_by_depth
from app.core.indexes.true_neighbours import Neighbours

# A recall is had if it is so many standard errors above the one wanted: of others, one in a hundred would do worse.
_SAFE = 2.326
_POINTS_OF_A_CURVE = 12


class Wishes(NamedTuple):
    """What is asked of an index."""

    k: int
    recall: float
    candidates: int
    """Most rows that a search may look at."""
    queries: int
    taken: int
    """How many of those whose codes agree most are compared exactly, or taken as they are."""

    def is_met(self, shares: Matrix) -> Whole:
        """At which of some places the recalls of the queries, (q, places), are safely as large as wanted."""
        return np.flatnonzero(shares.mean(axis=0) - _SAFE * self.error(shares) >= self.recall)

    def error(self, shares: Matrix) -> Matrix:
        """The standard errors of mean recalls, and the least that so many queries tell: one neighbour more or less."""
        error: Matrix = np.hypot(shares.std(axis=0) / np.sqrt(self.queries), 1 / (self.queries * self.k))
        return error

    @property
    def can_be_told(self) -> bool:
        """Whether the recall is safely had where all queries find all."""
        return bool(self.is_met(np.ones((self.queries, 1))).size)

    def rerank(self, shares: Matrix) -> int | None:
        """How many rows have to be compared exactly, of the recalls of queries by their number, (q, depth)."""
        enough = self.is_met(shares)
        return max(self.k, int(enough[0]) + 1) if enough.size else None


class Bands:
    """What bands of a map's codes find, as predicted and as checked."""

    def __init__(self, law: Law, near: Neighbours, first: FirstBands, sampled: int, places: Whole, depth: int) -> None:
        self._near, self._first, self._places, self._depth = near, first, places, depth
        self._pairs = len(places) * sampled
        self._n = int(near.histogram.sum()) // len(places)
        self._near_rates = law.rates(near.similarities.reshape(-1))
        some = np.flatnonzero(near.histogram)
        self._rates, self._weights = law.rates(near.middles[some]), near.histogram[some].astype(np.float64)
        self.s = first.others.shape[1]

    def bandings(self, wishes: Wishes, costs: Costs) -> list[Banding]:
        """For each number of hashes of a band the fewest bands that have the recall; all there are, if none has."""
        return [self._banding(number, r, wishes, costs) for number, r in enumerate(tried(self.s))]

    def curves(self) -> list[BandCurve]:
        """For each number of hashes of a band, what some numbers of bands find."""
        found = []
        for number, r in enumerate(tried(self.s)):
            most = self.s // r
            bands = np.unique(np.geomspace(1, most, min(most, _POINTS_OF_A_CURVE)).round().astype(int)).tolist()
            recalls = self._recalls(self._first.neighbours[number]).mean(axis=0)
            checked = [Found(recall=float(recalls[b - 1]), share=self._share(number, b)) for b in bands]
            found.append(
                BandCurve(
                    rows_per_band=r, bands=bands, predicted=[self._predicted(b, r) for b in bands], checked=checked
                )
            )
        return found

    def _banding(self, number: int, r: int, wishes: Wishes, costs: Costs) -> Banding:
        first = self._first.neighbours[number]
        # A neighbour that stands far behind by its codes is none that a search finds.
        enough = wishes.is_met(self._recalls(np.where(self._places < wishes.taken, first, -1))[:, : self.s // r])
        bands = int(enough[0]) + 1 if enough.size else self.s // r
        recalls, share = self._recalls(first)[:, bands - 1], self._share(number, bands)
        is_candidate = (first >= 0) & (first < bands)
        by_depth = found_by_depth(np.where(is_candidate, self._places, self._depth), self._depth)
        deep = np.flatnonzero(by_depth.mean(axis=0) >= wishes.recall)
        candidates = share * self._n
        in_order = self._n * float((self._first.wholes[number] < bands).mean())
        nanoseconds = costs["search"] + bands * costs["band"] + in_order * costs["scanned_row"]
        nanoseconds += max(0.0, candidates - in_order) * costs["candidate"]
        return Banding(
            bands=bands,
            rows_per_band=r,
            predicted=self._predicted(bands, r),
            checked=Checked(
                recall=float(recalls.mean()),
                recall_standard_error=float(wishes.error(recalls)),
                share=share,
            ),
            candidates=candidates,
            recall_of_search=float(by_depth[:, wishes.taken - 1].mean()),
            recall_of_codes=float(by_depth[:, wishes.k - 1].mean()),
            rerank=max(wishes.k, int(deep[0]) + 1) if deep.size else None,
            microseconds=nanoseconds / 1000,
            serves=bool(enough.size and candidates <= wishes.candidates),
        )

    def _recalls(self, first: Whole) -> Matrix:
        """The share of each query's neighbours that agree in one of the first 1, 2, … s bands, (q, s)."""
        # What agrees nowhere stands behind all.
        return found_by_depth(np.where(first < 0, self.s, first), self.s)

    def _share(self, number: int, bands: int) -> float:
        return _looked_at(float(self._first.others[number, :bands].sum() / self._pairs), bands)

    def _predicted(self, bands: int, r: int) -> Found:
        every = np.ones(len(self._near_rates))
        return Found(
            recall=predicted(self._near_rates, every, bands, r),
            share=_looked_at(predicted(self._rates, self._weights, bands, r), bands),
        )


def _looked_at(share: float, bands: int) -> float:
    """The share of rows that a search looks at, of which so many agree in a band: buckets hold some others too."""
    return 1 - (1 - share) * (1 - CHANCE) ** bands


def chosen(bandings: list[Banding], scan: Scan, wishes: Wishes, n: int) -> tuple[Chosen | None, str]:
    """The bands to take, None for the scan, and why."""
    serving = [one for one in bandings if one["serves"]]
    scanned = f"a scan takes {scan['microseconds']:.0f} microseconds"
    if scan["rerank"] is not None:
        scanned += f", and finds them among the {scan['rerank']} rows whose codes agree most"
    if not serving:
        return None, f"{_none_serves(bandings, wishes, n)}; {scanned}{_no_scan(scan, wishes)}"
    best = min(serving, key=lambda one: one["microseconds"])
    called = f"{best['bands']} bands of {best['rows_per_band']} rows"
    looked = f"look at {best['checked']['share']:.2%} of the rows in {best['microseconds']:.0f} microseconds"
    if scan["serves"] and scan["microseconds"] <= best["microseconds"]:
        return None, f"{scanned}; {called}, the best that serve, {looked}"
    return Chosen(bands=best["bands"], rows_per_band=best["rows_per_band"]), f"{called} {looked}; {scanned}"


def _none_serves(bandings: list[Banding], wishes: Wishes, n: int) -> str:
    if not wishes.can_be_told:
        return f"{wishes.queries} queries do not tell a recall of {wishes.recall}, whatever they find: take more rows"
    reaching = [one for one in bandings if _has_it(one, wishes)]
    if not reaching:
        return f"no bands of these codes have a recall of {wishes.recall}"
    least = min(reaching, key=lambda one: one["checked"]["share"])
    return (
        f"no bands of these codes have a recall of {wishes.recall} at {wishes.candidates / n:.2%} of the rows: "
        f"{least['bands']} bands of {least['rows_per_band']} rows look at {least['checked']['share']:.2%}"
    )


def _has_it(one: Banding, wishes: Wishes) -> bool:
    return one["recall_of_search"] - _SAFE * one["checked"]["recall_standard_error"] >= wishes.recall


def _no_scan(scan: Scan, wishes: Wishes) -> str:
    if scan["serves"] or not wishes.can_be_told:
        return ""
    of_codes = ", or keep vectors" if wishes.taken == wishes.k else ""
    return f", but these codes are too short for a recall of {wishes.recall}: take a map of more hashes{of_codes}"
