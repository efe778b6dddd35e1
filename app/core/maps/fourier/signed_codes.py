"""The signed codes of a Fourier map, and what they tell of its kernel."""

from app.core.arrays import Array, Matrix, Rows, Whole
from app.core.errors import InvalidInput
from app.core.hashing.code_laws import SignedLaw
from app.core.hashing.encodings import Codes, Encoder
from app.core.hashing.signed_codes import estimated, sign_law, written
from app.core.kernels.base import ShiftInvariantKernel
from app.core.maps.fourier.projection import Projection
from app.core.maps.fourier.signs import Signs
from app.core.maps.fourier.spectral import spectral
from app.core.maps.terms import BaseSpec
from app.core.progress import Pause


class SignedCodes:
    """Writes a bit a frequency, and estimates the kernel where the law of its bits tells it."""

    def __init__(self, spec: BaseSpec, kernel: ShiftInvariantKernel, projection: Projection, threads: int) -> None:
        self._spec, self._profile = spec, kernel.profile()
        self._s = projection.n_frequencies
        self._signs = Signs(spec, projection, threads)

    @property
    def nbytes(self) -> int:
        """Memory that it takes, once the first codes are asked for."""
        return self._signs.nbytes

    def of(self, rows: Rows, encoder: Encoder, pause: Pause) -> Codes:
        """The bits of prepared rows, as the encoder writes them."""
        return written(self._signs.of(rows, pause), self._s, encoder)

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
