"""The signed codes of a Fourier map, and what they tell of its kernel."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Floats, Matrix, Rows, Whole
from app.core.compiled import compiled, multiply_add
from app.core.errors import InvalidInput
from app.core.hashing.code_laws import SignedLaw
from app.core.hashing.encodings import Codes, Encoder
from app.core.hashing.signed_codes import Arcs, arcs, estimated, sign_law, written
from app.core.kernels.base import ShiftInvariantKernel
from app.core.maps.fourier.drawing import spectral
from app.core.maps.fourier.features import Phases
from app.core.maps.fourier.projections import Projection
from app.core.maps.terms import BaseSpec
from app.core.progress import Pause

_PER_RADIAN = 1 / (2 * np.pi)


@compiled
def write_signs(
    phases: Floats, offsets: Matrix, half_widths: Matrix, packed: NDArray[np.uint8], first_byte: int
) -> None:
    """Write the bits of k frequencies into the packed bits of n rows, from a byte on.

    Args:
        phases: in the first k columns of n rows.
        offsets: of the arcs, in turns, (k,).
        half_widths: of the arcs, in turns, (k,).
        packed: (n, ⌈s/8⌉).
        first_byte: that of the first frequency.
    """
    k = len(offsets)
    near = np.empty(k, np.uint8)
    for i in range(len(phases)):
        row = phases[i, :k]
        for j in range(k):
            turns = multiply_add(np.float64(row[j]), _PER_RADIAN, offsets[j])
            # From the middle of the arc, of either side; a whole number of turns is no way at all.
            near[j] = abs(turns - np.floor(turns + 0.5)) < half_widths[j]
        for byte in range((k + 7) // 8):
            bits = 0
            for j in range(8 * byte, min(8 * byte + 8, k)):
                bits |= near[j] << (j - 8 * byte)
            packed[i, first_byte + byte] = bits


class SignedCodes:
    """Writes a bit a frequency, and estimates the kernel where the law of its bits tells it.

    Bits are as Raginsky and Lazebnik (2009) define them: for each frequency, on which side of a random threshold the
    cosine of its phase lies. The sign of cos(w·x + b) + t is never computed: whether it is positive depends on where
    the phase lies on the circle, and that is told by one multiplication, one addition and a comparison. So a bit hangs
    on no library's cosine, and it is the same for every order, batch and form of the rows, as phases are.
    """

    def __init__(self, spec: BaseSpec, kernel: ShiftInvariantKernel, projection: Projection, threads: int) -> None:
        self._spec, self._profile = spec, kernel.profile()
        self._s, self._phases = projection.n_frequencies, Phases(spec, projection, threads)
        self.nbytes = 16 * self._s
        """Memory of the arcs, once the first codes are asked for."""

    @cached_property
    def _arcs(self) -> Arcs:
        return arcs(self._spec.seed, self._s)

    def of(self, rows: Rows, encoder: Encoder, pause: Pause) -> Codes:
        """The bits of prepared rows (n, d), as the encoder writes them.

        Packed, frequency j is bit j mod 8 of byte ⌊j/8⌋.
        """
        packed = np.empty((rows.shape[0], -(-self._s // 8)), np.uint8)

        def write(block: slice, of: slice, phases: Floats) -> None:
            write_signs(phases, self._arcs.offsets[of], self._arcs.half_widths[of], packed[block], of.start // 8)

        self._phases.use(rows, slice(0, self._s), write, pause)
        return written(packed, self._s, encoder)

    def warnings(self) -> tuple[str, ...]:
        """Why there is no law that tells the kernel, if there is none."""
        if (why := spectral(self._spec)[1].off_law(self._spec.input_dim)) is not None:
            reason = f"frequencies of sampler {self._spec.sampler.kind} {why}"
        elif self._profile is None:
            reason = "signed codes tell the kernel where it is gaussian, laplacian, matern or correlation_rbf"
        else:
            return ()
        return (f"{reason}: there is the rate of agreement alone, and no estimate",)

    def law(self, called: str) -> SignedLaw:
        """That of the kernel; InvalidInput where no law tells it."""
        doubts = self.warnings()
        if self._profile is None or doubts:
            raise InvalidInput(f"{called} has codes that do not tell its kernel; {doubts[0]}")
        return SignedLaw(self._s, sign_law(self._profile))

    def told(self, counts: Whole, by: Encoder, exact: Matrix | None = None) -> dict[str, Array]:
        """The answer for pairs of which so many codes agree, with the kernel where it is known."""
        if self._profile is not None and not self.warnings():
            return estimated(counts, self._s, by, sign_law(self._profile), exact)
        rates = {"agreement": counts / (self._s // by.rows_per_band)}
        return rates if exact is None else rates | {"exact": exact}
