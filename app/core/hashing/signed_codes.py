"""Signed codes: their random parameters, the encoding of their bits, and the kernel from how many agree.

The random parameters come from a counter-based stream of their own, version 1.

A signed code is the sign of cos(w·x + b) + t, b uniform on the circle and t on [−1, 1] (Raginsky, Lazebnik:
Locality-sensitive binary codes from shift-invariant kernels; NIPS 2009). The bit is 1 on an arc of phases. The middle
of the arc is `offset` turns before 0, and it is `half_width` turns wide on either side: cos(2π·half_width) = −t.

These parameters are not among the frozen arrays, so maps stored before signed codes existed have codes too. A draw is a
pure function of seed, version and number of the frequency, in additions, multiplications, divisions and square roots of
IEEE 754, each rounded separately: it has the same bits on every machine. Philox4x64-10 with the key (seed, "sign" and
the version) and the counter (frequency, 0, 0, 0) yields words. The upper 52 bits of the first two become uniforms
u₁, u₂ in (0, 1). u₁ is the offset, and t = 2u₂ − 1.

The law (`SignLaw`) says how often signed codes of two rows differ, for kernels that are functions of one distance. So
the kernel can be computed from that rate.

Two rows x and y whose phases are θ apart have different bits with the probability (2/π)|sin(θ/2)|. Averaged over
independent frequencies of the kernel's law, with k(0) = 1, this is

    p = (8/π²) Σ_{m≥1} (1 − k(m(x − y)))/(4m² − 1),

as |sin(θ/2)| has the Fourier series (2/π) − (4/π) Σ cos(mθ)/(4m² − 1) (Raginsky and Lazebnik, 2009, theorem 1). If k is
a function of one distance r, which for m(x − y) is m times that for x − y, then p is a function of r, and determines k.
"""

from functools import lru_cache
from math import comb
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from app.core.arrays import Array, Floats, Matrix, Whole, row_blocks
from app.core.compiled import jit, multiply_add
from app.core.errors import InvalidOption
from app.core.hashing.encodings import CodeOptions, Codes, Encoder, Encoding, mix_words
from app.core.hashing.estimates import Estimate, rate_intervals
from app.core.hashing.parameter_stream import philox
from app.core.kernels.base import ShiftInvariantKernel
from app.core.progress import Pause, no_pause

SIGN_STREAM_VERSION = 1
"""Version of the stream. Maps store no version, which means 1."""

_TAG = int.from_bytes(b"sign", "big") << 32
_FREQUENCIES_PER_BLOCK = 1 << 12
# Terms of the series of arcsin √y/√y in powers of y; with y < .039 the next term is below 1e-18.
_ARCSINE_TERMS = 11


class Arcs(NamedTuple):
    """For each frequency, the arc of phases whose bit is 1, in turns: (s,) each."""

    offsets: Matrix
    """In (0, 1): the middle of the arc is this many turns before a whole number of turns."""
    half_widths: Matrix
    """Half the width of the arc, in (0, ½)."""


