import subprocess
import sys
from pathlib import Path

import pytest

import bochner_client
from bochner_client import Client
from service_tests.client.calls.test_jobs import PATIENT
from service_tests.running import Running

HERE = Path(bochner_client.__file__).parents[1]


@pytest.mark.nightly
def test_a_bar_is_drawn(jobs_service: Running, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Client(jobs_service.url) as client:
        client.put_map(name, {**PATIENT, "s": 4}, progress=True)
    drawn = capsys.readouterr().err
    assert "succeeded 100%|" in drawn
    assert "step" in drawn


def test_without_tqdm_the_bar_says_what_to_install() -> None:
    source = """
import sys
sys.modules["tqdm"] = sys.modules["tqdm.auto"] = None
from bochner_client.progress import bar
try:
    bar().__enter__()
except ImportError as error:
    print(error)
"""
    ended = subprocess.run([sys.executable, "-c", source], cwd=HERE, capture_output=True, text=True, check=True)
    assert "bochner-client[progress]" in ended.stdout
