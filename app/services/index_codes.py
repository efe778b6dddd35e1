"""The codes that an index keeps of the rows of a map, and what they tell of the similarity of two rows."""

from math import ceil
from typing import NamedTuple

import numpy as np

from app.core.arrays import Matrix, Rows, Whole
from app.core.hashing.code_laws import CodeLaw
from app.core.indexes.banding import Codes
from app.core.maps import FeatureMap
from app.core.progress import Pause, no_pause

# Standard errors by which an estimate may be too low where an exact similarity will decide.
_ERRORS = 3.0
# Of a rate: a law and its inverse are splines, which agree to 2e-9.
_ROUNDING = 1e-8


class IndexCodes(NamedTuple):
    """How an index writes the codes of a map."""

    law: CodeLaw

    @classmethod
    def of(cls, feature_map: FeatureMap, called: str) -> "IndexCodes":
        """Those of a map that `called` names; InvalidInput where it gives none that tell of its kernel."""
        return cls(feature_map.code_law(called))

    @property
    def s(self) -> int:
        """Codes of a row."""
        return self.law.s

    @property
    def bits(self) -> int:
        """Of a code."""
        return self.law.encoder.bits

    def written(self, feature_map: FeatureMap, rows: Rows, pause: Pause = no_pause) -> Codes:
        """The packed codes of rows, (n, ⌈s·bits/8⌉); InvalidInput names those that have none."""
        return feature_map.codes(rows, self.law.encoder, pause=pause)

    def least(self, similarity: float, is_decided_later: bool) -> int:
        """In how many codes rows must agree for their similarity to be estimated as so large, or for it to be likely.

        The latter is for rows that are compared exactly later; then 0 asks for nothing, as no kernel is less.
        """
        if is_decided_later and similarity <= 0:
            return 0
        rate = float(self.law.rates(np.array([max(0.0, similarity)]))[0])
        if is_decided_later:
            rate -= _ERRORS * float(np.sqrt(max(rate * (1 - rate), 1 / self.s) / self.s))
        return max(0, ceil((rate - _ROUNDING) * self.s))

    def similarities(self, counts: Whole) -> tuple[Matrix, Matrix]:
        """Estimates and their standard errors."""
        found = self.law.kernel(counts)
        return found.value, found.standard_error
