import os
import shutil
import subprocess
import sys
from pathlib import Path

import app

TELLS = "import sys; from pathlib import Path; import app; print(app.__file__, *sys.argv[1:], Path.cwd())"
STARTS = "import subprocess; from app.own_process import command; subprocess.run(command('app.tells', 'a'), check=True)"


def test_an_installed_package_starts_itself_in_any_directory(tmp_path: Path) -> None:
    """Also where there is another version of it, which cannot even be imported."""
    checkout, installed = tmp_path / "checkout", tmp_path / "installed"
    for package in (checkout / "app", installed / "app"):
        package.mkdir(parents=True)
    (checkout / "app" / "__init__.py").write_text("raise RuntimeError('this is not the package that runs')\n")
    (installed / "app" / "__init__.py").touch()
    (installed / "app" / "tells.py").write_text(TELLS)
    shutil.copy(Path(app.__file__).parent / "own_process.py", installed / "app")
    line = [sys.executable, "-P", "-c", STARTS]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    told = subprocess.run(line, cwd=checkout, env=environment, capture_output=True, text=True, check=True).stdout
    assert told == f"{installed / 'app' / '__init__.py'} a {checkout}\n"


def test_a_process_ends_although_a_thread_goes_on() -> None:
    """A thread that computes cannot be interrupted; without an end, the interpreter waits for it."""
    hangs = "import threading; threading.Thread(target=threading.Event().wait).start()\n"
    ends = "from app.own_process import ended_soon_after\nwith ended_soon_after(): print('closed', flush=True)"
    ended = subprocess.run([sys.executable, "-c", hangs + ends], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "closed\n"
