import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import app

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
