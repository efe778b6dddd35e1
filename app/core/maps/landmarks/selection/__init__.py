"""Methods of selecting landmarks. A new method takes a file of its own, and an entry in `SELECTIONS`."""

from app.core.maps.landmarks.selection import k_means, leverage, rp_cholesky, uniform
from app.core.maps.landmarks.selection.base import Select, Selected

SELECTIONS: dict[str, Select] = {
    "rp_cholesky": rp_cholesky.select,
    "k_means": k_means.select,
    "leverage": leverage.select,
    "uniform": uniform.select,
}
"""Selection methods by name."""

__all__ = ["SELECTIONS", "Select", "Selected"]
