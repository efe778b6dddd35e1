"""The codes that an index keeps of the rows of a map, and what they tell of the similarity of two rows."""

from math import ceil
from typing import NamedTuple

import numpy as np

from app.core.arrays import Matrix, Rows, Whole
from app.core.hashing.encodings import BitsOf, Encoder, Encoding
from app.core.hashing.estimates import Estimate, kernel_estimate
from app.core.indexes.banding import Codes
from app.core.maps import FeatureMap, Gives
from app.core.progress import Pause, no_pause

# Of a sample (i*, t*) whole: estimates are unbiased, and one in 256 other samples has the same.
_BITS = 8
# Standard errors by which an estimate may be too low where an exact similarity will decide.
_ERRORS = 3.0


class IndexCodes(NamedTuple):
    """How an index writes the codes of a map."""

    s: int
    """Codes of a row."""
    bits: int
    """Of a code."""
    encoder: Encoder

    @classmethod
    def of(cls, feature_map: FeatureMap, called: str) -> "IndexCodes":
        """Those of a map that `called` names; InvalidInput where it gives no codes."""
        feature_map.check_gives(Gives.codes, called)
        feature_map.check_gives(Gives.samples, called)
        return cls(feature_map.n_output, _BITS, Encoder(Encoding.packed, _BITS, BitsOf.pair))

    def written(self, feature_map: FeatureMap, rows: Rows, pause: Pause = no_pause) -> Codes:
        """The packed codes of rows, (n, ⌈s·bits/8⌉); InvalidInput names those that have none."""
        return feature_map.codes(rows, self.encoder, pause=pause)

    @property
    def chance(self) -> float:
        """How often codes of different samples agree."""
        return 2.0**-self.bits

    def estimate(self, counts: Whole) -> Estimate:
        """The similarity of two rows that agree in so many codes."""
        return kernel_estimate(np.asarray(counts) / self.s, self.s, self.chance)

    def least(self, similarity: float, is_decided_later: bool) -> int:
        """In how many codes rows must agree for their similarity to be estimated as so large, or for it to be likely.

        The latter is for rows that are compared exactly later.
        """
        rate = max(0.0, similarity) * (1 - self.chance) + self.chance
        if is_decided_later:
            rate -= _ERRORS * float(np.sqrt(max(rate * (1 - rate), 1 / self.s) / self.s))
        return max(0, ceil(round(rate * self.s, 9))) if similarity > 0 or is_decided_later else 0

    def similarities(self, counts: Whole) -> tuple[Matrix, Matrix]:
        """Estimates and their standard errors."""
        found = self.estimate(counts)
        return found.value, found.standard_error
