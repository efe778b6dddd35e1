"""Advice on how to search a dataset's rows by codes of a map: predicted from similarities, and checked by hashing."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from app.core.arrays import Matrix, Rows, Whole
from app.core.datasets import held_out, sample_rows
from app.core.diagnostics import Finding
from app.core.drawing import Curve, Drawing, Histogram, Mark, Panel, Star
from app.core.errors import InvalidInput
from app.core.hashing.code_laws import CodeLaw
from app.core.indexes import hashed_rows
from app.core.indexes.answer import Advice, BandCurve, Banding, Chosen, Costs, Found, Scan, ScannedCodes, Spread
from app.core.indexes.banding import CHANCE, order_of_codes
from app.core.indexes.hashed_rows import FirstBands, HashBytes, Neighbours
from app.core.indexes.options import compared_exactly
from app.core.maps import FeatureMap
from app.core.model import NAME_PATTERN, Frozen
from app.core.progress import Parts, Pause, Progress, begin_anew

# A recall is safely reached if the measured mean is this many standard errors above it: 99 % confidence.
_SAFE = 2.326
_POINTS_OF_A_CURVE = 12


class Wishes(NamedTuple):
    """Requirements for an index."""

    k: int
    recall: float
    candidates: int
    """Most rows that a search may look at."""
    queries: int
    taken: int
    """Number of rows whose codes agree most that a search compares exactly, or returns if it keeps codes only."""

    def is_met(self, shares: Matrix) -> Whole:
        """Return the columns of the queries' recalls, (q, places), whose mean safely reaches the requested recall."""
        return np.flatnonzero(shares.mean(axis=0) - _SAFE * self.error(shares) >= self.recall)

    def error(self, shares: Matrix) -> Matrix:
        """Return standard errors of mean recalls, combined with the resolution of the queries: one neighbour."""
        error: Matrix = np.hypot(shares.std(axis=0) / np.sqrt(self.queries), 1 / (self.queries * self.k))
        return error

    @property
    def can_be_told(self) -> bool:
        """Whether there are enough queries: whether the recall is safely reached if all of them find all."""
        return bool(self.is_met(np.ones((self.queries, 1))).size)

    def rerank(self, shares: Matrix) -> int | None:
        """Return how many rows to compare exactly, given recalls by that number, (q, depth); None if no number does."""
        enough = self.is_met(shares)
        return max(self.k, int(enough[0]) + 1) if enough.size else None


