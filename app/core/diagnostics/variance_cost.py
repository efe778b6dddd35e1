"""What the variances of a map take, in time and in memory, before anything is drawn."""

from app.core.arrays import Rows
from app.core.maps import FeatureMap, family
from app.core.maps.base import Gives
from app.core.maps.base_spec import BaseSpec
from app.core.maps.fourier.drawing_cost import BUILD_NS, OPERATIONS_PER_NS, drawing_ns
from app.core.samplers.polynomially_exact import PolynomiallyExact

# A sine and a cosine, in multiplications.
_OPERATIONS_PER_PHASE = 30
# The closed forms of a pair, and its part of the answer.
_OPERATIONS_PER_PAIR = 200_000
# Samples of two rows, and where they agree; estimates of one pair by one map; the closed forms and figures of a pair.
_BYTES_PER_HASH, _BYTES_PER_ESTIMATE, _BYTES_PER_PAIR = 40, 80, 2000
# To draw the parameters of a hash, by their memory.
_OPERATIONS_PER_PARAMETER_BYTE = 16


def variances_operations(feature_map: FeatureMap, x: Rows, y: Rows, repeats: int) -> int:
    """Multiplications that take as long as `variances`."""
    if Gives.codes in feature_map.gives:
        # What a map holds is drawn anew for every one.
        drawn = _OPERATIONS_PER_PARAMETER_BYTE * feature_map.bytes
        each = feature_map.hash_operations(x) + feature_map.hash_operations(y) + drawn
        return int(_OPERATIONS_PER_PAIR * x.shape[0] + repeats * each)
    s, d = feature_map.n_frequencies, feature_map.spec.input_dim
    applied = s * (int(x.size) + int(y.size) + _OPERATIONS_PER_PHASE * (x.shape[0] + y.shape[0]))
    each = applied + OPERATIONS_PER_NS * BUILD_NS + _drawing_operations(feature_map.spec, d)
    return int(_OPERATIONS_PER_PAIR * x.shape[0] + repeats * each)


def variances_bytes(feature_map: FeatureMap, x: Rows, y: Rows, repeats: int) -> int:
    """Memory that `variances` takes: rows in float64, a map, what it makes of them, all estimates, and the answer."""
    n = int(max(x.shape[0], y.shape[0]))
    made = family(feature_map.spec).drawing_bytes(feature_map.spec)
    if Gives.features in feature_map.gives:
        # Features of x, of y, these conjugate, and phases.
        made += 4 * feature_map.gram_dtype.itemsize * feature_map.n_output * n + 2 * feature_map.bytes
    else:
        made += _BYTES_PER_HASH * feature_map.n_output * n
    return feature_map.exact_bytes(x, y) + made + n * (_BYTES_PER_ESTIMATE * repeats + _BYTES_PER_PAIR)


def _drawing_operations(spec: BaseSpec, d: int) -> int:
    if isinstance(spec.sampler, PolynomiallyExact):
        equations = spec.sampler.count(None, d)
        return 6 * equations**2 * (spec.sampler.candidates or 6 * equations)
    return int(OPERATIONS_PER_NS * (drawing_ns(spec) or 0))  # what learns is refused
