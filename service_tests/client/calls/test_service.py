import httpx
import pytest

from bochner_client import NotFound
from service_tests.client.conftest import Asked


def test_the_service_tells_of_itself(ask: Asked, http: httpx.Client) -> None:
    assert ask.live() == {"status": "live"}
    assert ask.ready()["status"] == "ready"
    found, told = ask.info(), http.get("/v1/info").json()
    assert (found.versions, found.limits) == (told["versions"], told["limits"])
    assert found.usage.keys() == {"bytes", "names"}
    assert ask.catalog() == http.get("/v1/catalog").json()
    assert ask.openapi() == http.get("/openapi.json").json()
    assert "# TYPE" in ask.metrics()
    assert "Send fewer rows" in ask.problem("too-large")
    with pytest.raises(NotFound):
        ask.problem("none")
