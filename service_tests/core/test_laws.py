"""Right on average, and right in law: what each sampler promises of each kernel, in 3 and 20 dimensions."""

import numpy as np
import pytest
from scipy import stats

from app.core.arrays import Matrix
from app.core.kernels.base import ScaledKernel
from app.core.maps import FourierMap
from app.core.samplers.base import FrequencySampler
from app.core.spec import MapSpec
from service_tests.cases import some_of_each
from service_tests.core.combinations import (
    LAWS,
    OTHER_FAMILIES,
    Fields,
    Pair,
    dimensions,
    drawn_as,
    goes_together,
    is_unbiased,
    named,
    pairs,
    rows,
    weight_sum,
    with_rows,
)
from service_tests.core.specs import shift_invariant, spec

SEEDS = 48


def fourier_pairs(d: int) -> list[Pair]:
    """Pairs of the Fourier family, a kind with its first fields only."""
    every = [pair for pair in pairs(d) if pair[1]["kind"] not in OTHER_FAMILIES and goes_together(*pair)]
    every = [pair for pair in every if dimensions(pair[1], d) == d]
    first: dict[tuple[str, str], Pair] = {}
    for pair in every:
        first.setdefault((pair[0]["kind"], drawn_as(pair[1])), pair)
    return list(first.values())


UNBIASED = [(d, *pair) for d in (3, 20) for pair in fourier_pairs(d) if is_unbiased(pair[1])]
# The law of a grid is discrete, with the moments of the kernel's. Structured directions are many, but not all: seen
# along an axis they have steps, see their own tests.
OF_THE_LAW = [case for case in UNBIASED if case[2]["kind"] not in ("subsampled_grid", "structured_orthogonal")]


def spread(cases: list[tuple[int, Fields, Fields]], n: int) -> list[tuple[int, Fields, Fields]]:
    """So many cases of each sampler, in 3 and in 20 dimensions, which have all kernels between them."""
    some = some_of_each(cases, lambda case: drawn_as(case[2]), n)
    assert {(d, k["kind"]) for d, k, _ in some} == {(d, k["kind"]) for d, k, _ in cases}
    return some


def build(of: MapSpec) -> FourierMap:
    return FourierMap(of, FourierMap.build(of, with_rows(of.input_dim)).arrays)


def standardised(of: MapSpec) -> list[Matrix]:
    """Frequencies of each summand at σ = 1."""
    assert isinstance(of.sampler, FrequencySampler)
    drawn = []
    for block in shift_invariant(of).blocks(of.input_dim):
        dim = block.dim(of.input_dim)
        frequencies = of.sampler.frequency_set(block.kernel, of.s or 0, dim, np.random.default_rng(3)).frequencies
        assert isinstance(block.kernel, ScaledKernel)
        scales = block.kernel.scales(dim)
        drawn.append(frequencies * scales)
    return drawn


@pytest.mark.parametrize(
    ("d", "its_kernel", "its_sampler", "form"),
    [(*case, ("complex", "phase")[number % 2]) for number, case in enumerate(spread(UNBIASED, 4))],
    ids=named,
)
def test_the_mean_over_seeds_is_the_exact_kernel(d: int, its_kernel: Fields, its_sampler: Fields, form: str) -> None:
    of = spec(kernel=its_kernel, sampler=its_sampler, form=form, dtype="float64", input_dim=d, s=64)
    x, y = rows(2, 1, d), rows(2, 2, d)
    made = [build(of.model_copy(update={"seed": seed})) for seed in range(SEEDS)]
    grams = np.array([feature_map.gram(x, y) for feature_map in made])
    exact = made[0].exact_gram(x, y)
    assert (exact < 0.999 * weight_sum(its_kernel, d)).all()
    assert (exact > 0.01 * weight_sum(its_kernel, d)).all()
    for part, right in ((grams.real, exact), (grams.imag, np.zeros_like(exact))):
        # One standard error: the deviation over the seeds by √48. At 1e-12 rounding is all there is.
        error = part.std(axis=0, ddof=1) / np.sqrt(SEEDS)
        assert (np.abs(part.mean(axis=0) - right) < 4 * error + 1e-12).all()
    assert grams.real.std(axis=0).min() > 1e-6


@pytest.mark.parametrize(("d", "its_kernel", "its_sampler"), spread(OF_THE_LAW, 4), ids=named)
def test_each_coordinate_of_the_frequencies_has_the_law_of_the_kernel(
    d: int, its_kernel: Fields, its_sampler: Fields
) -> None:
    law = LAWS[its_kernel["kind"]](its_kernel)
    of = spec(kernel=its_kernel, sampler=its_sampler, input_dim=d, s=4096)
    for frequencies in standardised(of)[:2]:
        for coordinate in frequencies.T[:3]:
            # Level 1e-4 each, over 300 of them; a scale wrong by 30 % has a p-value far below it.
            assert stats.kstest(coordinate, law.cdf).pvalue > 1e-4
            assert stats.kstest(coordinate * 1.3, law.cdf).pvalue < 1e-4
