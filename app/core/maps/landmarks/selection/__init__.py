"""The ways to select landmarks. A new one is a file of its own and its name in this list."""

from app.core.maps.landmarks.selection import k_means, leverage, rp_cholesky, uniform
from app.core.maps.landmarks.selection.base import Select, Selected

SELECTIONS: dict[str, Select] = {
    "rp_cholesky": rp_cholesky.select,
    "k_means": k_means.select,
    "leverage": leverage.select,
    "uniform": uniform.select,
}
"""The ways by name."""

__all__ = ["SELECTIONS", "Select", "Selected"]
