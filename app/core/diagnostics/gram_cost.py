"""What the errors of a Gram matrix take, in time and in memory, before anything is measured."""

from collections.abc import Sequence

from app.core.arrays import Rows
from app.core.diagnostics.control_variates import Estimator
from app.core.diagnostics.hermitian_tiles import OPERATIONS_PER_ENTRY, TILE_ROWS, tile_places
from app.core.maps import FeatureMap, family
from app.core.maps.fourier.drawing_cost import BUILD_NS, OPERATIONS_PER_NS, drawing_ns

# Matrices of the size of a tile, in float64, that are held while one is computed.
_TILES_AT_WORK = 6


def gram_errors_operations(
    feature_map: FeatureMap, rows: Rows, estimators: Sequence[Estimator] = (Estimator.map,), seeds: int = 5
) -> int:
    """Multiplications that take as long as `gram_errors`."""
    n = rows.shape[0]
    baseline = feature_map.baseline(0)
    errors = len(estimators) + (0 if baseline is None else seeds)
    total = (errors + 1) * OPERATIONS_PER_ENTRY * n * n
    for x, y in ((rows[block], rows[columns]) for block, columns in tile_places(n)):
        total += errors * feature_map.gram_operations(x, y) + (errors + 1) * feature_map.exact_operations(x, y)
    if baseline is not None:
        drawing = drawing_ns(baseline) or 0.0
        total += int(seeds * OPERATIONS_PER_NS * (BUILD_NS + drawing))
    return int(total)


def gram_errors_bytes(
    feature_map: FeatureMap, rows: Rows, estimators: Sequence[Estimator] = (Estimator.map,), seeds: int = 5
) -> int:
    """The most memory that `gram_errors` takes, beside features of a tile."""
    n, input_dim, tile = rows.shape[0], feature_map.spec.input_dim, rows[:TILE_ROWS]
    parts = 2 if feature_map.gram_dtype.kind == "c" else 1
    side = tile.shape[0]
    matrices = parts * ((n + side) * n // 2 * 4 + _TILES_AT_WORK * 8 * side**2)
    # Rows that are made dense, and two matrices of second moments.
    controls = 8 * input_dim * (n + 2 * input_dim) if set(estimators) - {Estimator.map} else 0
    drawn, baseline = 0, feature_map.baseline(0)
    if seeds and baseline is not None:
        drawn = family(baseline).drawing_bytes(baseline) + 2 * feature_map.bytes
    return int(matrices + feature_map.exact_bytes(tile, tile) + controls + drawn)
