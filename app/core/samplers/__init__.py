"""Samplers of frequencies.

To add one, write a file beside this one and list its class here; if all its frequencies have one weight and it may be
the base of another sampler, list it in `points.PointKinds` instead.
"""

from typing import get_args

from app.core.samplers.base import FrequencySampler
from app.core.samplers.dense_grid import DenseGrid
from app.core.samplers.global_adaptive import GlobalAdaptive
from app.core.samplers.greedy_adaptive import GreedyAdaptive
from app.core.samplers.moment_matching import MomentMatching
from app.core.samplers.points import PointKinds
from app.core.samplers.polynomially_exact import PolynomiallyExact
from app.core.samplers.reweighted_grid import ReweightedGrid
from app.core.samplers.sparse_grid import SparseGrid
from app.core.samplers.structured_orthogonal import StructuredOrthogonal
from app.core.samplers.subsampled_grid import SubsampledGrid
from app.core.samplers.uploaded import Uploaded
from app.core.samplers.weighted import Weighted

FREQUENCY_SAMPLERS: tuple[type[FrequencySampler], ...] = (
    *get_args(PointKinds),
    StructuredOrthogonal,
    MomentMatching,
    DenseGrid,
    SparseGrid,
    SubsampledGrid,
    PolynomiallyExact,
    Weighted,
    GlobalAdaptive,
    GreedyAdaptive,
    ReweightedGrid,
    Uploaded,
)
