"""The page on the real service, as people use it: create, watch, look, cancel, delete, and all of it by keyboard."""

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest

from service_tests.browser.conftest import LETTERS
from service_tests.checks import array, npy, post_npy
from service_tests.running import Running

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.gate

ROWS = np.load(LETTERS)[:40].astype(np.float64)
# What is measured with a margin: the machine may be at other work.
USABLE_SECONDS = 2.0


@pytest.fixture(scope="module")
def http(site: Running) -> Any:
    with site.client() as client:
        yield client


def heading(page: "Page", text: str) -> "Locator":
    return page.get_by_role("heading", level=1, name=text)


def button(page: "Page", name: str) -> "Locator":
    return page.get_by_role("button", name=name, exact=True)


def figure(page: "Page", name: str) -> str:
    """The figure of this name."""
    found = page.locator(".figure", has=page.locator("dt", has_text=name)).locator("dd").first
    return found.inner_text()


def wait_for(ask: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not ask():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)


def begin(page: "Page", name: str, input_dim: int = 16) -> None:
    page.get_by_role("link", name="New map", exact=True).first.click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Numbers in a vector").fill(str(input_dim))
    page.get_by_label("Length scale").fill("5")
    page.get_by_label("Frequencies").fill("256")


def learned(page: "Page", name: str, iterations: int) -> None:
    """Begin a map whose building takes a while."""
    begin(page, name)
    page.get_by_role("group", name="Sampler").get_by_label("Kind", exact=True).select_option("global_adaptive")
    page.get_by_label("Box", exact=False).first.fill("4")
    page.get_by_label("Iterations").fill(str(iterations))
    page.get_by_text("It takes a job").wait_for()
    button(page, "Create the map").click()
    heading(page, name).wait_for()


def drop(page: "Page", name: str, content: bytes) -> None:
    """Drop a file onto the field for rows."""
    carried = page.evaluate_handle(
        "([name, bytes]) => { const all = new DataTransfer();"
        " all.items.add(new File([new Uint8Array(bytes)], name)); return all; }",
        [name, list(content)],
    )
    for event in ("dragover", "drop"):
        page.dispatch_event(".rows", event, {"dataTransfer": carried})


def remove(page: "Page") -> None:
    button(page, "Delete").click()
    button(page, "Delete it").click()
    heading(page, "Maps").wait_for()


@pytest.mark.nightly
def test_it_is_usable_in_two_seconds(page: "Page") -> None:
    began = time.monotonic()
    page.goto("/#/maps")
    page.reload()
    page.get_by_role("link", name="letters", exact=True).wait_for()
    assert time.monotonic() - began < USABLE_SECONDS
    began = time.monotonic()
    page.get_by_role("link", name="New map").first.click()
    page.get_by_text("Time to build").wait_for()
    assert time.monotonic() - began < USABLE_SECONDS


def test_maps_are_listed_with_their_states_and_searched_by_their_names(page: "Page") -> None:
    row = page.get_by_role("row", name="letters-weighted")
    assert "ready" in row.inner_text()
    assert "1 warning" in row.inner_text()
    page.get_by_label("Names that begin with").fill("letters-s")
    page.get_by_role("link", name="letters-weighted").wait_for(state="detached")
    page.get_by_role("link", name="letters-sobol").wait_for()
    assert page.get_by_role("row").count() == 2, "its head, and one"
    page.get_by_label("Names that begin with").fill("nothing-such")
    page.get_by_text("No map has a name that begins with").wait_for()


def test_a_map_is_created_looked_at_and_deleted(page: "Page", http: httpx.Client) -> None:
    begin(page, "made-here")
    page.get_by_label("Frequencies").fill("100")
    page.get_by_role("group", name="Sampler").get_by_label("Kind", exact=True).select_option("sobol")
    page.get_by_text("take 64 or 128").wait_for()
    page.get_by_label("Frequencies").fill("128")
    page.get_by_text("take 64 or 128").wait_for(state="detached")
    told = {name: figure(page, name) for name in ("Columns of a row", "Kept")}
    assert http.get("/v1/maps/made-here").status_code == 404, "a preview keeps nothing"
    button(page, "Create the map").click()
    heading(page, "made-here").wait_for()
    record = http.get("/v1/maps/made-here").json()
    assert record["spec"]["sampler"]["kind"] == "sobol"
    assert record["spec"]["kernel"]["length_scale"] == 5
    assert told["Columns of a row"] == "256" == figure(page, "Columns of a row")
    assert told["Kept"] == figure(page, "Kept")
    assert record["digest"] in page.locator("main").inner_text()
    spectrum = page.get_by_role("img", name="128 frequencies in coordinates 0 and 1")
    spectrum.wait_for()
    assert spectrum.locator("circle").count() == 128
    remove(page)
    assert http.get("/v1/maps/made-here").status_code == 404
    page.get_by_role("link", name="letters", exact=True).wait_for()
    assert page.get_by_role("link", name="made-here").count() == 0


