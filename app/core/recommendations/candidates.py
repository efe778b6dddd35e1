"""The specs worth trying for a kernel within a number of output columns."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import TypeAdapter

from app.core.errors import InvalidInput
from app.core.kernels import Kernel
from app.core.maps import family_of
from app.core.samplers import Sampler
from app.core.spec import MapSpec

# Columns that are tried where there is a target and no budget: powers of two up to this, if memory allows.
MOST_COLUMNS = 1 << 14
_LEAST_COLUMNS = 1 << 4
# One frequency, in the form cos_sin.
_FEWEST_COLUMNS = 2
# A budget is tried whole, halved and quartered: what half of it would cost in accuracy is worth knowing.
_FRACTIONS = (1, 2, 4)

_SAMPLERS: TypeAdapter[tuple[Sampler, ...]] = TypeAdapter(tuple[Sampler, ...])

DEFAULT_SAMPLERS = _SAMPLERS.validate_python(
    (
        {"kind": "monte_carlo"},
        {"kind": "orthogonal"},
        {"kind": "latin_hypercube"},
        {"kind": "halton"},
        {"kind": "sobol"},
        {"kind": "lattice"},
        {"kind": "digital_net"},
        {"kind": "moment_matching", "base": {"kind": "monte_carlo"}},
        {"kind": "moment_matching", "base": {"kind": "sobol"}},
        {"kind": "sparse_grid", "level": 1},
        {"kind": "sparse_grid", "level": 2},
    )
)
"""The samplers to try unless some are named: all that are sometimes the best, or a yardstick. Not `antithetic`, which
loses in real forms, nor rules that grow or are solved for too slowly to try."""

_HASHING = _SAMPLERS.validate_python(({"kind": "gcws"},))


class Wanted(NamedTuple):
    """A client's wishes: a budget of output columns, a target error, or both."""

    budget: int | None
    target_error: float | None
    most: int = MOST_COLUMNS
    """Columns that are tried where there is no budget."""


class Candidate(NamedTuple):
    """A spec to try, or why the sampler cannot be tried within so many columns."""

    sampler: Sampler
    columns: int
    spec: MapSpec | None
    refusal: str | None = None


def column_counts(wanted: Wanted) -> list[int]:
    """The numbers of output columns to try, in increasing order."""
    if wanted.target_error is None and wanted.budget is not None:
        return sorted({wanted.budget // part for part in _FRACTIONS if wanted.budget // part >= _FEWEST_COLUMNS})
    most = wanted.budget or wanted.most
    first = _LEAST_COLUMNS.bit_length() - 1
    return [1 << k for k in range(first, (most - 1).bit_length())] + [most]


def candidates(
    kernel: Kernel, input_dim: int, columns: int, samplers: Sequence[Sampler] | None, seed: int
) -> Iterator[Candidate]:
    """One candidate of every sampler, at most `columns` wide, of form `cos_sin`; codes count as columns.

    Args:
        kernel: with its length scale resolved.
        input_dim: length of a row.
        columns: the most output columns.
        samplers: None for those that are sensible for the kernel.
        seed: of the specs.
    """
    for sampler in samplers or (DEFAULT_SAMPLERS if kernel.has_frequencies else _HASHING):
        try:
            s = family_of(sampler).size_for(sampler, columns, input_dim)
            spec = MapSpec(input_dim=input_dim, kernel=kernel, sampler=sampler, s=s, seed=seed)
        except InvalidInput as error:
            yield Candidate(sampler, columns, None, error.detail)
        else:
            yield Candidate(sampler, columns, spec)
