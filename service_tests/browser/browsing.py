"""A real browser on the page of a service, with an eye on what the page does that it may not."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium")
SIZE: Any = {"width": 1280, "height": 900}
# Says of each breach of the Content-Security-Policy what was kept out.
_WATCH = "addEventListener('securitypolicyviolation', (e) => console.error('breach: ' + e.violatedDirective));"


class Watched(NamedTuple):
    """A page, and what is held against it."""

    page: Page
    faults: list[str]
    hosts: set[str]

    def check(self, host: str) -> None:
        """Nothing was kept out by the policy, no script failed, no other host was asked, nothing was left behind."""
        assert not self.faults, self.faults
        assert self.hosts == {host}
        assert self.page.context.cookies() == []
        assert self.page.evaluate("localStorage.length") == 0


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium as Debian has it."""
    # Its sandbox wants what a container's root has not.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        try:
            yield started
        finally:
            started.close()


@contextmanager
def watched(of: Browser, url: str, dark: bool = False, **more: Any) -> Iterator[Watched]:
    """A page at the address of a service, in a window without a past."""
    context = of.new_context(base_url=url, viewport=SIZE, color_scheme="dark" if dark else "light", **more)
    page, faults, hosts = context.new_page(), list[str](), set[str]()
    page.set_default_timeout(30_000)
    page.add_init_script(_WATCH)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if _is_fault(message.text) else None)
    page.on("request", lambda request: hosts.add(host(request.url)))
    try:
        yield Watched(page, faults, hosts)
    finally:
        context.close()


def _is_fault(text: str) -> bool:
    return any(word in text for word in ("breach:", "Content Security Policy", "Trusted", "Uncaught"))


def host(url: str) -> str:
    """The host of an address; of something in memory, that of the page that has made it."""
    return urlsplit(url.removeprefix("blob:")).netloc
