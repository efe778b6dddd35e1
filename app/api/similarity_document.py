"""The members of an answer of /similarity, described for the OpenAPI document."""

from app.api.array_documents import answer_of
from app.api.schemas import NUMBERS, NUMBERS_OR_NULL, list_of, with_warnings

_INTERVALS = list_of(list_of({"type": ["number", "null"]}, minItems=2, maxItems=2))
_SIMILARITIES = {
    "estimate": {
        **NUMBERS_OR_NULL,
        "description": "Of the kernel; corrected for chance, or of signed codes of rows far apart, it may be below 0. "
        "It, its standard error and its interval are null (in .npy NaN) where one bit of the index was taken of two "
        "rows of one sign: it is always the same. They are not there where no law ties signed codes to the kernel; a "
        "warning says why.",
    },
    "standard_error": {
        **NUMBERS_OR_NULL,
        "description": "√(g(1 − g)/s) of the rate g at which codes agree, divided by 1 − c where chance collisions at "
        "the rate c are corrected; of signed codes, half of how far the estimates at g ± that lie apart. It is 0 where "
        "all codes agree or none does, which is no certainty: see `interval`.",
    },
    "agreement": {**NUMBERS, "description": "Of Fourier maps: the share of signed codes, or fingerprints, that agree."},
    "rbf_estimate": {**NUMBERS_OR_NULL, "description": "With gamma: of e^(−γ(1 − ρ)) (GMM paper, theorem 4)."},
    "rbf_standard_error": {
        **NUMBERS_OR_NULL,
        "description": "With gamma: the error of sampling alone of rbf_estimate. Its bias, which more hashes do not "
        "make smaller, is often larger; codes do not show it, vectors have it in `rbf_bias`.",
    },
    "exact": {**NUMBERS, "description": "For vectors: the kernel itself."},
    "zero_bit": {**NUMBERS, "description": "For vectors, of kernel gmm: the rate at which i* alone agrees."},
    "rbf_exact": {**NUMBERS, "description": "For vectors, with gamma: e^(−γ(1 − ρ)) itself."},
    "bias": {
        **NUMBERS_OR_NULL,
        "description": "For vectors: what the estimate is on average above `exact`, reckoned from the two rows. It is "
        "0 for pairs, fingerprints and bits_of=pair. Signed codes have one too, of order 1/s: reckoned from `exact` "
        "or, without vectors, from the estimate.",
    },
    "interval": {
        **_INTERVALS,
        "description": "Not in .npy: [low, high], which holds the kernel 95 times in 100 (mid-p interval of the rate). "
        "Of codes of i* alone, whose bias is not known, it holds the probability that i* are equal instead, "
        "which is the kernel or more; for vectors the bias is taken out, which is reckoned less well where two "
        "to eight columns carry the weight together.",
    },
    "rbf_bias": {
        **NUMBERS_OR_NULL,
        "description": "For vectors, with gamma: what rbf_estimate is above `rbf_exact` however many hashes there are, "
        "as the link of theorem 4 is not exact.",
    },
    "rbf_interval": {
        **_INTERVALS,
        "description": "For vectors, with gamma, not in .npy: [low, high], freed from `rbf_bias`, which holds "
        "e^(−γ(1 − ρ)) 95 times in 100.",
    },
}
SIMILARITY_ANSWER = answer_of(
    "A number for each pair of rows, or two; in .npy the members of one number are stacked in this order, those that "
    "are there.",
    with_warnings(
        {
            "title": "Similarities",
            "type": "object",
            "properties": _SIMILARITIES,
        }
    ),
)
