import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import app
from app.own_process import command
from service_tests.running import free_port
from service_tests.servers import until

PACKAGE = Path(app.__file__).parent
TELLS = "import sys; from pathlib import Path; import app; print(app.__file__, *sys.argv[1:], Path.cwd())"
STARTS = "import subprocess; from app.own_process import command; subprocess.run(command('app.tells', 'a'), check=True)"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A directory with another version of the package, which cannot even be imported."""
    package = tmp_path / "checkout" / "app"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('this is not the package that runs')\n")
    return package.parent


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """The directory that a package of this name was installed in, with a module that says where it is."""
    package = tmp_path / "elsewhere" / "app"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "tells.py").write_text(TELLS)
    shutil.copy(PACKAGE / "own_process.py", package)
    return package.parent


def said(line: list[str], cwd: Path, path: Path | str) -> str:
    """What a process prints that starts in a directory and looks for packages on a path."""
    environment = {**os.environ, "PYTHONPATH": str(path)}
    return subprocess.run(line, cwd=cwd, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_an_installed_package_starts_itself_in_any_directory(checkout: Path, elsewhere: Path) -> None:
    told = said([sys.executable, "-P", "-c", STARTS], checkout, elsewhere)
    assert told == f"{elsewhere / 'app' / '__init__.py'} a {checkout}"


def test_a_package_that_is_not_installed_starts_itself(elsewhere: Path) -> None:
    """It was found because the first process was started beside it, where the second looks no more."""
    told = said([sys.executable, "-c", STARTS], elsewhere, "")
    assert told == f"{elsewhere / 'app' / '__init__.py'} a {elsewhere}"


def test_the_place_of_the_package_among_others_is_kept(tmp_path: Path, elsewhere: Path) -> None:
    """Packages beside it do not come before those of the standard library."""
    (elsewhere / "app" / "tells.py").write_text("import sys; print(sys.path)")
    first = tmp_path / "first"
    told = said([sys.executable, "-P", "-c", STARTS], tmp_path, f"{first}{os.pathsep}{elsewhere}")
    assert told.startswith(f"['{first}', '{elsewhere}', ")
    assert told.count(str(elsewhere)) == 1


def test_the_command_names_the_interpreter_that_runs() -> None:
    assert command("app", "worker")[0] == sys.executable


@pytest.mark.nightly
def test_an_installed_service_that_starts_in_a_checkout_compiles_and_works_by_itself(
    tmp_path: Path, checkout: Path
) -> None:
    installed, compiled, log = (tmp_path / name for name in ("installed", "compiled", "log"))
    shutil.copytree(PACKAGE, installed / "app", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(installed), "NUMBA_CACHE_DIR": str(compiled)}
    line = [sys.executable, "-P", "-m", "app", "serve", "--port", str(free_port()), "--data-dir", "data"]
    with log.open("wb") as output:
        process = subprocess.Popen([*line, "--workers", "2"], cwd=checkout, env=environment, stderr=output)
    try:
        until(lambda: [*compiled.rglob("*.nbi")] or process.poll() is not None)
        beside = psutil.Process(process.pid).children()
        assert [one.pid for one in beside if "worker" in one.cmdline()]
    finally:
        process.terminate()
        process.wait(120)
    assert (checkout / "data").is_dir()
    assert "not the package" not in log.read_text()
