"""The commands of the README and of the pages of docs/ are run, and must print what stands below them."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from service_tests.cases import with_nightly
from service_tests.running import Running, service

ROOT = Path(__file__).parent.parent
PAGES = (
    "README.md",
    "docs/tutorial.md",
    "docs/how-to/choose-a-map.md",
    "docs/how-to/numbers-from-data.md",
    "docs/how-to/prepare-raw-rows.md",
    "docs/how-to/take-a-map-away.md",
    "docs/how-to/transform-files.md",
    "docs/how-to/use-inference-clients.md",
    "docs/explanation/landmarks.md",
    "docs/reference/formats.md",
)
# Commands, and what stands right below them, if it is output and not prose.
TRANSCRIPT = re.compile(r"```(sh|python)\n(.*?)```\n(?:\n```(?:json|text)?\n(.*?)```)?", re.DOTALL)
# What starts or installs the service, which runs already, and what needs an environment of its own.
NOT_REPLAYED = re.compile(r"bochner serve|pip install|docker |kserve")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)")
# Members that depend on the moment, the machine or the release: there, but of any value.
VOLATILE = {"created_at", "expires_at", "generator", "job", "instance"}

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the pages show commands of curl")


Shell = Callable[[str, str], str]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that nobody else uses, beside what the commands read."""
    made = tmp_path_factory.mktemp("transcripts")
    for name in ("examples", "openapi"):
        (made / name).symlink_to(ROOT / name)
    (made / ".curlrc").write_text("silent\nshow-error\n")
    with service(made / "data", "--job-workers", "1") as running:
        yield running


@pytest.fixture
def shell(own: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Runs commands as a reader would at the top of the source, one after the other, on a service that has nothing."""
    folder, own_service = own.data_dir.parent, own.url
    for things in ("maps", "datasets"):
        for one in httpx.get(f"{own_service}/v1/{things}").json()[things]:
            assert httpx.delete(f"{own_service}/v1/{things}/{one['name']}").status_code == 204
    environment = {**os.environ, "CURL_HOME": str(folder), "PYTHONPATH": str(ROOT)}
    replaced = {
        "\nbochner ": f"\n{sys.executable} -m app ",
        ".venv/bin/bochner": f"{sys.executable} -m app",
        ".venv/bin/python": sys.executable,
        "http://127.0.0.1:8000": own_service,
        "localhost:8000": own_service.removeprefix("http://"),
        "examples/tour.py": f"examples/tour.py {own_service}",
    }

    monkeypatch.chdir(folder)
    known: dict[str, Any] = {"__name__": "page"}

    def run(language: str, command: str) -> str:
        # All at once: the interpreter's own path may hold what is replaced.
        command = re.sub("|".join(map(re.escape, replaced)), lambda shown: replaced[shown[0]], command)
        if language == "python":
            exec(compile(command, "page", "exec"), known)
            return capsys.readouterr().out
        shell = ["bash", "-euo", "pipefail", "-c", command]
        ended = subprocess.run(shell, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert ended.returncode == 0, f"{command}\nended with:\n{ended.stderr}"
        return ended.stdout

    return run


def alike(printed: Any, shown: Any) -> bool:
    """Whether two JSON values agree, to the rounding of a processor and but for what is volatile."""
    if isinstance(shown, dict) and isinstance(printed, dict):
        return list(printed) == list(shown) and all(
            (printed[key] is None) == (value is None) if key in VOLATILE else alike(printed[key], value)
            for key, value in shown.items()
        )
    if isinstance(shown, list) and isinstance(printed, list):
        return len(printed) == len(shown) and all(map(alike, printed, shown))
    if isinstance(shown, float) and isinstance(printed, float):
        return bool(printed == pytest.approx(shown, rel=1e-3, abs=1e-5))
    if isinstance(shown, str) and isinstance(printed, str):
        return DIGEST.sub("a digest", printed) == DIGEST.sub("a digest", shown)
    return type(printed) is type(shown) and bool(printed == shown)


def same_line(printed: str, shown: str) -> bool:
    """Whether two lines agree: as JSON where they are, else word for word and fractions to half a percent."""
    if shown.startswith(("{", "[")):
        return alike(json.loads(printed), json.loads(shown))
    if NUMBER.sub("#", printed) != NUMBER.sub("#", shown):
        return False
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True)
    return all(float(a) == pytest.approx(float(b), rel=5e-3) if "." in b else a == b for a, b in pairs)


@pytest.mark.gate
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("page", with_nightly(PAGES[:1], PAGES[1:]))
def test_a_page_can_be_typed_in(page: str, shell: Shell) -> None:
    compared, text = 0, (ROOT / page).read_text()
    if "that of the README" in text:
        first = (
            command for _, command, _ in TRANSCRIPT.findall((ROOT / "README.md").read_text()) if " PUT " in command
        )
        shell("sh", next(first))
    for language, command, output in TRANSCRIPT.findall(text):
        if NOT_REPLAYED.search(command):
            continue
        printed = shell(language, command).splitlines()
        problem = any('"/problems/' in line for line in printed) and "/problems/" not in output
        assert not problem, f"{command}\nwas refused:\n{printed}"
        if output:
            shown = output.splitlines()
            assert len(printed) == len(shown), f"{command}\nprinted:\n{printed}"
            for printed_line, shown_line in zip(printed, shown, strict=True):
                assert same_line(printed_line, shown_line), f"{command}\nprinted:\n{printed_line}\nnot:\n{shown_line}"
            compared += 1
    assert compared or page != "docs/tutorial.md"
