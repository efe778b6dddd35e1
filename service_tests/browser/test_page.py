"""The page on the real service, as people use it, with a key and without, by keyboard, and against hostile words."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest

from app.store.keys import Role
from service_tests.browser.conftest import LETTERS, fill
from service_tests.checks import array, finished, npy, post_npy
from service_tests.keyed import Keyed, keyed
from service_tests.running import Running, service

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page, Route

pytestmark = pytest.mark.gate

ROWS = np.load(LETTERS)[:40].astype(np.float64)
VIEWS = (
    "maps",
    "maps/letters",
    "maps/letters/errors",
    "maps/letters/try",
    "new",
    "indexes",
    "datasets",
    "recommend",
    "jobs",
)
# Milliseconds in which a job ends, also on a slow machine beside other work.
_JOB_MS = 300_000
HOSTILE = '<img src=x onerror="globalThis.hurt=1"><script>globalThis.hurt=1</script>{{7*7}}${globalThis.hurt=1}'


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


def begin(page: "Page", name: str) -> None:
    page.get_by_role("link", name="New map", exact=True).first.click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Numbers in a vector").fill("16")
    page.get_by_label("Length scale").fill("5")
    page.get_by_label("Frequencies").fill("256")


def sampler(page: "Page", kind: str) -> None:
    page.get_by_role("group", name="Sampler").get_by_label("Kind", exact=True).select_option(kind)


def learned(page: "Page", name: str, iterations: int) -> None:
    """Begin a map whose building takes a while."""
    begin(page, name)
    sampler(page, "global_adaptive")
    page.get_by_label("Box", exact=False).first.fill("4")
    page.get_by_label("Iterations").fill(str(iterations))
    page.get_by_text("Built by a job").wait_for()
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


def press(page: "Page", *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def tab_to(page: "Page", words: str) -> None:
    """Press Tab until what has these words has the focus."""
    for _ in range(80):
        told = page.evaluate("(document.activeElement.labels?.[0] ?? document.activeElement).innerText")
        if told.startswith(words):
            return
        press(page, "Tab")
    raise AssertionError(f"no key leads to {words!r}")


def test_a_map_is_created_found_looked_at_and_deleted(page: "Page", http: httpx.Client) -> None:
    begin(page, "letters")
    page.get_by_text("map 'letters'").first.wait_for()
    assert button(page, "Create the map").is_disabled(), "what is wrong is told before anything is sent"
    page.get_by_label("Name", exact=True).fill("made-here")
    page.get_by_label("Length scale").fill("-1")
    page.locator(".field.wrong", has=page.get_by_label("Length scale")).locator(".error").wait_for()
    assert page.get_by_label("Length scale").get_attribute("aria-invalid") == "true"
    page.get_by_label("Length scale").fill("5")
    page.get_by_label("Frequencies").fill("100")
    sampler(page, "sobol")
    page.get_by_text("take 64 or 128").wait_for()
    page.get_by_label("Frequencies").fill("128")
    page.get_by_text("take 64 or 128").wait_for(state="detached")
    page.get_by_label("Seed").fill(str((1 << 64) - 1))
    told = {name: figure(page, name) for name in ("Columns of a row", "Size")}
    assert http.get("/v1/maps/made-here").status_code == 404, "a preview keeps nothing"
    button(page, "Create the map").click()
    heading(page, "made-here").wait_for()
    record = http.get("/v1/maps/made-here").json()
    assert (record["spec"]["sampler"]["kind"], record["spec"]["kernel"]["length_scale"]) == ("sobol", 5)
    assert told["Columns of a row"] == "256" == figure(page, "Columns of a row")
    assert told["Size"] == figure(page, "Size")
    assert record["spec"]["seed"] == (1 << 64) - 1, "a double has 53 bits of them"
    assert record["digest"] in page.locator("main").inner_text()
    spectrum = page.get_by_role("img", name="128 frequencies in coordinates 0 and 1")
    spectrum.wait_for()
    assert spectrum.locator("circle").count() == 128
    page.goto("/#/maps")
    assert "1 warning" in page.get_by_role("row", name="letters-weighted").inner_text()
    page.get_by_label("Names that begin with").fill("made")
    page.get_by_role("link", name="letters-weighted").wait_for(state="detached")
    page.get_by_role("link", name="made-here").click()
    heading(page, "made-here").wait_for()
    remove(page)
    assert http.get("/v1/maps/made-here").status_code == 404


def test_a_learned_map_is_watched_while_it_is_built(page: "Page", http: httpx.Client) -> None:
    learned(page, "learned", 2500)
    seen: set[Any] = set()

    def drawn() -> bool:
        seen.add(page.evaluate("document.querySelector('main progress')?.value"))
        return page.get_by_role("heading", name="Spectrum").count() == 1

    wait_for(drawn, 60)
    assert len(seen) >= 3, "it moves"
    page.get_by_role("heading", name="Report of learning").wait_for()
    assert http.get("/v1/maps/learned").json()["status"] == "ready"
    remove(page)


def test_a_job_is_cancelled(page: "Page", http: httpx.Client) -> None:
    learned(page, "cancelled", 100000)
    page.get_by_role("link", name="Jobs").click()
    page.get_by_role("region", name="Job", exact=True).get_by_text("running").wait_for()
    button(page, "Cancel").click()
    page.get_by_role("row", name="cancelled").first.wait_for()
    wait_for(lambda: http.get("/v1/maps/cancelled").status_code == 404)


def test_a_job_that_has_ended_is_shown_with_its_result(page: "Page", http: httpx.Client) -> None:
    body = {"vectors": ROWS.tolist(), "seeds": 1}
    answer = http.post("/v1/maps/letters/diagnostics/gram", json=body, headers={"Prefer": "respond-async"})
    assert finished(http, answer)["state"] == "succeeded"
    page.goto(f"/#/jobs/{answer.json()['id']}")
    job = page.get_by_role("region", name="Job", exact=True)
    job.get_by_text("Took").wait_for()
    assert not job.get_by_role("button", name="Cancel").count()
    page.get_by_role("img", name="Result").wait_for()


def test_an_index_is_searched_measured_and_deleted(page: "Page", http: httpx.Client) -> None:
    rows = np.load(LETTERS)[:300].astype(np.float64)
    rows[299] = rows[3]
    assert http.put("/v1/indexes/near", json={"map": "letters-gmm", "keep": "vectors"}).status_code == 201
    kept = {
        "ids": [*range(297), (1 << 63) + 1, "3", "copy"],
        "vectors": rows.tolist(),
        "tags": [["even"] if i % 2 == 0 else [] for i in range(300)],
    }
    assert http.post("/v1/indexes/near/vectors", json=kept).status_code == 200
    assert http.put("/v1/aliases/live", json={"index": "near"}).status_code == 201
    page.get_by_role("link", name="Indexes").click()
    assert "live" in page.get_by_role("region", name="Aliases").inner_text()
    page.get_by_role("region", name="Indexes").get_by_role("link", name="near").click()
    heading(page, "near").wait_for()
    assert (figure(page, "Vectors"), figure(page, "Search")) == ("300", "scan")
    found = page.get_by_role("region", name="Nearest vectors").locator("tbody tr")

    def search(**asked: Any) -> None:
        button(page, "Search").click()
        wanted = http.post("/v1/indexes/near/search", json={"k": 4, **asked}).json()["results"][0]["ids"]
        wait_for(lambda: [row.split("\t")[0] for row in found.all_inner_texts()] == [*map(str, wanted)])

    page.get_by_label("Nearest", exact=True).fill("4")
    page.get_by_label("Id of a vector").fill("3")
    search(ids=[3])
    button(page, "copy").click()
    search(ids=["copy"])
    page.get_by_label("Id of a vector").fill(str((1 << 63) + 1))
    search(ids=[(1 << 63) + 1])
    page.get_by_label("with the tag").fill("even")
    search(ids=[(1 << 63) + 1], tag="even")
    page.get_by_label("Id of a vector").fill("")
    page.get_by_label("Paste rows").fill(", ".join(map(str, rows[5])))
    search(vectors=rows[5:6].tolist(), tag="even")
    page.get_by_text("Vectors and tags").click()
    page.get_by_role("region", name="Vectors").get_by_role("button", name="3", exact=True).first.click()
    search(ids=["3"], tag="even")
    page.get_by_label("Similarity from which").fill("1")
    button(page, "Measure: Duplicates").click()
    page.get_by_role("region", name="Clusters").get_by_text("copy").wait_for(timeout=_JOB_MS)
    button(page, "Measure: Recall").click()
    page.get_by_text("lost by", exact=False).first.wait_for(timeout=_JOB_MS)
    page.locator(".card", has=page.get_by_role("heading", name="Advice on bands")).locator("select").select_option(
        "letters"
    )
    button(page, "Measure: Advice on bands").click()
    page.get_by_role("img", name="Advice for letters-gmm").wait_for(timeout=_JOB_MS)
    button(page, "Delete").click()
    button(page, "Delete it").click()
    page.get_by_text("index 'near' is used by alias 'live'").wait_for()
    assert http.delete("/v1/aliases/live").status_code == 204
    button(page, "Delete it").click()
    heading(page, "Indexes").wait_for()
    assert http.get("/v1/indexes/near").status_code == 404


def test_dropped_rows_become_features_and_similarities(page: "Page", http: httpx.Client) -> None:
    """Of a file as German spreadsheets write it, with a column of words."""
    lines = [";".join([f"{one:g}".replace(".", ",") for one in row] + ['"T; or I"']) for row in ROWS]
    page.get_by_role("link", name="letters", exact=True).click()
    page.get_by_role("link", name="Try it").click()
    drop(page, "rows.csv", "\r\n".join([";".join("abcdefghijklmnopq"), *lines]).encode())
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


def test_codes_are_shown_of_a_map_that_hashes(page: "Page", http: httpx.Client, tmp_path: Path) -> None:
    page.goto("/#/maps/letters-gmm/try")
    drop(page, "rows.npy", npy(np.asfortranarray(ROWS[:5].astype(">f4"))))
    page.get_by_label("Encoding").select_option("b_bit")
    button(page, "Show codes and similarities").click()
    page.get_by_role("region", name="The first codes").wait_for()
    assert 0 <= float(figure(page, "Relative error")) < 0.2
    with page.expect_download() as saved:
        button(page, "Save all codes as .npy").click()
    saved.value.save_as(tmp_path / "codes.npy")
    codes = array(post_npy(http, "letters-gmm/codes?encoding=b_bit&bits=8", ROWS[:5]))
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), codes)


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


def test_a_map_is_recommended_for_rows_that_are_kept_as_a_dataset(page: "Page", http: httpx.Client) -> None:
    page.get_by_role("link", name="Datasets").click()
    drop(page, "rows.npy", npy(ROWS))
    page.get_by_label("Name", exact=True).fill("kept-here")
    button(page, "Keep as a dataset").click()
    page.get_by_role("row", name="kept-here").wait_for()
    assert http.get("/v1/datasets/kept-here").json()["shape"] == [40, 16]
    page.get_by_role("link", name="Recommend").click()
    page.get_by_label("or a dataset").select_option("kept-here")
    page.get_by_label("Output columns").fill("32")
    button(page, "Recommend a map").click()
    page.get_by_role("heading", name="All that was tried").wait_for(timeout=_JOB_MS)
    assert page.locator("tr.marked").inner_text().startswith("★")
    button(page, "Create this map …").click()
    page.get_by_label("Name", exact=True).fill("recommended")
    button(page, "Create the map").click()
    heading(page, "recommended").wait_for()
    remove(page)
    page.get_by_role("link", name="Datasets").click()
    button(page, "Delete kept-here").click()
    button(page, "Delete it").click()
    page.get_by_role("row", name="kept-here").wait_for(state="detached")


def test_a_map_is_recommended_by_labels_for_several_kernels(page: "Page") -> None:
    """The labels are a column of words beside the numbers; posted is what the form says."""
    rng = np.random.default_rng(5)
    lines = [f"{x:.3f},{y:.3f},{'near' if x * x + y * y < 1 else 'far'}" for x, y in rng.standard_normal((120, 2))]
    page.get_by_role("link", name="Recommend").click()
    page.get_by_label("Paste rows").fill("\n".join(lines))
    page.get_by_label("Labels").select_option("the column of words")
    page.get_by_label("Prepare rows").select_option("standardize")
    button(page, "Compare with another kernel").click()
    page.get_by_role("group", name="Kernel 2").get_by_label("Kind", exact=True).select_option("laplacian")
    page.get_by_label("Output columns").fill("16")
    page.get_by_label("Seeds").fill("2")
    page.get_by_label("Mode").select_option("quick: wider intervals")
    with page.expect_request("**/v1/recommendations") as asked:
        button(page, "Recommend a map").click()
    body: dict[str, Any] = asked.value.post_data_json or {}
    assert [len(body["vectors"]), len(body["vectors"][0]), {*body["y"]}] == [120, 2, {"near", "far"}]
    assert [body["input"], body["mode"], body["seeds"], body["budget"]] == ["standardize", "quick", 2, 16]
    assert [kernel["kind"] for kernel in body["kernel"]] == ["gaussian", "laplacian"]
    page.get_by_role("heading", name="All that was tried").wait_for(timeout=_JOB_MS)
    table = page.get_by_role("table", name="The ranking, the best first").inner_text()
    assert all(word in table for word in ("Score", "gaussian, length scale", "laplacian, length scale"))
    assert 0.3 < float(figure(page, "Score without a map: linear")) < 0.9
    page.get_by_role("link", name="the page of its job").click()
    page.get_by_role("table", name="The ranking, the best first").get_by_role("button").nth(1).click()
    heading(page, "New map").wait_for()
    assert page.get_by_label("Prepare rows").input_value() == "given"
    page.get_by_role("link", name="Jobs").click()
    page.get_by_role("cell", name="recommend gaussian, laplacian").first.wait_for()


def test_of_many_rows_a_random_sample_is_sent_with_its_own_labels(page: "Page") -> None:
    """The rows are in the order of their labels."""
    rows = np.stack([np.arange(5000.0), np.arange(5000) // 1000], axis=1)
    page.get_by_role("link", name="Recommend").click()
    drop(page, "rows.npy", npy(rows))
    page.get_by_label("Labels").select_option("a column of these rows")
    page.get_by_text("2000 of your 5000 rows are sent, drawn at random").wait_for()
    with page.expect_request("**/v1/recommendations") as asked:
        button(page, "Recommend a map").click()
    body: dict[str, Any] = asked.value.post_data_json or {}
    sent, labels = np.array(body["vectors"])[:, 0], np.array(body["y"])
    assert len(sent) == len({*sent}) == 2000
    np.testing.assert_array_equal(labels, sent // 1000)
    # Of 5,000 rows 2,000 are drawn: each label 400 times, with a standard deviation of 13.9.
    assert np.abs(np.bincount(labels.astype(int)) - 400).max() < 4 * 13.9
    button(page, "Cancel").click()


def test_maps_are_sorted_and_those_of_pipelines_folded(page: "Page", http: httpx.Client) -> None:
    spec = {
        "input_dim": 3,
        "kernel": {"kind": "gaussian", "length_scale": 1},
        "sampler": {"kind": "monte_carlo"},
        "s": 9,
    }
    for name, s in (("sklearn-0a", 9), ("wide", 99)):
        assert http.put(f"/v1/maps/{name}", json=spec | {"s": s}).status_code == 201
    page.reload()
    button(page, "Show 1 map made by pipelines").wait_for()
    assert page.get_by_role("link", name="sklearn-0a").count() == 0
    button(page, "Show 1 map made by pipelines").click()
    names = page.locator("tbody th[scope=row]")
    assert names.all_inner_texts() == sorted(names.all_inner_texts())
    button(page, "Columns").click()
    columns = [int(one.replace(",", "")) for one in page.locator("tbody td:nth-child(5)").all_inner_texts()]
    assert columns == sorted(columns)
    button(page, "Columns ↑").click()
    assert page.locator("tbody td:nth-child(5)").all_inner_texts() == [f"{one:,}" for one in reversed(columns)]
    for name in ("sklearn-0a", "wide"):
        http.delete(f"/v1/maps/{name}")


def test_the_page_serves_by_keyboard_by_screen_reader_and_on_a_telephone(page: "Page", http: httpx.Client) -> None:
    page.get_by_role("link", name="letters", exact=True).wait_for()
    tab_to(page, "New map")
    press(page, "Enter")
    heading(page, "New map").wait_for()
    page.locator("h1:focus").wait_for()  # a new view begins with its head
    tab_to(page, "Name")
    page.keyboard.type("by-keys")
    tab_to(page, "Kind")
    page.keyboard.type("laplacian")
    tab_to(page, "Create the map")
    press(page, "Enter")
    heading(page, "by-keys").wait_for()
    assert http.get("/v1/maps/by-keys").json()["spec"]["kernel"]["kind"] == "laplacian"
    tab_to(page, "Delete")
    press(page, "Enter")
    page.get_by_role("dialog").wait_for()
    press(page, "Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    remove(page)
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page.set_viewport_size({"width": 360, "height": 740})
    for view in VIEWS:
        page.goto(f"/#/{view}")
        page.get_by_role("heading", level=1).wait_for()
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, view
        assert [(view, one["id"]) for one in axe.Axe().run(page).response["violations"]] == []


def test_hostile_words_are_shown_and_nothing_else(page: "Page", http: httpx.Client) -> None:
    record = http.get("/v1/maps/letters").json()
    told = record | {"name": HOSTILE, "warnings": [HOSTILE], "generator": {HOSTILE: HOSTILE}, "digest": HOSTILE}
    told["spec"] = record["spec"] | {"kernel": {"kind": HOSTILE, "length_scale": 1}, HOSTILE: HOSTILE}
    told["report"] = {HOSTILE: 1}

    def answer(route: "Route") -> None:
        listed = {"maps": [told], "next": None}
        body = listed if "limit=" in route.request.url else told
        route.fulfill(body=json.dumps(body), content_type="application/json")

    page.route("**/v1/maps?*", answer)
    page.route("**/v1/maps/hostile", answer)
    page.goto("/#/jobs")
    page.goto("/#/maps")
    assert "%3Cimg" in str(page.get_by_role("link", name=HOSTILE).get_attribute("href"))
    page.goto("/#/maps/hostile")
    page.get_by_label("Warnings").get_by_text(HOSTILE).wait_for()
    # By the service's own words: a name in the address.
    page.goto(f"/#/maps/{HOSTILE.replace('/', '%2F').replace('?', '%3F')}")
    page.get_by_role("alert").wait_for()
    assert page.evaluate("globalThis.hurt") is None
    assert page.locator("main img, main script").count() == 0


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Keyed]:
    with service(tmp_path / "data", "--require-keys", "true") as running:
        made = keyed(running)
        with made.client(Role.write) as http:
            fill(http)
        yield made


def test_without_a_key_nothing_is_shown_and_with_one_everything(here: Keyed, chromium: Any) -> None:
    from service_tests.browser.browsing import host, watched

    with watched(chromium, here.running.url) as seen:
        page = seen.page
        page.goto("/")
        dialog = page.get_by_role("dialog", name="Your key")
        dialog.get_by_text("got no key").wait_for()
        assert "letters" not in page.locator("main table, main li").all_inner_texts()
        page.get_by_label("Key", exact=True).fill("bochner_0123456789abcdef_wrong")
        page.get_by_role("button", name="Use this key").click()
        dialog.get_by_text("expected a valid key").wait_for()
        page.get_by_label("Key", exact=True).fill(here.texts[Role.read])
        press(page, "Enter")
        page.get_by_role("link", name="letters", exact=True).wait_for()
        page.reload()
        page.get_by_role("link", name="letters", exact=True).click()
        page.get_by_role("img", name="256 frequencies in").wait_for()
        assert here.texts[Role.read] not in page.content()
        assert page.evaluate("Object.values(sessionStorage)") == [here.texts[Role.read]]
        # What the key may not do is told.
        button(page, "Delete").click()
        button(page, "Delete it").click()
        page.get_by_text("expected role write").wait_for()
        press(page, "Escape")
        button(page, "Key in use").click()
        button(page, "Forget it").click()
        dialog.get_by_text("got no key").wait_for()
        assert page.evaluate("sessionStorage.length") == 0
        seen.check(host(here.running.url))
