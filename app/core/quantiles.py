"""Quantile functions of the laws of frequencies, which give every processor the same bits.

Those of libraries hang on their logarithms and tangents, which round differently on other processors. Here all is
additions, multiplications, divisions and roots of IEEE 754 in one order.

The rational functions are minimax, found by Lawson's algorithm; their relative errors are 6.8e-18 and 6.9e-19 (normal
law, ends of it) and 1.9e-17 (tangent).
"""

import math

import numpy as np

from app.core.arrays import Matrix
from app.core.compiled import compiled, multiply_add
from app.core.exponential import log_of_one_more

NORMAL, CAUCHY, LAPLACE = range(3)
"""The laws that `quantiles` knows, each at scale 1."""

# A power of two rational functions in each line, the highest first: numerator and denominator of the first, and of the
# second. With q = u − ½, the quantile of the normal law is √(2π)q + q³·first(0.425² − q²) up to |q| = 0.425, and beyond
# ∓(t − second(t)) with t = √(−2 log u) of the nearer end.
_PARTS = np.array(
    [
        (0, 0, 2.59519966818436456e-7, 7.54417263626681585e-5),
        (570.824376405885415, 19901.0603754124089, 4.98077544661389527e-4, 8.13751415723608008e-3),
        (36639.3735382397193, 67778.2050564032441, 0.0389603214826658235, 0.211277170301291334),
        (86095.3162347534104, 69717.504247075178, 0.766801816777428442, 2.01320551396702168),
        (62155.7946087170715, 31054.0076738276461, 5.63773038195099832, 9.48334107008807927),
        (19099.1917935436215, 6882.1384210916493, 21.5972122779541581, 25.7878911988616175),
        (2786.06141592389847, 791.29169784459053, 44.5724667542780325, 31.61637084491603),
        (190.135225251959727, 45.0282879697148648, 29.104211800879935, 12.7801869199951596),
        (4.87476594139995199, 1, 3.58960907283509327, 1),
    ]
)
_LARGEST_NEAR = 0.425
_ROOT_2_PI = math.sqrt(2 * math.pi)


def quantiles(law: int, uniforms: Matrix) -> Matrix:
    """Quantiles of a law, elementwise, for float64 uniforms from 2⁻⁵³ to 1 − 2⁻⁵³.

    Errors are below 3 units in the last place, and the laws are symmetric to the bit. They are written over the
    uniforms, which may be as large as a map, unless these may not be written to or do not lie in C order.
    """
    found = np.require(uniforms, np.float64, ("C", "W"))
    _replace(law, found.reshape(-1))
    return found


@compiled
def _replace(law: int, values: Matrix) -> None:
    """Replace uniforms, (n,), by the quantiles."""
    for i in range(len(values)):
        uniform = values[i]
        nearer = min(uniform, 1 - uniform)
        if law == LAPLACE:
            size = log_of_one_more((1 - 2 * nearer) / (2 * nearer))
        elif law == CAUCHY:
            # tan(πx) = x·n/d
            x = min(nearer, 0.5 - nearer)
            z = x * x
            n = multiply_add(z, -0.022602770471853328127, 0.858666199592434702)
            n = multiply_add(z, multiply_add(z, n, -3.9775927623803474444), math.pi) * x
            d = multiply_add(z, -0.20039968987531138118, 2.2740008732550030047)
            d = multiply_add(z, multiply_add(z, d, -4.5559752331751828316), 1.0)
            size = d / n if nearer < 0.25 else n / d
        else:
            above = 0.5 - nearer
            is_end = above > _LARGEST_NEAR
            t = math.sqrt(2 * log_of_one_more((1 - nearer) / nearer)) if is_end else 0.0
            x, at = (t, 2) if is_end else (_LARGEST_NEAR**2 - above * above, 0)
            n = d = 0.0
            for k in range(len(_PARTS)):
                n, d = multiply_add(x, n, _PARTS[k, at]), multiply_add(x, d, _PARTS[k, at + 1])
            size = t - n / d if is_end else above * multiply_add(above * above, n / d, _ROOT_2_PI)
        values[i] = -size if uniform < 0.5 else size
