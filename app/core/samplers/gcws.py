"""Generalized consistent weighted sampling."""

from typing import Literal

from app.core.model import Frozen


class ConsistentWeightedSampling(Frozen):
    """s hashes (i*, t*) whose collision probability is the min-max kernel (GMM paper, algorithm 1); only with `gmm`."""

    kind: Literal["gcws"]
