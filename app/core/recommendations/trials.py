"""Trials: candidates are built, measured on the client's rows and ranked; few maps of each, more maps of the best."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import scipy
from pydantic import with_config
from typing_extensions import TypedDict

from app.core.arrays import Matrix, Rows
from app.core.building import Building
from app.core.datasets import is_constant
from app.core.diagnostics.error_matrix import HEAVY, RowVariation
from app.core.errors import InvalidInput
from app.core.kernels import Kernel
from app.core.model import DumpOf
from app.core.progress import Parts
from app.core.recommendations.candidates import Candidate, Objective, Wanted, candidates, column_counts
from app.core.recommendations.measuring import Labels, Measured, Measuring, Shares, linear_score, shared_out
from app.core.spec import MapSpec, Sampler

_Spec = Annotated[dict[str, Any], DumpOf(MapSpec)]


@with_config(use_attribute_docstrings=True)
class RankedTrial(TypedDict):
    """A spec and the measurements of its maps."""

    spec: _Spec
    """Spec of the maps, to PUT."""
    n_output: int
    """Number of output columns, or of codes."""
    error_mean: float
    """Relative Frobenius error of the Gram matrix of `rows` rows, mean over the maps. It is measured on rows that no
    map was chosen by, if there are enough.
    """
    error_sd: float
    """Standard deviation over the maps; 0 for one map."""
    error_low: float
    """Lower end of the 95 % interval for the error of another map of this spec on as many other rows of the same
    source, due to the variation of maps and of rows.
    """
    error_high: float
    """Upper end of the interval that `error_low` describes."""
    choosing_error: float | None
    """Mean error on the choosing rows, by which the spec is ranked; null if scores rank."""
    score_mean: float | None
    """Mean score of ridge regression of the labels on the features: the share of classes that are right, or R², on rows
    that were not used to choose or to train. Null without labels.
    """
    score_sd: float | None
    """Standard deviation over the maps."""
    choosing_score: float | None
    """Mean cross-validation score on the choosing rows."""
    maps: int
    """Number of maps, of different seeds, that the means are over. For the best spec and its rivals, these maps had no
    part in choosing.
    """
    tied_with_best: bool | None
    """Whether the error, or the score, does not differ significantly from that of the best spec, by Student's t on
    pairs of maps of one seed. A spec that is equally good is found to differ in 2.5 % of cases. Null for one map.
    """
    bytes: int
    """Size of the frozen arrays in bytes."""
    seconds_per_1000_rows: float
    """Seconds that a transform of 1,000 rows takes, on the machine that measured it."""


@with_config(use_attribute_docstrings=True)
class Skipped(TypedDict):
    """A sampler that could not be tried at a width, and why."""

    sampler: Annotated[dict[str, Any], DumpOf(Sampler)]
    """The sampler."""
    columns: int
    """Maximum number of output columns that was allowed."""
    reason: str | None
    """Why it was not tried."""


@with_config(use_attribute_docstrings=True)
class PlainModel(TypedDict):
    """A model without a map."""

    name: Literal["linear"]
    """linear: ridge regression on the rows themselves, with columns scaled to equal deviations."""
    score: float
    """Its score on the reported rows, to be compared with `score_mean`."""


@with_config(use_attribute_docstrings=True)
class Ranking(TypedDict):
    """Trials, the best first."""

    rows: int
    """Number of rows that maps were measured on; a sample, if there are more."""
    reported_rows: int
    """Number of these rows that errors and scores are measured on; maps were chosen by the others."""
    learned_rows: int | None
    """Number of rows of the dataset that samplers could learn from, none of them a reported row; null if nothing
    learned from the dataset, or rows were posted.
    """
    target_reached: bool | None
    """Whether the best spec reaches target_error; null if no target_error was given."""
    ranked: list[RankedTrial]
    """All trials, the best first."""
    best: _Spec
    """Spec of the best map, to PUT."""
    baselines: list[PlainModel]
    """Scores of models without a map; none without labels."""
    skipped: list[Skipped]
    """Samplers that could not be tried."""
    notes: list[str]
    """Remarks on how to read this ranking."""


# Samplers that learn take long and differ little between seeds: if the error of the first map is more than this many
# times the smallest, no other maps are measured.
_HOPELESS = 2.0
TIE_RATE = 0.025
"""Rate at which a spec that is as good as the best is not marked as tied with it."""


class Trial(NamedTuple):
    """Candidate, and the measurements of its maps."""

    candidate: Candidate
    spec: MapSpec
    maps: list[Measured]
    """Measurements of the maps that it is chosen by, in the order of their seeds."""
    fresh: list[Measured]
    """Measurements of maps that had no part in choosing it; empty but for the best few."""

    @property
    def name(self) -> str:
        """Text of the spec."""
        return self.spec.canonical()

    @property
    def choosing(self) -> float:
        """Mean of the criterion that it is chosen by, on the choosing rows: the error, or 1 minus the score."""
        return float(np.mean([one["choosing"] for one in self.maps]))

    def reaches_target(self, wanted: Wanted) -> bool:
        """Return whether the target error is reached on the choosing rows and on the reported ones."""
        target = wanted.target_error
        return target is not None and max(self.choosing, float(np.mean(_of(self.told, "error")))) <= target

    @property
    def told(self) -> list[Measured]:
        """Measurements that the answer reports."""
        return self.fresh or self.maps

    @property
    def variation(self) -> RowVariation:
        """Contribution of the reported rows to the uncertainty of the error, mean over the maps."""
        deviation, effective_rows = np.mean([one["variation"] for one in self.told], axis=0).tolist()
        return RowVariation(deviation, effective_rows)


def in_order(trials: Iterable[Trial], wanted: Wanted) -> list[Trial]:
    """Return the trials that reach the target, by width or time, then all others by the criterion of choosing."""

    def place(trial: Trial) -> tuple[bool, float, float]:
        first = trial.maps[0]
        if trial.reaches_target(wanted):
            cost = first["seconds"] if wanted.objective is Objective.time else first["n_output"]
            return False, cost, trial.choosing
        return True, trial.choosing, first["n_output"]

    return sorted(trials, key=place)


def build_answer(
    trials: Iterable[Trial], skipped: list[Skipped], wanted: Wanted, shares: Shares, baselines: list[PlainModel]
) -> Ranking:
    """Return the answer; InvalidInput if there are no trials."""
    ranked = in_order(trials, wanted)
    if not ranked and not skipped:
        raise InvalidInput("what serves this kernel learns from rows: put them as a dataset, and name it", "/vectors")
    if not ranked:
        refusals = "; ".join(dict.fromkeys(f"{one['sampler']['kind']}: {one['reason']}" for one in skipped))
        raise InvalidInput(f"no sampler can be tried: {refusals}", "/samplers")
    best = ranked[0]
    shared = _shared_variation(ranked)
    told = [_rank_entry(trial, is_tied_with(trial, best, wanted), shared) for trial in ranked]
    return Ranking(
        rows=shares.rows,
        reported_rows=len(shares.reported.measured),
        learned_rows=wanted.learned_rows or None,
        target_reached=None if wanted.target_error is None else best.reaches_target(wanted),
        ranked=told,
        best=told[0]["spec"],
        baselines=baselines,
        skipped=skipped,
        notes=_notes(told, wanted, best.variation, len(shares.reported.measured), baselines),
    )


def is_tied_with(trial: Trial, best: Trial, wanted: Wanted) -> bool | None:
    """Return whether a trial does not differ significantly from the best; None if there is one pair of maps.

    What the answer reports is compared, by Student's t: in pairs where the maps have the same seeds. A trial that is as
    good as the best is found to differ in at most `TIE_RATE` of cases.
    """
    if trial is best:
        return True
    name, sign = ("score", -1) if wanted.objective is Objective.score else ("error", 1)
    losses = [sign * _of(one.told, name) for one in (trial, best)]
    n = min(map(len, losses))
    if n < 2:
        return None
    if bool(trial.fresh) == bool(best.fresh):
        losses = [np.subtract(*(of_one[:n] for of_one in losses)), np.zeros(n)]
    error = np.sqrt(sum(of_one.var(ddof=1) / len(of_one) for of_one in losses))
    difference = losses[0].mean() - losses[1].mean()
    return bool(difference <= scipy.special.stdtrit(n - 1, 1 - TIE_RATE) * error)


def may_be_better(trial: Trial, best: Trial, difference: float) -> bool:
    """Return whether, judging by the choosing rows, a trial may be better than the best so far.

    It may if its loss is not significantly larger and the standard error of the difference is above `difference` times
    the loss of the best.
    """
    pairs = min(len(trial.maps), len(best.maps))
    losses = np.subtract(*(_of(one.maps[:pairs], "choosing") for one in (trial, best)))
    if pairs < 2:
        return True
    error = losses.std(ddof=1) / np.sqrt(pairs)
    margin = scipy.special.stdtrit(pairs - 1, 1 - TIE_RATE) * error
    return bool(losses.mean() < margin and error > difference * best.choosing)


def is_hopeless(trial: Trial, least: float, wanted: Wanted) -> bool:
    """Return whether no more maps of a sampler that learns are worth measuring, given the smallest error so far.

    Samplers that a request names, or that have to reach a target, are measured as often as all others.
    """
    by_error = wanted.objective is Objective.error and wanted.target_error is None and wanted.samplers is None
    return by_error and trial.candidate.sampler.learns and trial.choosing > _HOPELESS * least


def left_out(one: Candidate, reason: str, wanted: Wanted) -> Skipped:
    """Return the entry of a sampler without a trial; if it learns from the dataset, with how many rows it has."""
    if wanted.learned_rows and one.sampler.learned_from == wanted.dataset:
        reason += f"; in a trial, {wanted.learned_rows} rows of it are there to learn from"
    return Skipped(sampler=one.sampler.model_dump(mode="json"), columns=one.columns, reason=reason)


def _notes(
    told: list[RankedTrial], wanted: Wanted, variation: RowVariation, reported: int, baselines: list[PlainModel]
) -> list[str]:
    """Return the remarks that a reader of the ranking needs."""
    score = told[0]["score_mean"]
    notes = [
        f"the {one['name']} model without a map scores {one['score']:.3f}, the best map {score:.3f}: no map of this "
        "budget is worth its columns"
        for one in baselines
        if score is not None and one["score"] >= score
    ]
    if wanted.dataset is None and wanted.samplers is None:
        notes.append(
            "landmarks, reweighted_grid and weighted, which learn from rows, were not tried. They need a dataset of "
            "the rows without a column of labels (PUT /v1/datasets/{name}), and its name in place of the rows. Maps "
            "that learn usually have a fraction of the error"
        )
    if wanted.objective is not Objective.score and len({str(trial["spec"]["kernel"]) for trial in told}) > 1:
        notes.append(
            "an error is relative to the kernel of its own spec: smooth kernels have small ones. Which kernel is best "
            "for a task, labels tell: send y, with objective score"
        )
    if variation.effective_rows < HEAVY <= reported // 2:
        notes.append(
            f"few rows make most of the error of the best, as if {variation.effective_rows:.0f} had been measured on: "
            "on other rows it may be several times as large; rows that lie far from all others are worth a look"
        )
    return notes


def _shared_variation(trials: list[Trial]) -> tuple[float, float]:
    """Return the variance over maps of the relative error, of all trials together, and its degrees of freedom."""
    every = [_of(trial.told, "error") for trial in trials if trial.maps[0]["is_random"]]
    every = [errors for errors in every if len(errors) > 1 and errors.any()]
    freedom = [len(errors) - 1 for errors in every]
    if not every:
        return 0.0, 1.0
    variances = [float(errors.var(ddof=1) / errors.mean() ** 2) for errors in every]
    return float(np.average(variances, weights=freedom)), float(sum(freedom))


def _rank_entry(trial: Trial, is_tied: bool | None, shared: tuple[float, float]) -> RankedTrial:
    first, errors = trial.maps[0], _of(trial.told, "error")
    mean, deviation, n = float(errors.mean()), _deviation(errors), len(errors)
    variance, freedom = (deviation**2 / mean**2, n - 1) if n >= _FEWEST_VARIED and mean else shared
    of_maps = variance * (1 + 1 / n) if first["is_random"] else 0.0
    low, high = trial.variation.interval(mean, (of_maps, freedom))
    scores = _of(trial.told, "score") if "score" in first else None
    return RankedTrial(
        spec=trial.spec.model_dump(mode="json"),
        n_output=first["n_output"],
        error_mean=mean,
        error_sd=deviation,
        error_low=low,
        error_high=high,
        choosing_error=trial.choosing if scores is None else None,
        score_mean=None if scores is None else float(scores.mean()),
        score_sd=None if scores is None else _deviation(scores),
        choosing_score=None if scores is None else 1 - trial.choosing,
        maps=len(errors),
        tied_with_best=is_tied,
        bytes=first["bytes"],
        seconds_per_1000_rows=first["seconds"],
    )


def _of(maps: list[Measured], name: str) -> Matrix:
    return np.array([one[name] for one in maps])  # type: ignore[literal-required]


def _deviation(values: Matrix) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


# Fewer maps say too little about how much maps vary: those of all trials together say more.
_FEWEST_VARIED = 3
MOST_ROWS = 1000
"""Most rows that maps are measured on; if there are more, a sample is enough."""
FRESH_MAPS = 10
"""Number of maps with no part in choosing that the figures of the best few trials are measured on."""
_TIMED_CALLS = {Objective.error: 3, Objective.time: 9, Objective.score: 3}
# After a first sampler reaches the target, other samplers are tried with up to this many times its columns.
_FURTHER = {Objective.error: 1, Objective.time: 4, Objective.score: 1}
_SEEDS = 1 << 64
# Columns whose deviations differ by more than this factor should be scaled.
_UNEQUAL = 100


class Effort(NamedTuple):
    """How much is measured. Fewer maps make the intervals of the answer wider."""

    seeds: int
    """Number of maps of every candidate."""
    fresh: int = FRESH_MAPS
    """Number of maps with no part in choosing that the figures of the best few trials are measured on."""
    extensions: int = 100
    """Number of times that more maps of a leading trial are measured."""
    tried_narrower: int = 8
    """Number of the best samplers that are tried with fewer columns than the budget."""
    confirming: int = 12
    """Number of maps of a trial that must confirm that it reaches the target before sizes stop growing."""


QUICK = Effort(seeds=1, fresh=3, extensions=8, tried_narrower=0, confirming=3)
"""Effort of a quick recommendation, some seconds: without a target, only the widest maps are tried."""
# In a quick recommendation, scores on fewer rows than this would often be equal. Maps of up to `_QUICK_FOLDS` folds are
# then measured, which is still quick with so few rows.
_FEW_SCORED, _QUICK_FOLDS = 50, 4
# While it is open which trial is the best, more maps are measured of up to `_LEADING` trials that may be, or of up to
# `_LEADING_LATER` once the best has `_LATER` maps: `_MORE_MAPS` at a time, up to `_MOST_MAPS`. A difference of less
# than the part `_DIFFERENCE` of the error is left open.
_LEADING, _LEADING_LATER, _LATER = 8, 4, 12
# Samplers that learn take longest, and differ least between seeds.
_MORE_MAPS, _MOST_MAPS, _MOST_LEARNED_MAPS = 3, 48, 12
_DIFFERENCE = {Objective.error: 0.01, Objective.time: 0.01, Objective.score: 0.05}


def recommend(
    rows: Rows,
    kernels: Sequence[Kernel],
    wanted: Wanted,
    *,
    seeds: int = 3,
    quick: bool = False,
    seed: int = 0,
    shares: Shares | None = None,
    labels: Labels | None = None,
    building: Building | None = None,
) -> Ranking:
    """Try samplers and sizes on the rows and rank them.

    Without a target the smallest error is best, or the largest score. With a target, sizes grow until a sampler reaches
    it, and the narrowest spec that reaches it is best; if none does, the smallest error is best, and `target_reached`
    is false. With objective `time`, sizes then grow further, up to four times, for the samplers that have not reached
    the target, and the fastest spec that reaches it is best. All results except the seconds, and the choice by seconds,
    depend only on the arguments.

    Of every candidate, `seeds` maps are measured; the first has the seed `seed`, and the next seeds follow. More are
    measured, up to 48, of the trials that may be the best, judging by their maps on the choosing rows of `shares`, as
    long as that is open. The answer reports other rows and, for the best trial and its rivals, ten other maps. The
    progress of `building` receives reports of the work; its states hold the measurements of each map.

    Args:
        rows: (n, d), 2 to `MOST_ROWS`.
        kernels: each is tried.
        wanted: what is best, and what is tried.
        seeds: the fewest maps that are measured of a candidate.
        quick: whether to measure as little as `QUICK` says, whatever `seeds` is.
        seed: of the first map, and of the split of the rows.
        shares: which rows are for choosing; None to split them here.
        labels: labels of the rows, for scores.
        building: build context; its `rows` are whole datasets.

    Raises:
        InvalidInput: there are too few or too many rows, or no sampler can be tried.
    """
    check_shape(rows)
    for kernel in kernels:
        kernel.check(rows.shape[1])
    wanted.check(labels is not None)
    building = building or Building()
    shares = shares or shared_out(np.arange(rows.shape[0]), rows.shape[0], seed)
    effort = QUICK if quick else Effort(seeds)
    if quick and labels is not None and len(shares.choosing[0].measured) < _FEW_SCORED:
        effort = effort._replace(seeds=min(len(shares.choosing), _QUICK_FOLDS))
    measuring = Measuring(rows, shares, labels, wanted, building, _TIMED_CALLS[wanted.objective])
    tried = _Trials(measuring, wanted, effort)
    tried.all_of(
        [
            [one for kernel in kernels for one in candidates(kernel, rows.shape[1], columns, wanted, seed)]
            for columns in column_counts(wanted)
        ]
    )
    baselines = [] if labels is None else [PlainModel(name="linear", score=linear_score(rows, labels, shares.reported))]
    answer = build_answer(tried.found.values(), tried.skipped, wanted, shares, baselines)
    answer["notes"] += [] if wanted.input else _unequal_columns(rows, kernels)
    return answer


def _unequal_columns(rows: Rows, kernels: Sequence[Kernel]) -> list[str]:
    """Return a remark if few columns of the rows decide a kernel that has one length scale for all of them."""
    are_common = any(isinstance(getattr(one, "length_scale", None), float) for one in kernels)
    if not isinstance(rows, np.ndarray) or not are_common:
        return []
    least, most = rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)
    varied = ~is_constant(most - least, np.maximum(np.abs(least), np.abs(most)))
    deviations = rows[:, varied].std(axis=0, dtype=np.float64)
    if not deviations.size or deviations.max() <= _UNEQUAL * deviations.min():
        return []
    factor = deviations.max() / deviations.min()
    return [f"columns differ in size by a factor of {factor:.3g}, and the large ones decide: try input standardize"]


def check_shape(rows: Rows) -> None:
    """Raise InvalidInput for rows that are too few or too many to measure errors on, or have no entries."""
    n, d = rows.shape
    if not 2 <= n <= MOST_ROWS:
        raise InvalidInput(f"expected 2 to {MOST_ROWS} rows, got {n}", "/vectors")
    if not d:
        raise InvalidInput("expected rows of at least one entry, got none", "/vectors")


class _Trials:
    """Trials of a request: begun, extended while it is open which trial is the best, and completed."""

    def __init__(self, measuring: Measuring, wanted: Wanted, effort: Effort) -> None:
        self._measuring, self._wanted, self._effort = measuring, wanted, effort
        self._progress, self._parts = measuring.progress, Parts(measuring.progress)
        self._step, self._passed, self._of = 0, 0, 1
        self.found: dict[str, Trial] = {}
        """Trials by the text of their spec."""
        self.skipped: list[Skipped] = []

    def all_of(self, every: list[list[Candidate]]) -> None:
        """Try candidates of increasing sizes, as far as they may be the best, and decide which is the best."""
        if self._wanted.target_error is None and not self._effort.tried_narrower:
            every = every[-1:]
        effort = self._effort
        self._of = sum(map(len, every)) * effort.seeds + effort.extensions * _MORE_MAPS + _LEADING_LATER * effort.fresh
        if self._wanted.target_error is None:
            self._narrowing(every[::-1])
        else:
            self._growing(every)
        self._settle_best()

    def _narrowing(self, every: list[list[Candidate]]) -> None:
        """Try all candidates of the widest size; of narrower sizes, the samplers that were best, and new ones.

        `every` is in the order of decreasing sizes.
        """
        worse: set[str] = set()
        narrow: dict[str, int] = {}
        for step, of_width in enumerate(every):
            tried: list[Trial] = []
            for one in of_width:
                # A sampler whose map has no more columns than are allowed now would make the same map again.
                if one.name not in worse and narrow.get(one.name, one.columns + 1) > one.columns:
                    trial = self._try(one, 1)
                    if trial is not None:
                        narrow[one.name] = trial.maps[0]["n_output"]
                        tried.append(trial)
            least = min((trial.choosing for trial in tried), default=inf)
            for trial in tried:
                if not is_hopeless(trial, least, self._wanted):
                    self._extend(trial, self._effort.seeds)
            self._pass_over(of_width)
            if not step:
                ranked = in_order(self.found.values(), self._wanted)
                worse = {trial.candidate.name for trial in ranked[self._effort.tried_narrower :]}

    def _growing(self, every: list[list[Candidate]]) -> None:
        """Try candidates of growing sizes until the target is reached."""
        reached: set[str] = set()
        last = inf
        for of_width in every:
            for one in of_width:
                # Wider maps of a sampler are slower.
                trial = None if one.name in reached else self._try(one, self._effort.seeds)
                if trial is not None and self._confirm_target(trial):
                    reached.add(one.name)
                    last = min(last, one.columns * _FURTHER[self._wanted.objective])
            self._pass_over(of_width)
            if of_width and of_width[0].columns >= last:
                break

    def _settle_best(self) -> None:
        """Measure more maps of the leading trials until one is clearly best; then measure new maps of the leaders."""
        by_time = self._wanted.objective is Objective.time and any(
            trial.reaches_target(self._wanted) for trial in self.found.values()
        )
        # Trials that reach a target are confirmed already, and what is measured must not depend on a clock.
        for _ in range(0 if by_time else self._effort.extensions):
            rivals = self._rivals()
            shortest = min(rivals, key=lambda trial: len(trial.maps), default=None)
            if shortest is None or len(rivals) == 1 or len(shortest.maps) >= _most_maps(shortest):
                break
            self._extend(shortest, len(shortest.maps) + _MORE_MAPS)
        for trial in [] if by_time else self._rivals()[:_LEADING_LATER]:
            self._tell_fresh(trial)
        self._progress.report(self._of, self._of)

    def _rivals(self) -> list[Trial]:
        """Return the best trial so far, and the next ones that may be better, judging by the choosing rows."""
        leading = in_order(self.found.values(), self._wanted)
        difference = _DIFFERENCE[self._wanted.objective]
        open_ones = [one for one in leading[1:_LEADING] if may_be_better(one, leading[0], difference)]
        open_ones = [one for one in open_ones if not is_hopeless(one, leading[0].choosing, self._wanted)]
        most = _LEADING if leading and len(leading[0].maps) < _LATER else _LEADING_LATER
        return [*leading[:1], *open_ones[: most - 1]]

    def _confirm_target(self, trial: Trial) -> bool:
        """Return whether more maps also reach the target, so that sizes do not stop growing by luck of a few maps."""
        if not trial.reaches_target(self._wanted):
            return False
        self._extend(trial, self._effort.confirming)
        self._tell_fresh(trial)
        return trial.reaches_target(self._wanted)

    def _tell_fresh(self, trial: Trial) -> None:
        """Measure maps that have no part in choosing, with the same seeds for all trials, to compare them in pairs."""
        for k in range(_MOST_MAPS + len(trial.fresh), _MOST_MAPS + self._effort.fresh):
            figures = self._once(trial, k, self._measuring.report)
            if not isinstance(figures, str):
                trial.fresh.append(figures)

    def _try(self, one: Candidate, maps: int) -> Trial | None:
        """Return the trial of a candidate with `maps` maps; None if it cannot be built or was tried before."""
        if isinstance(one.spec, str):
            self.skipped.append(left_out(one, one.spec, self._wanted))
            return None
        trial = Trial(one, one.spec, [], [])
        if trial.name in self.found:
            return None
        self.found[trial.name] = trial
        return trial if self._extend(trial, maps) else None

    def _extend(self, trial: Trial, maps: int) -> bool:
        """Measure maps of a trial until there are `maps`; return False, and drop the trial, if one cannot be built."""
        for k in range(len(trial.maps), maps):
            figures = self._once(trial, k, partial(self._measuring.choosing, k=k))
            if isinstance(figures, str):
                del self.found[trial.name]
                self.skipped.append(left_out(trial.candidate, figures, self._wanted))
                return False
            trial.maps.append(figures)
        return True

    def _once(self, trial: Trial, k: int, measure: Callable[..., Measured | str]) -> Measured | str:
        """Return measurements of the k-th map, or why there are none; those of an earlier attempt are used again."""
        spec = trial.spec.model_copy(update={"seed": (trial.spec.seed + k) % _SEEDS})
        figures: Measured | str = self._parts.once(
            spec.canonical(), lambda progress: measure(spec, progress=progress), lambda _: self._tell()
        )
        self._step += 1
        self._tell()
        return figures

    def _pass_over(self, candidates: list[Candidate]) -> None:
        """Count maps of these candidates as measured, also those that were not needed."""
        self._passed += len(candidates) * self._effort.seeds
        self._step = max(self._step, self._passed)
        self._tell()

    def _tell(self) -> None:
        self._progress.report(min(self._step, self._of - 1), self._of)


def _most_maps(trial: Trial) -> int:
    """Return the largest number of maps of a trial that are measured for choosing."""
    return _MOST_LEARNED_MAPS if trial.candidate.sampler.learns else _MOST_MAPS
