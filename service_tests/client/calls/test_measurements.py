import httpx
import numpy as np
import pytest
from scipy import sparse

from bochner_client import DatasetRows, InvalidInput, NotAcceptable
from service_tests.client.conftest import Asked

ROWS = np.random.default_rng(2).normal(size=(30, 3))
KERNEL = {"kind": "gaussian", "length_scale": 1.5}


def test_a_diagnostic_gives_its_figures(ask: Asked, standing: dict[str, str], http: httpx.Client, name: str) -> None:
    ask.put_dataset(name, ROWS)
    found = ask.diagnose(standing["phase"], "gram", ROWS, estimators=["map"])
    asked = {"vectors": ROWS.tolist(), "estimators": ["map"]}
    assert found == http.post(f"/v1/maps/{standing['phase']}/diagnostics/gram", json=asked).json()
    assert ask.diagnose(standing["phase"], "gram", DatasetRows(name), estimators=["map"]) == found
    assert ask.diagnose(standing["phase"], "gram", sparse.csr_array(ROWS))["rows"] == 30
    assert ask.diagnose(standing["phase"], "max-error", diameters=[1.0])["diameters"][0]["diameter"] == 1
    assert ask.diagnose(standing["phase"], "variance", x=ROWS[:5], y=ROWS[5:10])
    with pytest.raises(InvalidInput, match="estimater"):
        ask.diagnose(standing["phase"], "gram", ROWS, estimater=[])


def test_a_job_gives_the_same_figures_and_picture(ask_for_much: Asked, standing: dict[str, str]) -> None:
    job = ask_for_much.start_diagnosis(standing["phase"], "gram", ROWS, seed=4)
    assert job.wait() == ask_for_much.diagnose(standing["phase"], "gram", ROWS, seed=4)
    assert job.picture() == ask_for_much.draw_diagnosis(standing["phase"], "gram", ROWS, seed=4)
    assert job.picture().startswith(b"<?xml")
    with pytest.raises(NotAcceptable):
        ask_for_much.draw_diagnosis(standing["phase"], "gram", ROWS, media_type="image/gif")


def test_a_recommendation_gives_its_ranking(ask_for_much: Asked) -> None:
    options = {"budget": 32, "samplers": ["sobol", "monte_carlo"], "seeds": 2}
    found = ask_for_much.recommend(KERNEL, ROWS, **options)
    assert found["best"]["sampler"]["kind"] in ("sobol", "monte_carlo")
    assert ask_for_much.recommend(KERNEL, sparse.csr_array(ROWS), **options)["best"]["input_dim"] == 3
    job = ask_for_much.start_recommendation(KERNEL, ROWS, **options)
    assert job.wait()["best"] == found["best"]
    assert ask_for_much.draw_recommendation(KERNEL, ROWS, **options).startswith(b"<?xml")
