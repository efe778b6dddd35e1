"""Diagnostics run with given rows and options, as tests call them."""

from collections.abc import Iterable
from typing import Any

from app.core.arrays import Rows
from app.core.diagnostics import Diagnostic, Finding
from app.core.diagnostics.base import GivenRows
from app.core.diagnostics.collisions import CollisionErrors, Collisions
from app.core.diagnostics.error_matrix import Estimator
from app.core.diagnostics.gram import Gram, GramErrors
from app.core.diagnostics.max_error import MaxError, MaxErrors
from app.core.diagnostics.variance import Variance, Variances
from app.core.drawing import Curve, Density, Histogram
from app.core.maps import FeatureMap
from app.core.progress import Progress


def gram(
    made: FeatureMap, x: Rows, estimators: Iterable[Estimator] = (Estimator.map,), **options: Any
) -> Finding[GramErrors]:
    measured: Finding[GramErrors] = _measured(Gram(estimators=tuple(estimators), **options), made, {"vectors": x})
    return measured


def drawn(found: Finding[GramErrors], row: int = 0) -> tuple[Histogram, Density, Curve]:
    """What is drawn of one estimator: a histogram of its errors, their density by the kernel, their size by it."""
    assert found.drawing is not None
    ((histogram, *_), (density, curve, *_)) = (panel.marks for panel in found.drawing.rows[row])
    assert isinstance(histogram, Histogram)
    assert isinstance(density, Density)
    assert isinstance(curve, Curve)
    return histogram, density, curve


def gram_errors(
    made: FeatureMap, x: Rows, estimators: Iterable[Estimator] = (Estimator.map,), **options: Any
) -> GramErrors:
    return gram(made, x, estimators, **options).answer


def max_errors(made: FeatureMap, diameters: Iterable[float], **options: Any) -> MaxErrors:
    return MaxError(diameters=tuple(diameters), **options).run(made, {}, Progress(), 1).answer


def variances(made: FeatureMap, x: Rows, y: Rows, **options: Any) -> Variances:
    answer: Variances = _measured(Variance(**options), made, {"x": x, "y": y}).answer
    return answer


def collision_errors(made: FeatureMap, x: Rows, **options: Any) -> CollisionErrors:
    answer: CollisionErrors = _measured(Collisions(**options), made, {"vectors": x}).answer
    return answer


def _measured(diagnostic: Diagnostic, made: FeatureMap, given: GivenRows) -> Any:
    """As a request has it measured."""
    diagnostic.check(made, given)
    assert diagnostic.memory_bytes(made, given) > 0
    return diagnostic.run(made, given, Progress(), 1)
