"""Which map to take: samplers and sizes tried on a client's rows, and ranked."""

from app.core.recommendations.answer import Ranking, drawing, ranking
from app.core.recommendations.candidates import DEFAULT_SAMPLERS, Wanted, candidates
from app.core.recommendations.length_scale import Heuristic, length_scale
from app.core.recommendations.memory import fitting, recommended_bytes, widest_map_bytes
from app.core.recommendations.options import KernelMember, RecommendationOptions
from app.core.recommendations.trials import MOST_ROWS, Recommendation, Trial, recommended

__all__ = [
    "DEFAULT_SAMPLERS",
    "MOST_ROWS",
    "Heuristic",
    "KernelMember",
    "Ranking",
    "Recommendation",
    "RecommendationOptions",
    "Trial",
    "Wanted",
    "candidates",
    "drawing",
    "fitting",
    "length_scale",
    "ranking",
    "recommended",
    "recommended_bytes",
    "widest_map_bytes",
]
