"""Any size of frequency, box and dimension gives finite numbers; what has no box discrepancy is refused."""

import math
import tracemalloc

import numpy as np
import pytest

from app.core.diagnostics.box_discrepancy import BoxDiscrepancy as Diagnosed
from app.core.discrepancy.box_discrepancy import BoxDiscrepancy, check_panels
from app.core.errors import InvalidInput
from app.core.kernels.base import ProductKernel
from app.core.maps import make_map
from service_tests.cases import each
from service_tests.core.combinations import variants
from service_tests.core.discrepancy.sets import KINDS, drawn, example
from service_tests.core.specs import KERNELS, PRODUCT_KERNELS, kernel, kind, product_kernel, spec


@each("name", KINDS)
@each("ratio", [1e-4, 1.0, 1e4])
@each("size", [1e-6, 1.0, 1e6])
@each("d", [1, 60, 784])
def test_nothing_overflows(name: str, ratio: float, size: float, d: int) -> None:
    rng = np.random.default_rng(8)
    frequencies = size * rng.uniform(-1, 1, size=(10, d))
    frequencies[1] = -frequencies[0]
    measure = BoxDiscrepancy(product_kernel(name, 1.0), np.full(d, ratio))
    measured = measure.measure(frequencies)
    value, gradients = measure.value_and_gradient(frequencies)
    assert np.isfinite(gradients).all()
    assert math.isfinite(value)
    rounding = 4 * (2 * d + 10) * 2**-53  # of 10 frequencies, as the docstring of BoxDiscrepancy says
    assert -rounding < value < 4
    assert measured["normalized"] == pytest.approx(max(0, value), abs=rounding)
    assert 0 <= measured["expected_monte_carlo"] < 0.1 + 1e-15
    assert measured["ratio"] is not None
    assert math.isfinite(measured["ratio"])
    # D² itself leaves the range of float64 in many dimensions, its logarithm does not.
    assert measured["log_discrepancy_squared"] is None or math.isfinite(measured["log_discrepancy_squared"])
    logs = math.log(np.finfo(np.float64).tiny), math.log(np.finfo(np.float64).max)
    is_in_range = (
        measured["log_discrepancy_squared"] is not None and logs[0] < measured["log_discrepancy_squared"] < logs[1]
    )
    assert (measured["discrepancy_squared"] is not None) == is_in_range


@each("name", KINDS)
@each("d", [1, 3, 8])
def test_d_squared_is_n_in_other_units(name: str, d: int) -> None:
    made, box, frequencies, weights = example(name, 30, d)
    measured = BoxDiscrepancy(made, box).measure(frequencies, weights)
    assert measured["discrepancy_squared"] is not None
    assert measured["log_discrepancy_squared"] is not None
    assert measured["discrepancy_squared"] == pytest.approx(measured["normalized"] * (box / np.pi).prod(), rel=1e-12)
    assert math.exp(measured["log_discrepancy_squared"]) == pytest.approx(measured["discrepancy_squared"])
    assert measured["ratio"] == pytest.approx(measured["normalized"] / measured["expected_monte_carlo"])


@pytest.mark.parametrize(("d", "side"), [(1 << 31, 1.0), ((1 << 17) + 1, 1.0), (1 << 12, 1e40)])
def test_boxes_of_too_many_panels_take_no_memory(d: int, side: float) -> None:
    its = kernel(kind="gaussian", length_scale=1.0)
    with pytest.raises(InvalidInput, match="up to 131072 panels in all coordinates"):
        BoxDiscrepancy(its, np.full(d, side)) if d < 1 << 20 else check_panels(d)


@each("model", KERNELS)
def test_kernels_that_are_no_products_are_refused_by_name(model: type) -> None:
    for fields in variants(model, 4):
        made = kernel(**fields)
        if issubclass(model, ProductKernel) or fields["kind"] == "correlation_rbf":
            assert math.isfinite(BoxDiscrepancy(made, np.ones(4)).log_energy)
            continue
        with pytest.raises(InvalidInput) as caught:
            BoxDiscrepancy(made, np.ones(4))
        assert caught.value.pointer == "/kernel"
        named = ", ".join(kind(product) for product in PRODUCT_KERNELS)
        assert caught.value.detail == f"expected kernel {named} or correlation_rbf, got {fields['kind']}"


@pytest.mark.parametrize("wrong", [-1.0, 1e308, np.nan, np.inf])
def test_boxes_that_are_none_are_refused(wrong: float) -> None:
    with pytest.raises(InvalidInput, match=r"expected 0 to 8.99e\+307 in the box, got .* in entry 2") as caught:
        BoxDiscrepancy(product_kernel("gaussian", 1.0), np.array([1.0, 0.0, wrong]))
    assert caught.value.pointer == "/box"


@pytest.mark.parametrize("wrong", [1e308, np.nan, -np.inf])
def test_phases_that_leave_the_range_are_refused(wrong: float) -> None:
    measure = BoxDiscrepancy(product_kernel("gaussian", 1.0), np.array([1.0, 1e3, 1e-3]))
    frequencies = drawn(product_kernel("gaussian", 1.0), 5, 3, 0)
    frequencies[2, 1] = wrong
    for method in (measure.gram, measure.means, measure.evaluate, measure.value_and_gradient):
        with pytest.raises(InvalidInput, match="leaves the range of float64"):
            method(frequencies)


def test_a_map_of_too_many_columns_is_refused_before_its_box_and_frequencies_are_computed() -> None:
    wide = make_map(spec(input_dim=1 << 20, s=1, sampler={"kind": "structured_orthogonal"}))
    tracemalloc.start()
    with pytest.raises(InvalidInput, match="up to 131072 panels"):
        Diagnosed(box=1.0).check(wide, {})
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
