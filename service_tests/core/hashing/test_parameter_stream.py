"""The parameter stream against numpy's Philox, its laws, and values that must never change."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from app.core.hashing.parameter_stream import STREAM_VERSION, philox, sampling_parameters

Tables = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]

MOST = (1 << 64) - 1
WORDS = [0, 1, 2, MOST, 0x0123456789ABCDEF]
# Draws of version 1 for seed 7, coordinates 3 and 4, hashes 0 to 2, each row by row. Should one of these change, give
# the stream a new version instead: every code kept by a client hangs on them.
GOLDEN: dict[str, list[float]] = {
    "r": [
        1.1871814751819119,
        1.1346897299005079,
        0.47853308495107344,
        3.389932345508352,
        2.0614057435468003,
        1.2480169282809663,
    ],
    "log_c": [
        0.2607193482192426,
        1.1792892955109364,
        0.4413788529938253,
        0.5716391534661713,
        -0.3653314643074263,
        -1.3530304888818403,
    ],
    "beta": [
        0.7890533906408558,
        0.7973872098880656,
        0.8007328694804475,
        0.6119546241309152,
        0.4582674670381276,
        0.9847248561823146,
    ],
}


def tables(seed: int, first: int, coordinates: int, hashes: int) -> Tables:
    r, log_c, beta = (np.empty((coordinates, hashes)) for _ in range(3))
    sampling_parameters(np.uint64(seed), first, r, log_c, beta)
    return r, log_c, beta


def words(key: tuple[int, ...], counter: tuple[int, ...]) -> list[int]:
    numbers: Any = [tuple(map(np.uint64, whole)) for whole in (key, counter)]
    return [int(word) for word in philox(*numbers)]


def numpy_words(key: tuple[int, ...], counter: tuple[int, ...]) -> list[int]:
    """Numpy adds one to the 256-bit counter before each use."""
    number = sum(word << (64 * place) for place, word in enumerate(counter))
    before = (number - 1) % (1 << 256)
    return [int(word) for word in np.random.Philox(key=key[0] + (key[1] << 64), counter=before).random_raw(4)]


@pytest.mark.parametrize("key", [(0, 0), (7, 1), (1, 7), (MOST, MOST), (0xDEADBEEF, 1 << 63)])
def test_the_words_are_those_of_numpys_philox(key: tuple[int, int]) -> None:
    counters = [(a, b, 0, 0) for a in WORDS for b in WORDS] + [(5, 4, 3, 2), (0, 0, 0, MOST), (MOST,) * 4]
    for counter in counters:
        assert words(key, counter) == numpy_words(key, counter)


def test_a_draw_takes_the_uniforms_of_its_own_counter_as_documented() -> None:
    r, log_c, beta = tables(7, 3, 2, 6)
    for row, coordinate in enumerate((3, 4)):
        for h in range(6):
            drawn = numpy_words((7, STREAM_VERSION), (coordinate, h, 0, 0))
            drawn += numpy_words((7, STREAM_VERSION), (coordinate, h, 1, 0))
            u1, u2, u3, u4, u5 = ((word // 2**12 + 0.5) / 2**52 for word in drawn[:5])
            assert r[row, h] == pytest.approx(-np.log(u1) - np.log(u2), rel=1e-13)
            assert np.exp(log_c[row, h]) == pytest.approx(-np.log(u3) - np.log(u4), rel=1e-13)
            assert beta[row, h] == u5


def test_version_one_of_the_stream_never_changes() -> None:
    assert STREAM_VERSION == 1
    for name, table in zip(("r", "log_c", "beta"), tables(7, 3, 2, 3), strict=True):
        # The logarithm may round differently on another machine; nothing else may differ.
        np.testing.assert_allclose(table.ravel(), GOLDEN[name], rtol=1e-14, err_msg=name)


def test_the_draws_have_the_laws_that_the_algorithm_wants() -> None:
    r, log_c, beta = (table.ravel() for table in tables(11, 0, 8, 5000))
    gamma = stats.gamma(2).cdf
    # Level 1e-3 each, over 40,000 draws; a shape or scale wrong by 5 % falls far below it.
    assert stats.kstest(r, gamma).pvalue > 1e-3
    assert stats.kstest(np.exp(log_c), gamma).pvalue > 1e-3
    assert stats.kstest(beta, "uniform").pvalue > 1e-3
    assert stats.kstest(r * 1.05, gamma).pvalue < 1e-3
    assert (r > 0).all()
    assert 0 < beta.min() < beta.max() < 1


def test_the_draws_of_different_kinds_coordinates_hashes_and_seeds_do_not_correlate() -> None:
    here, there = tables(11, 0, 8, 5000), tables(12, 0, 8, 5000)
    columns = [table.ravel() for table in here + there]
    columns += [np.roll(here[0], 1, axis=0).ravel(), np.roll(here[0], 1, axis=1).ravel()]
    correlations = np.atleast_2d(np.corrcoef(columns))[np.triu_indices(len(columns), 1)]
    # One standard error of each of the 28 is 1/√40,000.
    assert np.abs(correlations).max() < 4 / np.sqrt(40_000)


def test_a_coordinate_has_the_same_draws_alone_as_in_a_large_table() -> None:
    whole = tables(7, 0, 40, 30)
    for coordinate in (0, 1, 17, 39):
        for table, alone in zip(whole, tables(7, coordinate, 1, 30), strict=True):
            assert (table[coordinate] == alone[0]).all()
    for table, narrow in zip(whole, tables(7, 0, 40, 3), strict=True):
        assert (table[:, :3] == narrow).all()


def test_the_largest_seed_draws_its_own() -> None:
    assert not np.isin(tables(MOST, 0, 4, 50)[0], tables(0, 0, 4, 50)[0]).any()
