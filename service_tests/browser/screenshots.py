"""Screenshots of the page for the documentation: `python -m service_tests.browser.screenshots`.

They are of the real page on a real service that is started for them. Renew them when the page changes.
"""

import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import Page

from service_tests.browser.browsing import browser, watched
from service_tests.browser.conftest import LETTERS, fill
from service_tests.browser.test_page import begin, learned, sampler
from service_tests.checks import put, put_dataset
from service_tests.running import service

FOLDER = Path(__file__).parents[2] / "docs" / "page"
QUALITY = 82
_MORE: dict[str, dict[str, Any]] = {
    "letters-matern": {
        "kernel": {"kind": "matern", "nu": 1.5, "length_scale": 4.0},
        "sampler": {"kind": "lattice"},
        "s": 1024,
    },
    "letters-phase": {"sampler": {"kind": "orthogonal"}, "s": 768, "form": "phase"},
    "letters-smolyak": {"sampler": {"kind": "sparse_grid", "level": 2}},
}


def maps(page: Page) -> None:
    """The list of maps."""
    page.get_by_role("link", name="letters", exact=True).wait_for()


def one_map(page: Page) -> None:
    """A learned map, with its spectrum."""
    page.goto("/#/maps/letters-weighted")
    page.get_by_role("heading", name="Spectrum").wait_for()


def errors(page: Page) -> None:
    """Diagnostics with pictures."""
    page.goto("/#/maps/letters/errors")
    page.get_by_role("img", name="Error curve of letters").wait_for()
    page.get_by_role("button", name="Measure: Box discrepancy").click()
    page.get_by_role("img", name="Box discrepancy of letters").wait_for()


def rows(page: Page) -> None:
    """Kernels of rows, approximate and exact."""
    page.goto("/#/maps/letters/try")
    page.get_by_label("or a dataset").select_option("letters")
    page.get_by_role("button", name="Show features").click()
    similarities = page.get_by_role("heading", name="Similarities")
    similarities.wait_for()
    similarities.evaluate("(one) => one.scrollIntoView()")


def form(page: Page) -> None:
    """The form with a preview that warns."""
    begin(page, "letters-new")
    page.get_by_label("Frequencies").fill("500")
    sampler(page, "sobol")
    page.get_by_text("take 256 or 512").wait_for()


def job(page: Page) -> None:
    """A learned map that is being built."""
    learned(page, "letters-learned", 2000)
    page.get_by_text("running").wait_for()
    page.wait_for_timeout(4000)


def recommended(page: Page) -> None:
    """A recommendation with its winner."""
    page.goto("/#/recommend")
    page.get_by_label("or a dataset").select_option("letters")
    page.get_by_role("button", name="Recommend a map").click()
    page.get_by_role("img", name="Errors of the maps").wait_for(timeout=180_000)
    page.locator(".winner").evaluate("(one) => one.scrollIntoView()")


def index(page: Page) -> None:
    """An index: a search by id, and duplicates."""
    page.goto("/#/indexes/letters-near")
    page.get_by_label("Id of a vector").fill("3")
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("region", name="Nearest vectors").wait_for()
    page.get_by_label("Nearest", exact=True).fill("5")
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_text("5 vectors found").wait_for()
    page.get_by_role("button", name="Measure: Recall").click()
    page.get_by_text("lost by", exact=False).first.wait_for()


SHOWN: dict[str, tuple[Callable[[Page], None], bool]] = {
    "maps": (maps, False),
    "map": (one_map, False),
    "errors": (errors, False),
    "rows": (rows, True),
    "form": (form, False),
    "index": (index, False),
    "recommended": (recommended, False),
    "job": (job, True),
}
"""How each is come to, and whether it is by night."""


def main() -> None:
    """Write all of them."""
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        service(Path(folder) / "data", "--job-workers", "1") as running,
        browser() as of,
    ):
        with running.client(Prefer="wait=30") as http:
            fill(http)
            for name, spec in _MORE.items():
                kernel = {"kind": "gaussian", "length_scale": 5.0}
                put(http, name, {"input_dim": 16, "kernel": kernel, "seed": 7} | spec).raise_for_status()
            put_dataset(http, "letters-all", np.load(LETTERS)).raise_for_status()
            http.put("/v1/indexes/letters-near", json={"map": "letters-gmm", "keep": "vectors"}).raise_for_status()
            letters = np.load(LETTERS).tolist()
            kept = {"ids": [*range(len(letters))], "vectors": letters}
            kept["tags"] = ["early" if i < len(letters) // 2 else "late" for i in kept["ids"]]
            http.post("/v1/indexes/letters-near/vectors", json=kept).raise_for_status()
        for name, (come, dark) in SHOWN.items():
            with watched(of, running.url, dark) as seen:
                seen.page.goto("/")
                come(seen.page)
                seen.page.wait_for_timeout(500)  # pictures are decoded, and lights have faded
                Image.open(io.BytesIO(seen.page.screenshot())).save(FOLDER / f"{name}.webp", quality=QUALITY)


if __name__ == "__main__":
    main()
