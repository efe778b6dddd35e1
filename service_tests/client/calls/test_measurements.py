from typing import Any

import httpx
import numpy as np
import pytest
from scipy import sparse

from bochner_client import Client, DatasetRows, NotAcceptable
from service_tests.client.conftest import Asked

ROWS = np.random.default_rng(2).normal(size=(30, 3))
KERNEL = {"kind": "gaussian", "length_scale": 1.5}


def test_a_diagnostic_gives_its_figures(ask: Asked, standing: dict[str, str], http: httpx.Client, name: str) -> None:
    ask.put_dataset(name, ROWS)
    found = ask.diagnose(standing["phase"], "gram", ROWS, estimators=["map"])
    asked = {"vectors": ROWS.tolist(), "estimators": ["map"]}
    assert found == http.post(f"/v1/maps/{standing['phase']}/diagnostics/gram", json=asked).json()
    assert ask.diagnose(standing["phase"], "gram", DatasetRows(name), estimators=["map"]) == found
    assert ask.diagnose(standing["phase"], "variance", x=ROWS[:5], y=ROWS[5:10])


def test_a_job_gives_the_same_figures_and_picture(client: Client, standing: dict[str, str]) -> None:
    job = client.start_diagnosis(standing["phase"], "gram", ROWS, seed=4)
    assert job.wait() == client.diagnose(standing["phase"], "gram", ROWS, seed=4)
    assert job.picture() == client.draw_diagnosis(standing["phase"], "gram", ROWS, seed=4)
    with pytest.raises(NotAcceptable):
        client.draw_diagnosis(standing["phase"], "gram", ROWS, media_type="image/gif")


def test_a_recommendation_gives_its_ranking(client: Client) -> None:
    options: Any = {"budget": 32, "samplers": ["sobol", "monte_carlo"], "seeds": 2}
    found = client.recommend(KERNEL, sparse.csr_array(ROWS), **options)
    assert found["best"]["sampler"]["kind"] in ("sobol", "monte_carlo")
    assert client.start_recommendation(KERNEL, ROWS, **options).wait()["best"] == found["best"]
    assert client.draw_recommendation(KERNEL, ROWS, **options).startswith(b"<?xml")


def test_advice_is_the_same_at_once_and_by_a_job(client: Client, name: str, gmm: dict[str, Any]) -> None:
    client.put_map(name, gmm)
    client.put_dataset(name, np.random.default_rng(3).normal(size=(120, 3)))
    found = client.advise(name, name, k=3, recall=0.8, candidates=50)
    assert (found["k"], found["recall"], found["candidates"], found["rows"]) == (3, 0.8, 50, 96)
    assert client.start_advice(name, name, k=3, recall=0.8, candidates=50).wait()["curves"] == found["curves"]
