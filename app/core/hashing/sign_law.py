"""How often signed codes of two rows differ, for kernels that are functions of one distance, and the kernel from that.

Two rows x and y whose phases are θ apart have different bits with the probability (2/π)|sin(θ/2)|. For independent
frequencies of the kernel's law that is on average, with k(0) = 1,

    p = (8/π²) Σ_{m≥1} (1 − k(m(x − y)))/(4m² − 1),

as |sin(θ/2)| has the Fourier series (2/π) − (4/π) Σ cos(mθ)/(4m² − 1) (Raginsky and Lazebnik, 2009, theorem 1). Where k
is a function of one distance r, of which m(x − y) has m times, p is one too, and it tells k.
"""

from functools import lru_cache

import numpy as np
import scipy

from app.core.arrays import Matrix
from app.core.kernels.base import ShiftInvariantKernel

UNRELATED = 4 / np.pi**2
"""How often bits differ where the kernel is 0; no law differs more often."""

# Terms of the series that are summed; from there on it is an integral over log m, on so many panels, so wide.
_TERMS, _PANELS, _PANEL_WIDTH, _NODES_PER_PANEL = 32, 15, 2.0, 10
# Kernels between which the law is known by a spline, by their log odds ±; and logarithms of distances there may be.
_MOST_LOG_ODDS, _NODES = 25.0, 401
_LEAST_LOG, _MOST_LOG, _HALVINGS = -690.0, 690.0, 60
# From this share of `UNRELATED` on, the law goes on as a straight line.
_NEARLY_UNRELATED = 1 - 1e-9
# Shares below it count as it.
_LEAST_SHARE = 1e-300


class SignLaw:
    """The law of one kernel k(r) with k(0) = 1, which falls to 0.

    Args:
        profile: the kernel on rows of one entry, of which r is the distance.
    """

    def __init__(self, profile: ShiftInvariantKernel) -> None:
        self._profile = profile
        log_odds = np.linspace(_MOST_LOG_ODDS, -_MOST_LOG_ODDS, _NODES)
        distances = self._distances(log_odds)
        kernels = self._kernel(distances)
        # Kernels of which no distance that is a number comes so near to 0 or 1 have a law all the same: beyond the
        # last nodes it goes on as the power law that it is there.
        there = (kernels > 0) & (kernels < 1)
        there &= np.abs(_log_odds(np.where(there, kernels, 0.5)) - log_odds) < 1e-3
        differ, agree = self._rates(distances[there])
        of_shares = np.log(differ) - np.log(agree)
        self._of_kernel = _Line(log_odds[there][::-1], of_shares[::-1])
        self._of_rate = _Line(of_shares, log_odds[there])
        least = _from_log_odds(self._of_rate(_log_odds(np.array([_NEARLY_UNRELATED]))))
        self._slope = float(least[0]) / (UNRELATED * (1 - _NEARLY_UNRELATED))

    def rates(self, kernels: Matrix) -> Matrix:
        """Rates p of kernels in [0, 1], (n,)."""
        inside = (kernels > 0) & (kernels < 1)
        shares = _from_log_odds(self._of_kernel(_log_odds(np.where(inside, kernels, 0.5))))
        return UNRELATED * np.where(inside, shares, kernels <= 0)

    def kernels(self, rates: Matrix) -> Matrix:
        """The kernel of each p, (n,), at most 1.

        No law has p above 4/π² = .405, but a share of bits that differ may be. It is then below 0, on the line that the
        law comes in on: −(p − .405)·3π²/8 for most kernels. So its mean is right for kernels near 0.
        """
        shares = np.clip(rates / UNRELATED, _LEAST_SHARE, _NEARLY_UNRELATED)
        found = np.where(rates > 0, _from_log_odds(self._of_rate(_log_odds(shares))), 1.0)
        far: Matrix = self._slope * (UNRELATED - rates)
        return np.where(rates / UNRELATED > _NEARLY_UNRELATED, far, found)

    def rates_at(self, distances: Matrix) -> Matrix:
        """Rates p of distances r, (n,)."""
        return self._rates(distances)[0]

    def _rates(self, distances: Matrix) -> tuple[Matrix, Matrix]:
        """Rates p of distances r, and 4/π² − p, each a sum of its own that keeps its digits where it is small, (n,)."""
        m = np.arange(1, _TERMS + 2)
        kernels, factors = self._kernel(np.multiply.outer(distances, m)), 1 / (4 * m**2 - 1)
        nodes, weights = np.polynomial.legendre.leggauss(_NODES_PER_PANEL)
        starts = _PANEL_WIDTH * np.arange(_PANELS)[:, None]
        # From _TERMS + ½ on, in log m.
        x = (_TERMS + 0.5) * np.exp(starts + _PANEL_WIDTH * (nodes + 1) / 2).reshape(-1)
        beyond = self._kernel(np.multiply.outer(distances, x))
        measure = np.tile(weights, _PANELS) * (_PANEL_WIDTH / 2) * x / (4 * x**2 - 1)

        def total(terms: Matrix, rest: Matrix) -> Matrix:
            # The midpoint rule for sums, with its first correction.
            found: Matrix = terms[:, :-1].sum(axis=1) + (terms[:, -1] - terms[:, -2]) / 24 + rest.sum(axis=1)
            return (8 / np.pi**2) * found

        return total((1 - kernels) * factors, (1 - beyond) * measure), total(kernels * factors, beyond * measure)

    def _kernel(self, distances: Matrix) -> Matrix:
        column = np.minimum(distances, np.finfo(np.float64).max).reshape(-1, 1)
        return self._profile.gram(np.zeros((1, 1)), column).reshape(distances.shape)

    def _distances(self, log_odds: Matrix) -> Matrix:
        """Distances where the kernel has these log odds, or the nearest that are numbers."""
        wanted = _from_log_odds(log_odds)
        low, high = np.full(len(wanted), _LEAST_LOG), np.full(len(wanted), _MOST_LOG)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            nearer = self._kernel(np.exp(middle)) > wanted
            low, high = np.where(nearer, middle, low), np.where(nearer, high, middle)
        found: Matrix = np.exp((low + high) / 2)
        return found


class _Line:
    """A cubic spline through points, which goes on straight beyond them."""

    def __init__(self, x: Matrix, y: Matrix) -> None:
        self._spline = scipy.interpolate.make_interp_spline(x, y, k=3)
        self._ends = x[[0, -1]]
        self._slopes = self._spline(self._ends, 1)

    def __call__(self, x: Matrix) -> Matrix:
        within = np.clip(x, *self._ends)
        slopes = np.where(x < self._ends[0], *self._slopes)
        found: Matrix = self._spline(within) + slopes * (x - within)
        return found


@lru_cache(32)
def sign_law(profile: ShiftInvariantKernel) -> SignLaw:
    """The law of a kernel on rows of one entry, of length scale 1; made once, as it takes a tenth of a second."""
    return SignLaw(profile)


def _log_odds(shares: Matrix) -> Matrix:
    return np.log(shares) - np.log1p(-shares)


def _from_log_odds(log_odds: Matrix) -> Matrix:
    """Shares; scipy's expit has as small relative errors near 0, and this as small ones near 1 − 1e-17."""
    found: Matrix = np.where(log_odds < 0, np.exp(np.minimum(log_odds, 0)), 1.0) / (1 + np.exp(-np.abs(log_odds)))
    return found
