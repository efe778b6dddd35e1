"""Diagnostics: how good a map is, measured on data, against theory and against the alternatives.

To add one, write a file beside this one with a class derived from `Diagnostic`, and add the class to the list. Routes,
jobs, the catalogue and the OpenAPI document read the list.
"""

from app.core.diagnostics.base import Diagnostic, Finding, Takes
from app.core.diagnostics.box_discrepancy import BoxDiscrepancy
from app.core.diagnostics.collisions import Collisions
from app.core.diagnostics.gram import Gram
from app.core.diagnostics.max_error import MaxError
from app.core.diagnostics.variance import Variance

_EVERY: tuple[type[Diagnostic], ...] = (Gram, BoxDiscrepancy, MaxError, Variance, Collisions)

DIAGNOSTICS: dict[str, type[Diagnostic]] = {diagnostic.kind: diagnostic for diagnostic in _EVERY}
"""Every diagnostic by its kind, which is its name in URLs."""

__all__ = ["DIAGNOSTICS", "Diagnostic", "Finding", "Takes"]
