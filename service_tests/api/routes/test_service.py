from importlib.metadata import version
from typing import get_args

import httpx

from app.api.problems import KINDS
from app.core.kernels import Kernel
from app.core.maps.terms import Form
from app.core.spec import Sampler
from app.settings import Settings
from service_tests.cases import each
from service_tests.checks import assert_problem


def test_the_process_is_live_and_ready(http: httpx.Client) -> None:
    assert http.get("/health/live").json() == {"status": "live"}
    assert http.get("/health/ready").json() == {"status": "ready"}


def test_info_names_versions_limits_and_the_keeping_of_the_store(http: httpx.Client) -> None:
    info = http.get("/v1/info").json()
    assert info["versions"] == {package: version(package) for package in ("bochner", "numpy", "scipy")}
    assert info["limits"] == Settings(max_body_bytes=2_000_000).limits
    assert info["limits"].items() >= {"max_requests": 64, "max_spec_bytes": 4 << 20, "max_request_seconds": 1.5}.items()
    assert info["store"]["server"].startswith("valkey ")
    assert 0 <= info["usage"]["names"] <= info["usage"]["bytes"]
    assert (info["store"]["durability"], info["store"]["maxmemory_policy"]) == ("always", "noeviction")


def kinds(union: object) -> set[str]:
    return {get_args(model.model_fields["kind"].annotation)[0] for model in get_args(get_args(union)[0])}


def test_the_catalog_names_every_registered_kind(http: httpx.Client) -> None:
    catalog = http.get("/v1/catalog").json()
    assert set(catalog["kernels"]) == kinds(Kernel) >= {"gaussian", "laplacian", "cauchy", "gmm"}
    assert set(catalog["samplers"]) == kinds(Sampler) >= {"monte_carlo", "halton", "sobol", "moment_matching", "gcws"}
    assert set(catalog["forms"]) == set(Form)


@each("slug", KINDS)
def test_every_problem_has_a_page(http: httpx.Client, slug: str) -> None:
    page = http.get(f"/problems/{slug}")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert KINDS[slug].title in page.text


def test_a_page_that_is_not_there_names_those_that_are_and_shows_no_markup(http: httpx.Client) -> None:
    answer = http.get("/problems/<script>")
    detail = assert_problem(http, answer, 404, "not-found")["detail"]
    assert all(slug in detail for slug in KINDS)