def test_what_is_wrong_is_told_at_the_field_before_anything_is_sent(page: "Page") -> None:
    begin(page, "letters")
    page.get_by_text("map 'letters'").first.wait_for()
    assert button(page, "Create the map").is_disabled()
    page.get_by_label("Name", exact=True).fill("another")
    page.get_by_label("Length scale").fill("-1")
    wrong = page.locator(".field.wrong", has=page.get_by_label("Length scale"))
    wrong.locator(".error").wait_for()
    assert page.get_by_label("Length scale").get_attribute("aria-invalid") == "true"


@pytest.mark.nightly
def test_fields_that_are_out_of_sight_come_to_light_when_they_are_wanted(page: "Page") -> None:
    begin(page, "sums")
    kernel = page.get_by_role("group", name="Kernel")
    kernel.get_by_label("Kind", exact=True).select_option("anova")
    assert kernel.get_by_label("Length scale").input_value() == "5", "as it was typed"
    kernel.get_by_text("neither of subsets and windows came").wait_for()
    kernel.get_by_label("Subsets").fill("[[0, 1], [2, 33]]")
    page.locator(".field.wrong", has=page.get_by_label("Subsets")).get_by_text("from 0 to 15").wait_for()
    kernel.get_by_label("Subsets").fill("[[0, 1], [2, 3]]")
    page.locator(".field.wrong").wait_for(state="detached")
    assert kernel.get_by_label("Subsets").is_visible(), "it does not close under one's hands"


@pytest.mark.nightly
def test_the_preview_counts_both_parts_of_complex_features(page: "Page") -> None:
    begin(page, "two-parts")
    wait_for(lambda: figure(page, "A row of the answer") == "2.0 kB")
    page.get_by_label("Form").select_option("complex")
    wait_for(lambda: figure(page, "Columns of a row") == "256")
    assert figure(page, "A row of the answer") == "2.0 kB", "256 numbers of 8 bytes"


@pytest.mark.nightly
def test_a_service_that_is_away_is_asked_again(page: "Page") -> None:
    page.get_by_role("link", name="letters", exact=True).wait_for()
    page.context.set_offline(True)
    page.get_by_label("Names that begin with").fill("letters-s")
    page.get_by_text("The service cannot be reached").wait_for()
    page.context.set_offline(False)
    button(page, "Try again").click()
    page.get_by_role("link", name="letters-sobol").wait_for()


@pytest.mark.nightly
def test_a_map_is_taken_away_as_what_it_can_be(page: "Page") -> None:
    from playwright.sync_api import expect

    for name, formats in {"letters": 3, "letters-gmm": 2}.items():
        page.goto(f"/#/maps/{name}")
        heading(page, name).wait_for()
        offered = page.get_by_label("Take this map away").locator("option[value]:not([value=''])")
        expect(offered).to_have_count(formats)


@pytest.mark.nightly
def test_a_map_whose_job_is_cancelled_says_so(page: "Page", http: httpx.Client) -> None:
    learned(page, "stopped", 100000)
    button(page, "Cancel").click()
    page.get_by_text("The job that built this map was cancelled").wait_for()
    assert http.get("/v1/maps/stopped").status_code == 404


def test_a_learned_map_is_watched_while_it_is_built(page: "Page", http: httpx.Client) -> None:
    learned(page, "learned", 800)
    seen: set[Any] = set()

    def drawn() -> bool:
        seen.add(page.evaluate("document.querySelector('main progress')?.value"))
        return page.get_by_role("heading", name="Spectrum").count() == 1

    wait_for(drawn, 60)
    assert len(seen) >= 4, "it moves"
    page.get_by_role("heading", name="What learning came to").wait_for()
    assert http.get("/v1/maps/learned").json()["status"] == "ready"
    remove(page)


def test_a_job_is_cancelled(page: "Page", http: httpx.Client) -> None:
    learned(page, "cancelled", 100000)
    page.get_by_role("link", name="Jobs").click()
    page.get_by_role("region", name="Job", exact=True).get_by_text("running").wait_for()
    button(page, "Cancel").click()
    page.get_by_role("row", name="cancelled").first.wait_for()
    wait_for(lambda: http.get("/v1/maps/cancelled").status_code == 404)


