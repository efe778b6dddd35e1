"""The numbers that the page computes itself, held against those of the service and of NumPy."""

import re
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest

from service_tests.browser.conftest import GAUSSIAN
from service_tests.browser.test_page import ROWS, begin, button, figure
from service_tests.checks import put
from service_tests.running import Running

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def http(site: Running) -> Any:
    with site.client() as client:
        yield client


def test_errors_of_complex_features_count_both_parts(page: "Page", http: httpx.Client) -> None:
    spec = {"input_dim": 16, "kernel": GAUSSIAN, "sampler": {"kind": "halton"}, "s": 64, "form": "complex"}
    assert put(http, "complex", spec).is_success
    measured = http.post("/v1/maps/complex/diagnostics/gram", json={"vectors": ROWS.tolist(), "seeds": 0}).json()
    page.goto("/#/maps/complex/try")
    page.get_by_label("Paste rows of numbers").fill("\n".join(" ".join(f"{one:g}" for one in row) for row in ROWS))
    button(page, "Show features and similarities").click()
    page.get_by_role("region", name="The first features").wait_for()
    figures = measured["estimators"]["map"]
    assert float(figure(page, "Relative error")) == pytest.approx(figures["relative_frobenius"], rel=1e-3)
    assert float(figure(page, "Largest error")) == pytest.approx(figures["max_abs"], rel=1e-3)


def test_landmarks_of_one_length_are_drawn(page: "Page", http: httpx.Client) -> None:
    rows = np.random.default_rng(3).normal(size=(50, 16))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    sampler = {"kind": "uploaded_landmarks", "landmarks": rows.tolist()}
    spec = {"input_dim": 16, "kernel": GAUSSIAN, "sampler": sampler, "s": 50, "dtype": "float64"}
    assert put(http, "of-one-length", spec).is_success
    page.goto("/#/maps/of-one-length")
    lengths = page.get_by_role("img", name="Lengths of 50 landmarks")
    lengths.wait_for()
    assert lengths.locator(".ticks text").count() < 30


def test_a_kernel_of_unit_rows_has_an_error_curve(page: "Page", http: httpx.Client) -> None:
    kernel = {"kind": "correlation_rbf", "gamma": 0.5}
    assert put(http, "unit", {"input_dim": 16, "kernel": kernel, "sampler": {"kind": "sobol"}, "s": 64}).is_success
    page.goto("/#/maps/unit/errors")
    page.get_by_role("img", name="Error curve of unit").wait_for()


@pytest.mark.parametrize(("form", "size"), [("complex", "2.0 kB"), ("phase", "1.0 kB"), ("cos_sin", "2.0 kB")])
def test_the_preview_tells_how_long_a_row_of_the_answer_is(page: "Page", form: str, size: str) -> None:
    begin(page, "previewed")
    page.get_by_role("combobox", name=re.compile("^Form")).select_option(form)
    page.locator(".figure", has_text="Columns of a row").get_by_text("512" if form == "cos_sin" else "256").wait_for()
    assert figure(page, "A row of the answer") == size
