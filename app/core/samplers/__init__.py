"""The samplers of frequencies.

A new one is a file of its own and its name here, or in `points` if it weights all alike.
"""

from typing import get_args

from pydantic import TypeAdapter

from app.core.samplers.base import FrequencySampler
from app.core.samplers.dense_grid import DenseGrid
from app.core.samplers.global_adaptive import GlobalAdaptive
from app.core.samplers.greedy_adaptive import GreedyAdaptive
from app.core.samplers.moment_matching import MomentMatching
from app.core.samplers.points import PointKinds, Points
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

_PLAIN = "monte_carlo", "orthogonal", "latin_hypercube", "halton", "sobol", "lattice", "digital_net"
_POINTS = TypeAdapter(tuple[Points, ...]).validate_python([{"kind": kind} for kind in _PLAIN])
TRIED_SAMPLERS: tuple[FrequencySampler, ...] = (
    *_POINTS,
    *(MomentMatching(kind="moment_matching", base=base) for base in _POINTS if base.kind in ("monte_carlo", "sobol")),
    *(SparseGrid(kind="sparse_grid", level=level) for level in (1, 2)),
    StructuredOrthogonal(kind="structured_orthogonal"),
)
"""Samplers that recommendations try unless some are named: all that are sometimes the best, or a yardstick. Not
`antithetic`, which loses in real forms, nor rules that grow or are solved for too slowly to try."""