class Bands:
    """Recalls and shares of candidates of bands of a map's codes, as predicted and as checked."""

    def __init__(
        self, law: CodeLaw, near: Neighbours, first: FirstBands, sampled: int, places: Whole, depth: int
    ) -> None:
        self._near, self._first, self._places, self._depth = near, first, places, depth
        self._pairs = len(places) * sampled
        self._n = int(near.histogram.sum()) // len(places)
        self._near_rates = law.rates(near.similarities.reshape(-1))
        some = np.flatnonzero(near.histogram)
        self._rates, self._weights = law.rates(near.middles[some]), near.histogram[some].astype(np.float64)
        self.s = first.others.shape[1]

    def bandings(self, wishes: Wishes, costs: Costs) -> list[Banding]:
        """Return, for each number of hashes per band, the fewest bands that reach the recall, or all if none does."""
        return [self._banding(number, r, wishes, costs) for number, r in enumerate(hashed_rows.candidate_sizes(self.s))]

    def curves(self) -> list[BandCurve]:
        """Return, for each number of hashes per band, the results of some numbers of bands."""
        found = []
        for number, r in enumerate(hashed_rows.candidate_sizes(self.s)):
            most = self.s // r
            bands = np.unique(np.geomspace(1, most, min(most, _POINTS_OF_A_CURVE)).round().astype(int)).tolist()
            recalls = self._recalls(self._first.neighbours[number]).mean(axis=0)
            checked = [Found(recall=float(recalls[b - 1]), share=self._share(number, b)) for b in bands]
            predictions = [self._predict(b, r) for b in bands]
            found.append(BandCurve(rows_per_band=r, bands=bands, predicted=predictions, checked=checked))
        return found

    def _banding(self, number: int, r: int, wishes: Wishes, costs: Costs) -> Banding:
        first = self._first.neighbours[number]
        # A search does not find a neighbour whose codes rank it behind the rows that are taken.
        enough = wishes.is_met(self._recalls(np.where(self._places < wishes.taken, first, -1))[:, : self.s // r])
        bands = int(enough[0]) + 1 if enough.size else self.s // r
        recalls, share = self._recalls(first)[:, bands - 1], self._share(number, bands)
        is_candidate = (first >= 0) & (first < bands)
        by_depth = hashed_rows.found_by_depth(np.where(is_candidate, self._places, self._depth), self._depth)
        deep = np.flatnonzero(by_depth.mean(axis=0) >= wishes.recall)
        mean, error = float(recalls.mean()), float(wishes.error(recalls))
        candidates = share * self._n
        in_order = self._n * float((self._first.wholes[number] < bands).mean())
        nanoseconds = costs["search"] + bands * costs["band"] + in_order * costs["scanned_row"]
        nanoseconds += max(0.0, candidates - in_order) * costs["candidate"]
        return Banding(
            bands=bands,
            rows_per_band=r,
            predicted=self._predict(bands, r),
            checked={"recall": mean, "recall_standard_error": error, "share": share},
            candidates=candidates,
            recall_of_search=float(by_depth[:, wishes.taken - 1].mean()),
            recall_of_codes=float(by_depth[:, wishes.k - 1].mean()),
            rerank=max(wishes.k, int(deep[0]) + 1) if deep.size else None,
            microseconds=nanoseconds / 1000,
            serves=bool(enough.size and candidates <= wishes.candidates),
        )

    def _recalls(self, first: Whole) -> Matrix:
        """Return the share of each query's neighbours that agree in one of the first 1, 2, … s bands, (q, s)."""
        # Neighbours that agree in no band are placed after the last.
        return hashed_rows.found_by_depth(np.where(first < 0, self.s, first), self.s)

    def _share(self, number: int, bands: int) -> float:
        return _looked_at(float(self._first.others[number, :bands].sum() / self._pairs), bands)

    def _predict(self, bands: int, r: int) -> Found:
        every = np.ones(len(self._near_rates))
        return Found(
            recall=hashed_rows.predict_share(self._near_rates, every, bands, r),
            share=_looked_at(hashed_rows.predict_share(self._rates, self._weights, bands, r), bands),
        )


def _looked_at(share: float, bands: int) -> float:
    """Return the share of rows that a search looks at if `share` agree in a band: buckets hold others by chance."""
    return 1 - (1 - share) * (1 - CHANCE) ** bands


def chosen(bandings: list[Banding], scan: Scan, wishes: Wishes, n: int) -> tuple[Chosen | None, str]:
    """Choose bands, or None for the scan, and give the reason."""
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


# Number of curves of bands that are drawn: those nearest to the best.
_MOST_CURVES = 6
_BINS = 50


def drawing(answer: Advice, near: Neighbours, recalls: Sequence[Matrix], codes: Sequence[tuple[int, int]]) -> Drawing:
    """Draw the figure of an advice.

    Args:
        answer: the advice.
        near: the neighbours that the advice is based on.
        recalls: for each of the `codes`, the recall by how many rows are compared exactly, (depth,).
        codes: hashes of a row, and bits of each.
    """
    panels = [[_bands(answer)], [_scans(answer, recalls, codes), _similarities(near)]]
    best = answer["best"]
    called = "scan" if best == "scan" else f"{best['bands']} bands of {best['rows_per_band']} rows"
    return Drawing(panels, row_height=4.0, title=f"{answer['rows']:,} rows, {answer['k']} nearest: {called}")


def _bands(answer: Advice) -> Panel:
    """Plot the recall against the share of rows looked at; a curve goes through growing numbers of bands."""
    marks: list[Mark] = []
    least = 1 / answer["rows"]
    for colour, curve in enumerate(_closest_curves(answer)):
        for found, style, called in (
            (curve["checked"], "markers", f"{curve['rows_per_band']} rows a band"),
            (curve["predicted"], "line", ""),
        ):
            x, y = [max(least, one["share"]) for one in found], [one["recall"] for one in found]
            marks.append(Curve(x, y, called, colour, style, marker=colour))  # type: ignore[arg-type]
    share = answer["candidates"] / answer["rows"]
    marks.append(Curve([share, share], [0.0, 1.0], "candidates that are allowed", None, "dashed"))
    marks.append(Curve([least, 1.0], [answer["recall"]] * 2, "recall that is wanted", None, "line"))
    best = answer["best"]
    if best != "scan":
        one = next(one for one in answer["bandings"] if one["rows_per_band"] == best["rows_per_band"])
        marks.append(Star(one["checked"]["share"], one["checked"]["recall"], f"best: {best['bands']} bands"))
    return Panel(
        marks,
        x_label="share of rows looked at",
        y_label="recall",
        title="bands: predicted (lines) and checked (markers)",
        x_scale="log",
        y_range=(0.0, 1.03),
        legend_beside=True,
    )


def _closest_curves(answer: Advice) -> list[BandCurve]:
    """Return the curves of the bands that come nearest to the requirements."""

    def behind(one: Banding) -> tuple[bool, float]:
        return one["checked"]["recall"] < answer["recall"], one["checked"]["share"]

    best = sorted(answer["bandings"], key=behind)[:_MOST_CURVES]
    wanted = {one["rows_per_band"] for one in best}
    return [curve for curve in answer["curves"] if curve["rows_per_band"] in wanted]


def _scans(answer: Advice, recalls: Sequence[Matrix], codes: Sequence[tuple[int, int]]) -> Panel:
    """Plot recalls of scans by rows compared exactly: all hashes at each width, and fewer hashes at the widest."""
    k = answer["k"]
    marks: list[Mark] = []
    for (s, bits), recall in zip(codes, recalls, strict=True):
        if s == answer["s"] or bits == answer["bits"]:
            places = np.unique(np.geomspace(k, len(recall), 20).round().astype(int))
            called = f"{s} × {bits} bit{'s' * (bits > 1)}"
            colour = len(marks)
            marks.append(Curve(places.tolist(), recall[places - 1].tolist(), called, colour, "joined", marker=colour))
    marks.append(Curve([float(k), float(len(recalls[0]))], [answer["recall"]] * 2, "", None, "line"))
    return Panel(
        marks,
        x_label="rows compared exactly, those whose codes agree most",
        y_label="recall",
        title="scans of codes",
        x_scale="log2",
    )


def _similarities(near: Neighbours) -> Panel:
    """Plot the similarities of neighbours and of all rows."""
    of_neighbours, edges = np.histogram(near.similarities, _BINS, (0.0, 1.0))
    of_pairs = near.histogram.reshape(_BINS, -1).sum(axis=1)
    marks = [
        Histogram(edges.tolist(), (of_pairs / of_pairs.sum()).tolist(), "all rows", None),
        Histogram(edges.tolist(), (of_neighbours / of_neighbours.sum()).tolist(), "nearest rows", 0, filled=False),
    ]
    return Panel(marks, x_label="similarity to a query", y_label="share of pairs", title="similarities")


# Most queries, and most rows on which the share of candidates is counted: a mean over a million pairs.
_MOST_QUERIES, _MOST_SAMPLED = 500, 2000
# At most one row of a dataset in this many is a query.
_ROWS_PER_QUERY = 5
_LEAST_QUERIES = 20
# By default, a search of bands may look at one row in this many, as these rows are scattered in memory.
_ROWS_PER_CANDIDATE = 10
# Shorter codes have the number of hashes divided by these.
_FRACTIONS = (1, 2, 4, 8)
_SEED = 0
_BYTES_PER_CODE = 4
_BYTES_PER_PLACE = 64


class AdviceOptions(Frozen):
    """The map, rows and recall that an index is planned for."""

    map: Annotated[str, Field(pattern=NAME_PATTERN)]
    """Name of the map whose codes the index would keep."""
    dataset: Annotated[str, Field(pattern=NAME_PATTERN)]
    """Name of a dataset of rows like those that the index would hold, ideally all of them."""
    k: Annotated[int, Field(ge=1, le=100)] = 10
    """Number of rows that a search is to find."""
    recall: Annotated[float, Field(gt=0, lt=1)] = 0.95
    """Share of the k most similar rows that a search is to find, on average."""
    keep: Literal["codes", "vectors"] = "vectors"
    """Contents of the index. With `vectors`, the best candidates are compared exactly: five per requested result, and
    at least fifty.
    """
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
    """Raise InvalidInput for a map without codes, and for too few rows to measure a recall."""
    hashed_rows.law_of(feature_map)
    least = max(_ROWS_PER_QUERY * _LEAST_QUERIES, 2 * k)
    if n < least:
        raise InvalidInput(f"the dataset has {n} rows; advice for {k} neighbours wants {least}", "/vectors")


def advice_bytes(feature_map: FeatureMap, rows: Rows, k: int) -> int:
    """Return the most memory that `advise` takes in addition to the map and the rows."""
    n = int(rows.shape[0])
    q = _count_of_queries(n)
    of_places = _BYTES_PER_PLACE * q * (hashed_rows.most_depth(k, n) + feature_map.n_frequencies)
    copies = rows.nbytes if isinstance(rows, np.ndarray) else rows.data.nbytes + rows.indices.nbytes
    return (
        _BYTES_PER_CODE * n * feature_map.n_frequencies
        + hashed_rows.block_bytes(feature_map, q, rows)
        + of_places
        + copies
    )


def advise(
    feature_map: FeatureMap, rows: Rows, options: AdviceOptions, progress: Progress, threads: int
) -> Finding[Advice]:
    """Advise on searches by bands and by scan, tried with some rows as queries; only times depend on the machine.

    Raises InvalidInput for rows without codes.
    """
    feature_map.check_rows(rows, "/vectors")
    return _Advising(feature_map, rows, options, progress, threads).finding()


def _count_of_queries(n: int) -> int:
    return min(_MOST_QUERIES, n // _ROWS_PER_QUERY)


class _Advising:
    """The parts of the work; parts that an earlier attempt has finished are not done again."""

    def __init__(
        self, feature_map: FeatureMap, rows: Rows, options: AdviceOptions, progress: Progress, threads: int
    ) -> None:
        searched, apart = held_out(rows.shape[0], _count_of_queries(rows.shape[0]), _SEED)
        self._keep = options.keep
        self._map, self._law = feature_map, hashed_rows.law_of(feature_map)
        self._rows, self._queries = rows[searched], rows[apart]
        self._n, self._s = len(searched), feature_map.n_frequencies
        budget = options.candidates or max(options.k, self._n // _ROWS_PER_CANDIDATE)
        taken = options.k if options.keep == "codes" else min(self._n, compared_exactly(options.k))
        self._wishes = Wishes(options.k, options.recall, budget, len(apart), taken)
        self._parts, self._progress, self._threads = Parts(progress), progress, threads
        self._depth = hashed_rows.most_depth(options.k, self._n)
        self._sample = sample_rows(self._n, min(self._n, _MOST_SAMPLED), _SEED + 1)
        self._step = 0
        self._both: tuple[HashBytes, HashBytes] | None = None
        # The map's own codes are the first.
        self._codes = [
            (s, bits)
            for s in dict.fromkeys(max(1, self._s // fraction) for fraction in _FRACTIONS)
            for bits in (8, 4, 2, 1)
            if bits <= self._law.encoder.bits
        ]

    def finding(self) -> Finding[Advice]:
        """Return the advice and its figure."""
        near = Neighbours(**self._arrays("neighbours", self._neighbours))
        first = FirstBands(**self._arrays("bands", partial(self._first_bands, near)))
        places = [
            self._arrays(f"codes {s} {bits}", partial(self._ranks, near, s, bits))["places"] for s, bits in self._codes
        ]
        costs: Costs = self._once("costs", self._costs)
        bands = Bands(self._law, near, first, len(self._sample), places[0], self._depth)
        shares = [hashed_rows.found_by_depth(one, self._depth) for one in places]
        scan = self._scan(shares, costs)
        bandings = bands.bandings(self._wishes, costs)
        best, why = chosen(bandings, scan, self._wishes, self._n)
        of_neighbours, of_pairs = _spreads(near)
        answer = Advice(
            rows=self._n,
            queries=self._queries.shape[0],
            k=self._wishes.k,
            recall=self._wishes.recall,
            keep=self._keep,
            candidates=self._wishes.candidates,
            s=self._s,
            bits=self._law.encoder.bits,
            similarities={"neighbours": of_neighbours, "pairs": of_pairs},
            bandings=bandings,
            curves=bands.curves(),
            scan=scan,
            costs=costs,
            best="scan" if best is None else best,
            serves=best is not None or scan["serves"],
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
        return hashed_rows.true_neighbours(self._map, self._queries, self._rows, self._wishes.k, progress)._asdict()

    def _first_bands(self, near: Neighbours, progress: Progress) -> dict[str, Any]:
        queries, rows, pause = self._hash_rows(progress)
        dealt = order_of_codes(queries.shape[1])
        near_codes, sampled = rows[near.slots[..., None], dealt], rows[self._sample[:, None], dealt]
        return hashed_rows.first_bands(queries[:, dealt], near_codes, sampled, self._threads, pause)._asdict()

    def _ranks(self, near: Neighbours, s: int, bits: int, progress: Progress) -> dict[str, Any]:
        queries, rows, pause = self._hash_rows(progress)
        some = hashed_rows.ranks(queries[:, :s], rows[:, :s], bits, near.slots, self._depth, self._threads, pause)
        return {"places": some}

    def _costs(self, progress: Progress) -> Costs:
        queries, rows, _ = self._hash_rows(progress)
        return hashed_rows.measure_costs(
            queries, rows, self._law.encoder.bits, self._wishes.taken, _SEED, self._threads
        )

    def _hash_rows(self, progress: Progress) -> tuple[HashBytes, HashBytes, Pause]:
        """Return codes of the queries and of the rows, computed when an unfinished part first needs them.

        Also returns the pause of this part, which keeps no state: an interrupted part starts again.
        """
        pause = partial(progress.checkpoint, begin_anew)
        pause()
        if self._both is None:
            queries, rows = (hashed_rows.hash_rows(self._map, some, pause) for some in (self._queries, self._rows))
            self._both = queries, rows
        return *self._both, pause

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


def _spreads(near: Neighbours) -> list[Spread]:
    """Return the 5 %, 50 % and 95 % quantiles of kernels of neighbours, and of all pairs."""
    shares, cumulated = [0.05, 0.5, 0.95], near.histogram.cumsum() / near.histogram.sum()
    every = np.quantile(near.similarities, shares), near.middles[np.searchsorted(cumulated, shares)]
    return [Spread(low=low, median=median, high=high) for low, median, high in (one.tolist() for one in every)]
