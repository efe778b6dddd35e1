"""The page by keyboard and by screen reader, with a key and without, and against hostile words."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from app.store.keys import Role
from service_tests.browser.conftest import fill
from service_tests.keyed import Keyed, keyed
from service_tests.running import Running, service

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = pytest.mark.nightly

VIEWS = [
    "#/maps",
    "#/maps/letters",
    "#/maps/letters/errors",
    "#/maps/letters/try",
    "#/new",
    "#/datasets",
    "#/recommend",
    "#/jobs",
]
HOSTILE = '<img src=x onerror="globalThis.hurt=1"><script>globalThis.hurt=1</script>{{7*7}}${globalThis.hurt=1}'


@pytest.fixture(params=[False, True], ids=["light", "dark"])
def shaded(request: pytest.FixtureRequest, site: Running, chromium: Any) -> Iterator[Any]:
    """The page by day and by night."""
    from service_tests.browser.browsing import watched

    with watched(chromium, site.url, dark=request.param) as seen:
        yield seen.page


def violations(page: "Page") -> list[str]:
    """What axe finds, with the places."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{one['impact']} {one['id']}: {[node['target'] for node in one['nodes']][:3]}" for one in found]


def test_axe_finds_nothing_in_any_view(shaded: "Page") -> None:
    pytest.importorskip("axe_playwright_python")
    faults = {}
    for view in VIEWS:
        shaded.goto(f"/{view}")
        shaded.get_by_role("heading", level=1).wait_for()
        shaded.wait_for_load_state("networkidle")
        faults[view] = violations(shaded)
    shaded.get_by_role("button", name="Key").click()
    faults["key"] = violations(shaded)
    assert {view: found for view, found in faults.items() if found} == {}


def test_pictures_of_the_service_are_read_out_and_follow_the_night(shaded: "Page") -> None:
    shaded.goto("/#/maps/letters/try")
    shaded.get_by_label("Paste rows of numbers").fill(
        "\n".join(" ".join(["1.5"] * i + ["2"] * (16 - i)) for i in range(9))
    )
    shaded.get_by_role("button", name="Show features").click()
    shaded.get_by_role("img", name="By the map", exact=True).wait_for()
    assert violations(shaded) == []


def press(page: "Page", *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def focused(page: "Page") -> str:
    """The words of what has the focus."""
    told: str = page.evaluate("(document.activeElement.labels?.[0] ?? document.activeElement).innerText")
    return told


def tab_to(page: "Page", words: str) -> None:
    """Press Tab until what has these words has the focus."""
    for _ in range(80):
        if focused(page).startswith(words):
            return
        press(page, "Tab")
    raise AssertionError(f"no key leads to {words!r}")


def test_a_map_is_created_and_deleted_by_keyboard_alone(page: "Page", site: Running) -> None:
    page.get_by_role("link", name="letters", exact=True).wait_for()
    page.reload()
    page.get_by_role("link", name="letters", exact=True).wait_for()
    press(page, "Shift+Tab")
    tab_to(page, "New map")
    press(page, "Enter")
    page.get_by_role("heading", level=1, name="New map").wait_for()
    page.get_by_text("Time to build").wait_for()
    assert page.evaluate("document.activeElement.tagName") == "H1", "the head of the new view has the focus"
    tab_to(page, "Name")
    page.keyboard.type("by-keys")
    tab_to(page, "Kind")
    page.keyboard.type("laplacian")
    tab_to(page, "Create the map")
    press(page, "Enter")
    page.get_by_role("heading", level=1, name="by-keys").wait_for()
    with site.client() as http:
        assert http.get("/v1/maps/by-keys").json()["spec"]["kernel"]["kind"] == "laplacian"
    tab_to(page, "Delete")
    press(page, "Enter")
    tab_to(page, "Delete it")
    press(page, "Enter")
    page.get_by_role("heading", level=1, name="Maps").wait_for()


def test_escape_keeps_what_was_to_be_deleted(page: "Page", site: Running) -> None:
    page.goto("/#/maps/letters")
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").wait_for()
    press(page, "Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    assert focused(page) == "Delete"
    with site.client() as http:
        assert http.get("/v1/maps/letters").status_code == 200


def test_it_fits_a_telephone(site: Running, chromium: Any) -> None:
    context = chromium.new_context(base_url=site.url, viewport={"width": 360, "height": 740})
    page = context.new_page()
    for view in VIEWS:
        page.goto(f"/{view}")
        page.get_by_role("heading", level=1).wait_for()
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, view
    context.close()


def test_hostile_words_are_shown_and_nothing_else(page: "Page", site: Running) -> None:
    with site.client() as http:
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
    link = page.get_by_role("link", name=HOSTILE)
    assert "%3Cimg" in str(link.get_attribute("href"))
    page.goto("/#/maps/hostile")
    page.get_by_label("Warnings").get_by_text(HOSTILE).wait_for()
    # By the service's own words: a name in the address, and a kind of kernel.
    page.goto(f"/#/maps/{HOSTILE.replace('/', '%2F').replace('?', '%3F')}")
    page.get_by_role("alert").wait_for()
    page.goto("/#/%E0%A4%A/%")
    page.get_by_role("heading", level=1, name="Maps").wait_for()
    assert page.evaluate("globalThis.hurt") is None
    assert page.locator("main img, main script").count() == 0


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    with service(tmp_path_factory.mktemp("keyed") / "data", "--require-keys", "true") as running:
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
        dialog.get_by_text("no key came").wait_for()
        assert "letters" not in page.locator("main table, main li").all_inner_texts()
        page.get_by_label("Key", exact=True).fill("bochner_0123456789abcdef_wrong")
        page.get_by_role("button", name="Use this key").click()
        dialog.get_by_text("no key that is valid here").wait_for()
        page.get_by_label("Key", exact=True).fill(here.texts[Role.read])
        press(page, "Enter")
        page.get_by_role("link", name="letters", exact=True).wait_for()
        page.reload()
        page.get_by_role("link", name="letters", exact=True).click()
        page.get_by_role("img", name="256 frequencies in").wait_for()
        assert here.texts[Role.read] not in page.content()
        assert page.evaluate("Object.values(sessionStorage)") == [here.texts[Role.read]]
        # What the key may not do is told.
        page.get_by_role("button", name="Delete", exact=True).click()
        page.get_by_role("button", name="Delete it").click()
        page.get_by_text("write is wanted").wait_for()
        press(page, "Escape")
        page.get_by_role("button", name="Key in use").click()
        page.get_by_role("button", name="Forget it").click()
        dialog.get_by_text("no key came").wait_for()
        assert page.evaluate("sessionStorage.length") == 0
        seen.check(host(here.running.url))


def test_a_job_is_watched_with_a_key(here: Keyed, chromium: Any) -> None:
    from service_tests.browser.browsing import watched

    with here.client(Role.write) as http, watched(chromium, here.running.url) as seen:
        sampler = {"kind": "global_adaptive", "box": 4.0, "iterations": 100000}
        kernel = {"kind": "gaussian", "length_scale": 5.0}
        spec = {"input_dim": 16, "kernel": kernel, "sampler": sampler, "s": 256}
        record = http.put("/v1/maps/long", json=spec, headers={"Prefer": "respond-async"}).json()
        seen.page.goto("/")
        seen.page.get_by_label("Key", exact=True).fill(here.texts[Role.write])
        press(seen.page, "Enter")
        seen.page.goto("/#/maps/long")
        seen.page.get_by_role("region", name="Job", exact=True).get_by_text("queued").wait_for()
        http.delete(record["job"])
        seen.page.get_by_text("It was cancelled").wait_for()