@pytest.mark.parametrize("kind", ["npy", "csv"])
def test_dropped_rows_become_features_and_similarities(page: "Page", http: httpx.Client, kind: str) -> None:
    text = io.StringIO()
    np.savetxt(text, ROWS, delimiter=",", header=",".join("abcdefghijklmnop"), comments="", fmt="%g")
    content = npy(ROWS.astype(np.float32)) if kind == "npy" else text.getvalue().encode()
    page.get_by_role("link", name="letters", exact=True).click()
    page.get_by_role("link", name="Try it").click()
    drop(page, f"rows.{kind}", content)
    page.get_by_text("40 rows of 16 numbers").wait_for()
    button(page, "Show features and similarities").click()
    table = page.get_by_role("region", name="The first features")
    table.wait_for()
    cells = table.locator("tbody tr").nth(1).locator("td").all_inner_texts()
    features = array(post_npy(http, "letters/transform", ROWS))
    shown = [float(cell.replace("−", "-")) for cell in cells[1:]]
    np.testing.assert_allclose(shown, features[1, : len(shown)], rtol=1e-3)
    exact = http.post("/v1/maps/letters/kernel?exact=true", json={"x": ROWS.tolist()}).json()
    errors = np.array(exact["approximate"]) - np.array(exact["exact"])
    relative = float(figure(page, "Relative error"))
    assert relative == pytest.approx(np.linalg.norm(errors) / np.linalg.norm(exact["exact"]), rel=1e-3)
    dots = page.get_by_role("img", name="The kernel by the map against the exact one").locator(".points circle")
    assert dots.count() == 1600


def test_codes_are_shown_of_a_map_that_hashes(page: "Page", tmp_path: Path) -> None:
    page.goto("/#/maps/letters-gmm/try")
    page.get_by_label("Paste rows of numbers").fill("\n".join(" ".join(f"{one:g}" for one in row) for row in ROWS[:5]))
    page.get_by_label("Encoding").select_option("b_bit")
    button(page, "Show codes and similarities").click()
    page.get_by_role("region", name="The first codes").wait_for()
    assert 0 <= float(figure(page, "Relative error")) < 0.2
    with page.expect_download() as saved:
        button(page, "Save all codes as .npy").click()
    saved.value.save_as(tmp_path / "codes.npy")
    assert np.load(tmp_path / "codes.npy").shape == (5, 256)


def test_errors_are_measured_and_drawn(page: "Page") -> None:
    page.goto("/#/maps/letters/errors")
    page.get_by_role("img", name="Error curve of letters").wait_for()
    button(page, "Measure: Box discrepancy").click()
    page.get_by_role("img", name="Box discrepancy of letters").wait_for()
    page.locator(".card", has_text="Box discrepancy").get_by_text("Numbers", exact=True).click()
    assert page.get_by_role("region", name="Scales").get_by_role("row").count() == 4, "its head, and three scales"
    page.get_by_label("or a dataset").select_option("letters")
    button(page, "Measure: Gram matrix of your rows").click()
    page.get_by_role("img", name="Gram matrix of your rows of letters").wait_for()


def test_a_map_is_recommended_and_leads_to_the_form(page: "Page", http: httpx.Client) -> None:
    page.get_by_role("link", name="Recommend").click()
    page.get_by_label("or a dataset").select_option("letters")
    page.get_by_label("Output columns").fill("32")
    button(page, "Recommend a map").click()
    page.get_by_role("progressbar", name="Progress").wait_for()
    page.get_by_role("heading", name="All that was tried").wait_for(timeout=90_000)
    page.get_by_role("img", name="Errors of the maps that were tried").wait_for()
    assert page.locator("tr.marked").inner_text().startswith("★")
    button(page, "Create this map …").click()
    page.get_by_label("Name", exact=True).fill("recommended")
    button(page, "Create the map").click()
    heading(page, "recommended").wait_for()
    assert http.delete("/v1/maps/recommended").status_code == 204


def test_rows_are_kept_as_a_dataset_and_deleted(page: "Page", http: httpx.Client) -> None:
    page.get_by_role("link", name="Datasets").click()
    drop(page, "rows.npy", npy(ROWS))
    page.get_by_label("Name", exact=True).fill("kept-here")
    button(page, "Keep as a dataset").click()
    page.get_by_role("row", name="kept-here").wait_for()
    assert http.get("/v1/datasets/kept-here").json()["shape"] == [40, 16]
    button(page, "Delete kept-here").click()
    button(page, "Delete it").click()
    page.get_by_role("row", name="kept-here").wait_for(state="detached")
