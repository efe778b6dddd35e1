"""Variances of Fourier maps' kernel estimates that are known in closed form.

φ is the kernel divided by its value at 0: the characteristic function of w, E cos w·δ. All are of one pair of rows, δ
apart, for s frequencies; those of the form complex are E|k̂ − k|², the imaginary part included.
"""

import numpy as np

from app.core.arrays import Matrix
from app.core.errors import InvalidInput
from app.core.maps.fourier.drawing import allocations
from app.core.maps.fourier.forms import FORMS
from app.core.maps.terms import BaseSpec, ClosedForms, Form
from app.core.samplers.moment_matching import MomentMatching
from app.core.samplers.monte_carlo import MonteCarlo

# Of a kernel at 0: its square, and some times that, are numbers of float64.
_MOST = 1e150


def closed_forms(spec: BaseSpec, independent: BaseSpec, lags: Matrix) -> ClosedForms:
    """Variances of pairs whose prepared rows differ by `lags` δ, (n, d); `independent` has independent frequencies.

    A kernel of several summands has s shared out among them: variances of independent sums add up.

    Raises:
        InvalidInput: the kernel is so large that the variances leave the range of float64.
    """
    sums = {name: np.zeros(len(lags)) for name in ("monte_carlo", "first", "second", "rff", "nrff")}
    every = allocations(independent)
    at_zero = _squarable(sum(allocation.block.weight for allocation in every))
    form, all_normal = FORMS[spec.form], True
    for (kernel, coordinates, weight), size in every:
        of = lags if coordinates is None else lags[:, coordinates]
        origin = np.zeros((1, of.shape[1]))
        at, at_twice = kernel.gram(of, origin)[:, 0], kernel.gram(2 * of, origin)[:, 0]
        factor = weight**2 / size
        sums["monte_carlo"] += factor * form.variance(at, at_twice)
        sums["rff"] += factor * FORMS[Form.phase].variance(at, at_twice)
        sums["nrff"] += factor * np.maximum(1 + at_twice / 2 - (7 - at_twice) * at**2 / 4, 0)
        deviations = kernel.normal_deviations(of.shape[1])
        if deviations is None:
            all_normal = False
            continue
        t = np.square(of * deviations).sum(axis=1)
        sums["first"] += factor * t * np.exp(-t) * form.is_complex
        sums["second"] += factor * np.square(t) * np.exp(-t) / 2
    if spec.normalize:
        for name in ("monte_carlo", "first", "second"):
            sums[name] /= at_zero**2
    # Normalising divides by a constant in the other forms, and by a random number in this one.
    ratio = spec.normalize and form.has_offsets
    found = {"rff": sums["rff"]}
    if len(every) == 1:
        found["nrff"] = sums["nrff"]
    if not ratio:
        found["monte_carlo"] = sums["monte_carlo"]
    elif len(every) == 1:
        found["monte_carlo"] = sums["nrff"]
    if all_normal and not ratio:
        # Rounding: at δ = 0 they are 0.
        found["cv1"] = np.maximum(sums["monte_carlo"] - sums["first"], 0)
        found["cv2"] = found["moment_matching"] = np.maximum(found["cv1"] - sums["second"], 0)
    match spec.sampler:
        case MonteCarlo() | MomentMatching(base=MonteCarlo()) as sampler:
            return ClosedForms(sampler.kind, found)
    return ClosedForms(None, found)


def _squarable(at_zero: float) -> float:
    if at_zero > _MOST:
        reason = f"variances have its square, for which {_MOST:.3g} is the most"
        raise InvalidInput(f"the kernel of a row with itself is {at_zero:.3g}; {reason}")
    return at_zero
