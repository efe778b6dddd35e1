"""What families have in common whose codes are made of samples (i*, t*), which collide as the min-max kernel says."""

import numpy as np

from app.core.arrays import Array, Matrix, Rows, Whole, row_blocks
from app.core.errors import InvalidOption
from app.core.hashing import estimates
from app.core.hashing.code_laws import MinMaxLaw
from app.core.hashing.encodings import CodeOptions, Codes, Encoder, Encoding, encoder
from app.core.maps.base import FeatureMap
from app.core.maps.optional_results import PAIRS

# The most codes that are held while pairs of vectors are compared.
_CODES_PER_BLOCK = 1 << 20


class MinMaxCodes(FeatureMap):
    """Codes of samples, and the kernel from how many of them agree."""

    usual_encoders = (PAIRS, Encoder(Encoding.zero_bit))

    def encoder_of(self, options: CodeOptions) -> Encoder:
        """The encoder of these options; zero_bit where they name no encoding."""
        if options.rows_per_band is not None:
            raise InvalidOption(
                "rows_per_band is for codes of Fourier maps, of a bit each; a fingerprint of kernel gmm is of one hash",
                "rows_per_band",
            )
        return encoder(options.encoding or Encoding.zero_bit, options.bits, options.bits_of, options.marked)

    def code_law(self, called: str = "this map") -> MinMaxLaw:
        """That of samples."""
        return MinMaxLaw(self.n_output)

    def similarity(self, x: Rows, y: Rows, by: Encoder, gamma: float | None) -> dict[str, Array]:
        """Estimates from codes, and the kernel itself.

        As the rows are at hand, so is the bias of the estimates, which intervals are freed from.
        """
        x, y = self.kernel.in_one_form(x, y)
        # Packed codes are compared unpacked, one by one.
        compared = by._replace(encoding=Encoding.b_bit) if by.encoding is Encoding.packed else by
        n, s = x.shape[0], self.n_output
        agree = estimates.Agreements.none(n)
        exact, true_chance, rbf = np.empty(n), np.empty(n), np.empty(n)
        for block in row_blocks(n, _CODES_PER_BLOCK // s):
            for counted, more in zip(agree, self.agreements(x[block], y[block], compared), strict=True):
                counted[block] = more
            exact[block] = self.exact_pairs(x[block], y[block])
            true_chance[block] = self.chances(x[block], y[block], compared)
            if gamma is not None:
                rbf[block] = self.rbf_pairs(x[block], y[block], gamma)
        chance = estimates.chances(compared, self.spec.input_dim, s, agree.odd_x, agree.odd_y)
        bias = estimates.kernel_bias(exact, chance, true_chance)
        answer = _estimates(agree.codes, chance, s, gamma) | {"exact": exact, "zero_bit": agree.zero_bit / s}
        interval = estimates.kernel_interval(agree.codes, s, chance, bias)
        if gamma is None:
            return answer | {"bias": bias, "interval": interval}
        link_bias = estimates.rbf_bias(exact, bias, rbf, gamma)
        of_mean = estimates.kernel_interval(agree.codes, s, chance)
        of_rbf = {"rbf_bias": link_bias, "rbf_interval": estimates.rbf_interval(of_mean, link_bias, gamma)}
        return answer | {"rbf_exact": rbf, "bias": bias, "interval": interval} | of_rbf

    def similarity_of_codes(self, x: Codes, y: Codes, by: Encoder, gamma: float | None) -> dict[str, Array]:
        """Estimates from codes that are written as `by` says."""
        s = self.n_output
        if by.encoding is Encoding.packed:
            x, y = (by.unpacked(rows, s) for rows in (x, y))
        odd_x, odd_y = (estimates.odd_codes(by, rows) for rows in (x, y))
        counts = estimates.collisions(x, y)
        chance = estimates.chances(by, self.spec.input_dim, s, odd_x, odd_y)
        return _estimates(counts, chance, s, gamma) | {"interval": estimates.kernel_interval(counts, s, chance)}


def _estimates(counts: Whole, chance: Matrix, s: int, gamma: float | None) -> dict[str, Array]:
    """Estimates with the errors of sampling, from how many of s codes agree, and how often they do by chance."""
    estimate = estimates.kernel_estimate(counts / s, s, chance)
    answer: dict[str, Array] = {"estimate": estimate.value, "standard_error": estimate.standard_error}
    if gamma is not None:
        rbf = estimates.rbf_estimate(estimate, gamma)
        answer |= {"rbf_estimate": rbf.value, "rbf_standard_error": rbf.standard_error}
    return answer
