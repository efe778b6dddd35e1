import io
from importlib.metadata import version
from typing import Any, get_args

import httpx
import numpy as np

from app.api.problems import KINDS
from app.core.kernels import Kernel
from app.core.maps import FAMILIES
from app.core.maps.terms import Form
from app.core.spec import Sampler
from app.formats.exports import EXPORTS
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


ROWS = [[(i + j) % 5 / 5 for j in range(8)] for i in range(3)]
DIAGNOSED = {
    "gram": {"vectors": ROWS},
    "max-error": {"diameters": [1.0]},
    "box-discrepancy": {"box": 1.0},
    "variance": {"x": ROWS[:1], "y": ROWS[1:2], "repeats": 2},
    "collisions": {"vectors": ROWS},
}
SPECS: dict[str, dict[str, Any]] = {
    "monte_carlo": {"s": 4},
    "structured_orthogonal": {"s": 8, "dtype": "float64", "form": "phase"},
    "sparse_grid": {"sampler": {"kind": "sparse_grid", "level": 1}},
    "gcws": {"s": 4, "kernel": {"kind": "gmm"}},
    "dart_minhash": {"s": 4, "kernel": {"kind": "gmm"}},
    "uploaded_landmarks": {"sampler": {"kind": "uploaded_landmarks", "landmarks": ROWS}},
}


@each("sampler", SPECS)
def test_the_catalog_says_what_maps_of_a_sampler_give(http: httpx.Client, sampler: str) -> None:
    catalog = http.get("/v1/catalog").json()
    told, path = catalog["samplers"][sampler]["maps"], f"/v1/maps/told-{sampler}"
    usual = {"input_dim": 8, "kernel": {"kind": "gaussian", "length_scale": 1.0}, "sampler": {"kind": sampler}}
    record = http.put(path, json=usual | SPECS[sampler]).raise_for_status().json()
    served = {kind for kind in DIAGNOSED if http.post(f"{path}/diagnostics/{kind}", json=DIAGNOSED[kind]).is_success}
    assert served == {*told["diagnostics"]}
    assert {one for one in EXPORTS if http.get(f"{path}/export", params={"format": one}).is_success} == {
        *told["exports"]
    }
    rows = {"vectors": ROWS}
    assert http.post(f"{path}/transform", json=rows).is_success == ("features" in told["gives"])
    # Weights of a grid are unequal.
    assert http.post(f"{path}/codes", json=rows).is_success == ("codes" in told["gives"] and sampler != "sparse_grid")
    assert told["s"] == {"gcws": "hashes", "dart_minhash": "hashes", "uploaded_landmarks": "landmarks"}.get(
        sampler, "frequencies"
    )
    for family in FAMILIES:
        for array in family.fetched:
            answer = http.get(f"{path}/{array}", headers={"Accept": "application/x-npy"})
            assert answer.is_success <= (array in told["arrays"])
            if answer.is_success:
                dtype = told["arrays"][array]["dtype"].replace("the map's", record["spec"]["dtype"])
                assert np.load(io.BytesIO(answer.content)).dtype == dtype


def test_arrays_of_two_families_have_different_names() -> None:
    names = [array for family in FAMILIES for array in family.fetched]
    assert len(names) == len({*names})
