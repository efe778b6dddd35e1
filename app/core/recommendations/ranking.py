"""Trials in the order of what was wanted, and what the answer tells of them."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import scipy

from app.core.arrays import Matrix
from app.core.errors import InvalidInput
from app.core.recommendations.answer import RankedTrial, Ranking, Skipped
from app.core.recommendations.candidates import Candidate, Objective, Wanted
from app.core.recommendations.held_out import Shares
from app.core.recommendations.measuring import Measured
from app.core.spec import MapSpec

# What learns takes long, and differs little by its seeds: where its first map has so many times the least error, its
# other maps are not measured.
_HOPELESS = 2.0
TIE_RATE = 0.025
"""How often a spec that is as good as the best is not marked as tied with it."""


class Trial(NamedTuple):
    """A candidate, and what was measured of its maps."""

    candidate: Candidate
    spec: MapSpec
    maps: list[Measured]
    """Of the maps that it is chosen by, in the order of their seeds."""
    fresh: list[Measured]
    """Of maps that had no part in choosing it; none but for the best few."""

    @property
    def name(self) -> str:
        """The text of the spec."""
        return self.spec.canonical()

    @property
    def choosing(self) -> float:
        """What it is chosen by: the mean error, or what the mean score misses of 1, on the choosing rows."""
        return float(np.mean([one["choosing"] for one in self.maps]))

    def reached(self, wanted: Wanted) -> bool:
        """Whether the target error is reached on the choosing rows and on the reported ones."""
        target = wanted.target_error
        return target is not None and max(self.choosing, float(np.mean(_of(self.told, "error")))) <= target

    @property
    def told(self) -> list[Measured]:
        """The maps that the answer tells of."""
        return self.fresh or self.maps


def in_order(trials: Iterable[Trial], wanted: Wanted) -> list[Trial]:
    """Trials that reach the target by their width or time, then the others by what they are chosen by."""

    def place(trial: Trial) -> tuple[bool, float, float]:
        first = trial.maps[0]
        if trial.reached(wanted):
            cost = first["seconds"] if wanted.objective is Objective.time else first["n_output"]
            return False, cost, trial.choosing
        return True, trial.choosing, first["n_output"]

    return sorted(trials, key=place)


def answered(trials: Iterable[Trial], skipped: list[Skipped], wanted: Wanted, shares: Shares) -> Ranking:
    """The answer; InvalidInput without trials."""
    ranked = in_order(trials, wanted)
    if not ranked and not skipped:
        raise InvalidInput("what serves this kernel learns from rows: put them as a dataset, and name it", "/vectors")
    if not ranked:
        refusals = "; ".join(dict.fromkeys(f"{one['sampler']['kind']}: {one['reason']}" for one in skipped))
        raise InvalidInput(f"no sampler can be tried: {refusals}", "/samplers")
    best = ranked[0]
    told = [_told(trial, tied(trial, best, wanted)) for trial in ranked]
    return Ranking(
        rows=shares.rows,
        reported_rows=len(shares.reported.measured),
        learned_rows=wanted.learned_rows or None,
        target_reached=None if wanted.target_error is None else best.reached(wanted),
        ranked=told,
        best=told[0]["spec"],
        skipped=skipped,
        notes=_notes(told, wanted),
    )


def tied(trial: Trial, best: Trial, wanted: Wanted) -> bool | None:
    """Whether a trial is not told apart from the best: maps of one seed compared in pairs, on the reported rows.

    By Student's t. One that is as good as the best is told apart in `TIE_RATE` of cases; None where there is one pair.
    """
    if trial is best:
        return True
    both = (trial.fresh, best.fresh) if trial.fresh and best.fresh else (trial.maps, best.maps)
    pairs = min(map(len, both))
    if pairs < 2:
        return None
    name = "score" if wanted.objective is Objective.score else "error"
    losses = np.subtract(*(_of(maps[:pairs], name) for maps in both)) * (-1 if name == "score" else 1)
    quantile = scipy.special.stdtrit(pairs - 1, 1 - TIE_RATE)
    return bool(losses.mean() <= quantile * losses.std(ddof=1) / np.sqrt(pairs))


def may_be_better(trial: Trial, best: Trial, difference: float) -> bool:
    """Whether a trial may be better than the best so far, by that part of its loss, as far as choosing rows tell."""
    pairs = min(len(trial.maps), len(best.maps))
    losses = np.subtract(*(_of(one.maps[:pairs], "choosing") for one in (trial, best)))
    if pairs < 2:
        return True
    error = losses.std(ddof=1) / np.sqrt(pairs)
    margin = scipy.special.stdtrit(pairs - 1, 1 - TIE_RATE) * error
    return bool(losses.mean() < margin and error > difference * best.choosing)


def is_hopeless(trial: Trial, least: float, wanted: Wanted) -> bool:
    """Whether no more maps are worth measuring of a sampler that learns, in view of the least error so far.

    Those that a request names, and those that are to reach a target, are measured as often as others.
    """
    by_error = wanted.objective is Objective.error and wanted.target_error is None and wanted.samplers is None
    return by_error and trial.candidate.sampler.learns and trial.choosing > _HOPELESS * least


def left_out(one: Candidate, reason: str, wanted: Wanted) -> Skipped:
    """A sampler without a trial; where it is to learn from the dataset, with how many rows of it a trial has."""
    if wanted.learned_rows and one.sampler.learned_from == wanted.dataset:
        reason += f"; in a trial, {wanted.learned_rows} rows of it are there to learn from"
    return Skipped(sampler=one.sampler.model_dump(mode="json"), columns=one.columns, reason=reason)


def _notes(told: list[RankedTrial], wanted: Wanted) -> list[str]:
    """What a reader must know of the ranking."""
    notes = []
    if wanted.dataset is None and wanted.samplers is None:
        notes.append(
            "samplers that learn from rows, landmarks, reweighted_grid and weighted, were not tried: a spec names the "
            "dataset that it learns from. Put the rows as a dataset (PUT /v1/datasets/{name}) and send dataset in the "
            "place of vectors: what learns most often has a fraction of these errors"
        )
    if wanted.objective is not Objective.score and len({str(trial["spec"]["kernel"]) for trial in told}) > 1:
        notes.append(
            "an error is relative to the kernel of its own spec: smooth kernels have small ones. Which kernel is best "
            "for a task, labels tell: send y, with objective score"
        )
    return notes


def _told(trial: Trial, is_tied: bool | None) -> RankedTrial:
    first, errors = trial.maps[0], _of(trial.told, "error")
    scores = _of(trial.told, "score") if "score" in first else None
    return RankedTrial(
        spec=trial.spec.model_dump(mode="json"),
        n_output=first["n_output"],
        error_mean=float(errors.mean()),
        error_sd=_deviation(errors),
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