def arcs(seed: int, s: int) -> Arcs:
    """Draw the arcs of frequencies 0 to s − 1."""
    found = Arcs(np.empty(s), np.empty(s))
    key = np.uint64(seed), np.uint64(_TAG | SIGN_STREAM_VERSION)
    for block in row_blocks(s, _FREQUENCIES_PER_BLOCK):
        words = np.zeros((4, block.stop - block.start), np.uint64)
        words[0] = np.arange(block.start, block.stop, dtype=np.uint64)
        philox(key, 0, words)
        uniforms = ((words[:2] >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
        found.offsets[block] = uniforms[0]
        found.half_widths[block] = _half_widths(uniforms[1])
    return found


def _half_widths(uniforms: Matrix) -> Matrix:
    """Compute arccos(1 − 2u)/2π = arcsin(√u)/π, in turns, of uniforms (n,) in (0, 1), to a few units in the last place.

    Libraries round arcsines differently. Here angles above π/4 are replaced by their complements, all are halved twice
    by sin²(a/2) = sin²a/(2(1 + cos a)), and the series of the arcsine is summed.
    """
    small = np.minimum(uniforms, 1 - uniforms)
    squares = small
    for _ in range(2):
        squares = squares / (2 * (1 + np.sqrt(1 - squares)))
    series = np.zeros(len(squares))
    for coefficient in reversed(_coefficients()):
        series = series * squares + coefficient
    turns = np.sqrt(squares) * series * (4 / np.pi)
    return np.where(uniforms > 0.5, 0.5 - turns, turns)


def _coefficients() -> list[float]:
    """Return (2k)!/(4^k (k!)² (2k + 1)) for k from 0 on, each the nearest double."""
    return [comb(2 * k, k) / (4**k * (2 * k + 1)) for k in range(_ARCSINE_TERMS)]


UNRELATED = 4 / np.pi**2
"""Rate at which bits differ if the kernel is 0; no law has a higher rate."""

# Terms of the series that are summed. The rest is an integral over log m: its panels, their width, and nodes in each.
_TERMS, _PANELS, _PANEL_WIDTH, _NODES_PER_PANEL = 32, 15, 2.0, 10
# Nodes of the splines of the law: largest |log odds| of kernels, and number of nodes. Then the range of logarithms of
# distances that is searched for nodes, and halvings of it.
_MOST_LOG_ODDS, _NODES = 25.0, 401
_LEAST_LOG, _MOST_LOG, _HALVINGS = -690.0, 690.0, 60
# From this share of `UNRELATED` on, the law is continued as a straight line.
_NEARLY_UNRELATED = 1 - 1e-9
# Smaller shares are replaced by this one.
_LEAST_SHARE = 1e-300


class SignLaw:
    """The law of one kernel k(r), which falls from k(0) = 1 to 0: how often bits of signed codes differ.

    Args:
        profile: the kernel on rows of one entry, at distance r.
    """

    def __init__(self, profile: ShiftInvariantKernel) -> None:
        self._profile = profile
        log_odds = np.linspace(_MOST_LOG_ODDS, -_MOST_LOG_ODDS, _NODES)
        distances = self._distances(log_odds)
        kernels = self._kernel(distances)
        # Some kernels come this near to 0 or 1 at no finite distance. Beyond their last nodes the law is continued as
        # the power law that holds there.
        there = (kernels > 0) & (kernels < 1)
        there &= np.abs(_log_odds(np.where(there, kernels, 0.5)) - log_odds) < 1e-3
        differ, agree = self._rates(distances[there])
        of_shares = np.log(differ) - np.log(agree)
        self._of_kernel = _Line(log_odds[there][::-1], of_shares[::-1])
        self._of_rate = _Line(of_shares, log_odds[there])
        least = _from_log_odds(self._of_rate(_log_odds(np.array([_NEARLY_UNRELATED]))))
        self._slope = float(least[0]) / (UNRELATED * (1 - _NEARLY_UNRELATED))

    def rates(self, kernels: Matrix) -> Matrix:
        """Return the rates p of kernels in [0, 1], (n,)."""
        inside = (kernels > 0) & (kernels < 1)
        shares = _from_log_odds(self._of_kernel(_log_odds(np.where(inside, kernels, 0.5))))
        return UNRELATED * np.where(inside, shares, kernels <= 0)

    def kernels(self, rates: Matrix) -> Matrix:
        """Return the kernel of each p, (n,), at most 1.

        No law has p above 4/π² = .405, but the observed share of differing bits may be higher. The kernel is then below
        0, on a straight continuation of the law: −(p − .405)·3π²/8 for most kernels. So the mean of estimates is right
        for kernels near 0.
        """
        shares = np.clip(rates / UNRELATED, _LEAST_SHARE, _NEARLY_UNRELATED)
        found = np.where(rates > 0, _from_log_odds(self._of_rate(_log_odds(shares))), 1.0)
        far: Matrix = self._slope * (UNRELATED - rates)
        return np.where(rates / UNRELATED > _NEARLY_UNRELATED, far, found)

    def rates_at(self, distances: Matrix) -> Matrix:
        """Return the rates p at distances r, (n,)."""
        return self._rates(distances)[0]

    def _rates(self, distances: Matrix) -> tuple[Matrix, Matrix]:
        """Return rates p at distances r, and 4/π² − p, (n,), summed separately so that both keep digits when small."""
        m = np.arange(1, _TERMS + 2)
        kernels, factors = self._kernel(np.multiply.outer(distances, m)), 1 / (4 * m**2 - 1)
        nodes, weights = np.polynomial.legendre.leggauss(_NODES_PER_PANEL)
        starts = _PANEL_WIDTH * np.arange(_PANELS)[:, None]
        # Nodes of the integral from _TERMS + ½ on, in log m.
        x = (_TERMS + 0.5) * np.exp(starts + _PANEL_WIDTH * (nodes + 1) / 2).reshape(-1)
        beyond = self._kernel(np.multiply.outer(distances, x))
        measure = np.tile(weights, _PANELS) * (_PANEL_WIDTH / 2) * x / (4 * x**2 - 1)

        def total(terms: Matrix, rest: Matrix) -> Matrix:
            # A sum continued as an integral, by the midpoint rule with its first correction.
            found: Matrix = terms[:, :-1].sum(axis=1) + (terms[:, -1] - terms[:, -2]) / 24 + rest.sum(axis=1)
            return (8 / np.pi**2) * found

        return total((1 - kernels) * factors, (1 - beyond) * measure), total(kernels * factors, beyond * measure)

    def _kernel(self, distances: Matrix) -> Matrix:
        column = np.minimum(distances, np.finfo(np.float64).max).reshape(-1, 1)
        return self._profile.gram(np.zeros((1, 1)), column).reshape(distances.shape)

    def _distances(self, log_odds: Matrix) -> Matrix:
        """Return the distances at which the kernel has these log odds, or the nearest ones in range."""
        wanted = _from_log_odds(log_odds)
        low, high = np.full(len(wanted), _LEAST_LOG), np.full(len(wanted), _MOST_LOG)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            nearer = self._kernel(np.exp(middle)) > wanted
            low, high = np.where(nearer, middle, low), np.where(nearer, high, middle)
        found: Matrix = np.exp((low + high) / 2)
        return found


class _Line:
    """A cubic spline through points, continued as straight lines beyond them."""

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
    """Return the law of a kernel on rows of one entry with length scale 1; cached: it takes a tenth of a second."""
    return SignLaw(profile)


def _log_odds(shares: Matrix) -> Matrix:
    return np.log(shares) - np.log1p(-shares)


def _from_log_odds(log_odds: Matrix) -> Matrix:
    """Return shares, with relative errors as small as those of scipy's expit near 0, and as small near 1 − 1e-17."""
    found: Matrix = np.where(log_odds < 0, np.exp(np.minimum(log_odds, 0)), 1.0) / (1 + np.exp(-np.abs(log_odds)))
    return found


SIGNED = Encoder(Encoding.packed, 1)
"""One bit per frequency, the default encoding of signed codes."""

_FINGERPRINT_BITS = (64, 32)
_DEFAULT_ROWS_PER_BAND = 16
_WORD = 64
_PER_RADIAN = 1 / (2 * np.pi)
# Bits that are unpacked at a time.
_BITS_PER_BLOCK = 1 << 22


def signed_encoder(options: CodeOptions, s: int) -> Encoder:
    """Return the encoder of these options for s bits, packed by default; InvalidOption if one does not apply."""
    wanted, bits, rows_per_band = options.encoding or Encoding.packed, options.bits, options.rows_per_band
    if wanted not in (Encoding.packed, Encoding.fingerprint):
        raise InvalidOption(
            f"encoding {wanted.value} is for hashes of kernel gmm; for a Fourier map take packed or fingerprint",
            "encoding",
        )
    if options.bits_of is not None:
        raise InvalidOption("bits_of is for hashes of kernel gmm; a Fourier map has one bit a frequency", "bits_of")
    if options.marked:
        raise InvalidOption("on_zero=mark is for kernel gmm; on a Fourier map every row has a code", "on_zero")
    if wanted is Encoding.packed:
        if bits not in (None, 1):
            raise InvalidOption(f"bits is {bits}; a Fourier map has one bit a frequency", "bits")
        if rows_per_band is not None:
            raise InvalidOption("rows_per_band is for encoding fingerprint; packed has the bits one by one", _BAND)
        return SIGNED
    bits = _FINGERPRINT_BITS[0] if bits is None else bits
    if bits not in _FINGERPRINT_BITS:
        raise InvalidOption(f"bits is {bits}; a fingerprint has 32 or 64", "bits")
    if rows_per_band is None:
        rows_per_band = min(_DEFAULT_ROWS_PER_BAND, s)
    if not 1 <= rows_per_band <= s:
        raise InvalidOption(f"expected rows_per_band from 1 to {s}, the bits of this map, got {rows_per_band}", _BAND)
    return Encoder(Encoding.fingerprint, bits, rows_per_band=rows_per_band)


_BAND = "rows_per_band"


def write_bits(packed: Codes, s: int, by: Encoder) -> Codes:
    """Encode packed bits (n, ⌈s/8⌉) by `by`.

    The fingerprint of band k, which has bits k·r to k·r + r − 1, is mixed(k) at first. For each word of up to 64 of its
    bits, the first the lowest, it becomes mixed(fingerprint + word). Bits after the last whole band are left out.
    """
    if by.encoding is Encoding.packed:
        return packed
    (n_bands,), dtype = by.row(s, 0)
    each = by.rows_per_band
    found = np.empty((len(packed), n_bands), dtype)
    starts = mix_words(np.arange(n_bands, dtype=np.uint64))
    for i in range(0, len(packed), max(1, _BITS_PER_BLOCK // s)):
        some = packed[i : i + max(1, _BITS_PER_BLOCK // s)]
        bits = np.unpackbits(some, axis=1, count=n_bands * each, bitorder="little").reshape(len(some), n_bands, each)
        prints = np.broadcast_to(starts, (len(some), n_bands))
        for first in range(0, each, _WORD):
            prints = mix_words(prints + _words(bits[:, :, first : first + _WORD]))
        found[i : i + len(some)] = prints & np.uint64((1 << by.bits) - 1)
    return found


def _words(bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Convert bits (n, bands, up to 64), the first the lowest of each word, to words (n, bands)."""
    octets = np.zeros((*bits.shape[:2], _WORD // 8), np.uint8)
    packed = np.packbits(bits, axis=2, bitorder="little")
    octets[:, :, : packed.shape[2]] = packed
    words: NDArray[np.uint64] = octets.view("<u8")[:, :, 0].astype(np.uint64)
    return words


@jit
def write_signs(
    phases: Floats, offsets: Matrix, half_widths: Matrix, packed: NDArray[np.uint8], first_byte: int
) -> None:
    """Write the bits of k frequencies into the packed bits of n rows, from `first_byte` on.

    Args:
        phases: n rows, with the phases in the first k columns.
        offsets: offsets of the arcs, in turns, (k,).
        half_widths: half widths of the arcs, in turns, (k,).
        packed: packed bits, (n, ⌈s/8⌉).
        first_byte: byte of the first frequency.
    """
    k = len(offsets)
    near = np.empty(k, np.uint8)
    for i in range(len(phases)):
        row = phases[i, :k]
        for j in range(k):
            turns = multiply_add(np.float64(row[j]), _PER_RADIAN, offsets[j])
            # Distance from the middle of the arc, to either side, without whole turns.
            near[j] = abs(turns - np.floor(turns + 0.5)) < half_widths[j]
        for byte in range((k + 7) // 8):
            bits = 0
            for j in range(8 * byte, min(8 * byte + 8, k)):
                bits |= near[j] << (j - 8 * byte)
            packed[i, first_byte + byte] = bits


# Packed bytes compared at a time.
_BYTES_PER_BLOCK = 1 << 22
_PAIRS_PER_BLOCK = 1 << 16


def agreeing(x: Codes, y: Codes, s: int, by: Encoder, pause: Pause = no_pause) -> Whole:
    """Count the bits, or fingerprints of bands, of row i of x and row i of y that agree, (n,)."""
    found = np.empty(len(x), np.int64)
    step = max(1, _BYTES_PER_BLOCK // max(1, x[:1].nbytes))
    for i in range(0, len(x), step):
        pause()
        some_x, some_y = x[i : i + step], y[i : i + step]
        if by.encoding is Encoding.packed:
            differ = some_x ^ some_y
            if s % 8:  # bits after the last are padding
                np.bitwise_and(differ[:, -1], (1 << s % 8) - 1, out=differ[:, -1])
            found[i : i + step] = s - np.bitwise_count(differ).sum(axis=1, dtype=np.int64)
        else:
            found[i : i + step] = (some_x == some_y).sum(axis=1)
    return found


def estimate_kernel(counts: Whole, s: int, by: Encoder, law: SignLaw, exact: Matrix | None) -> dict[str, Array]:
    """Estimate the kernel of pairs from how many of their codes agree, by inverting the law.

    The bias of the estimate's mean, of order 1/s, is computed at the rate of agreement that the exact kernel implies,
    or, if that is not known, at the observed rate: the mean of the estimates one standard error of the rate below and
    above it, less the estimate at it. The standard error is half the difference of two such estimates at the observed
    rate. It is 0 if all codes agree, which is no certainty. The interval is that of the rate, mapped by the law, which
    is monotone: so it covers as often. It is clipped to [0, 1].

    Args:
        counts: how many codes agree, (n,).
        s: number of bits.
        by: encoder of the codes.
        law: law of the kernel.
        exact: the kernel, (n,), or None if it is not known.
    """
    n_codes = s // by.rows_per_band
    if n_codes < len(counts):  # fewer possible counts than pairs: each is computed once
        every: dict[str, Array] = _of_counts(np.arange(n_codes + 1), by, law, n_codes)
        found = {name: numbers[counts] for name, numbers in every.items()}
    else:
        found = _of_counts(counts, by, law, n_codes)
    if exact is None:
        return found
    for block in row_blocks(len(exact), _PAIRS_PER_BLOCK):
        found["bias"][block] = _bias((1 - law.rates(exact[block])) ** by.rows_per_band, by, law, n_codes)
    names = [*found]
    names.insert(names.index("bias"), "exact")
    return {name: (found | {"exact": exact})[name] for name in names}


def _of_counts(counts: Whole, by: Encoder, law: SignLaw, n_codes: int) -> dict[str, Array]:
    """Return the results of `estimate_kernel` for counts, if no kernel is known."""
    rates = counts / n_codes
    value, low, high = _around(rates, by, law, n_codes)
    return {
        "estimate": value,
        "standard_error": (high - low) / 2,
        "agreement": rates,
        "bias": _bias(rates, by, law, n_codes),
        "interval": np.clip(_kernels(rate_intervals(counts, n_codes), by, law), 0, 1),
    }


def kernel_of_bits(counts: Whole, s: int, law: SignLaw) -> Estimate:
    """Estimate the kernel of pairs from how many of s bits agree, with its standard error; see `estimate_kernel`."""
    value, low, high = _around(counts / s, SIGNED, law, s)
    return Estimate(value, (high - low) / 2)


def _bias(rates: Matrix, by: Encoder, law: SignLaw, n_codes: int) -> Matrix:
    middle, low, high = _around(rates, by, law, n_codes)
    return (low + high) / 2 - middle


def _around(rates: Matrix, by: Encoder, law: SignLaw, n_codes: int) -> tuple[Matrix, Matrix, Matrix]:
    """Return the kernels at the rates, and at one standard error below and above them."""
    error = np.sqrt(rates * (1 - rates) / n_codes)
    low, high = np.maximum(rates - error, 0), np.minimum(rates + error, 1)
    return _kernels(rates, by, law), _kernels(low, by, law), _kernels(high, by, law)


def _kernels(rates: Matrix, by: Encoder, law: SignLaw) -> Matrix:
    """Return the kernels of shares of codes that agree, elementwise; from bands they are never below 0."""
    differ = 1 - rates ** (1 / by.rows_per_band)
    return law.kernels(np.minimum(differ, UNRELATED) if by.rows_per_band > 1 else differ)
