"""Links of a service behind a proxy that strips a prefix from addresses."""

from pathlib import Path

import httpx

from bochner_client import Client
from service_tests.running import service

SPEC = {"input_dim": 2, "s": 4, "kernel": {"kind": "gaussian", "gamma": 1}, "sampler": {"kind": "monte_carlo"}}
SENT = {None: "/fixed", "/other/one/": "/other/one", "//evil.example": "/fixed"}
"""Values of X-Forwarded-Prefix, and what links begin with then."""


def test_links_begin_with_what_a_proxy_strips(tmp_path: Path, http: httpx.Client, name: str) -> None:
    options = "--root-path", "/fixed", "--trusted-proxies", "127.0.0.1", "--job-workers", "1"
    with service(tmp_path / "data", *options) as running, Client(running.url) as client:
        for sent, prefix in SENT.items():
            headers = {"Prefer": "respond-async"} | ({"X-Forwarded-Prefix": sent} if sent else {})
            with running.client(**headers) as asked:
                asked.delete("/v1/maps/a")
                made = asked.put("/v1/maps/a", json=SPEC)
                job, link = made.json()["job"], f"{prefix}/v1/maps/a"
                assert job.startswith(f"{prefix}/v1/jobs/")
                assert (made.headers["Location"], made.headers["Link"]) == (link, f'<{job}>; rel="monitor"')
                client.wait_for_job(job, timeout=60)
                assert client.get_job_result(job).name == "a"
                at = job.removeprefix(prefix)
                assert asked.get(at).json()["result"] == asked.get(f"{at}/result").headers["Location"] == link
    untrusted = http.put(f"/v1/maps/{name}", json=SPEC, headers={"X-Forwarded-Prefix": "/evil"})
    assert untrusted.headers["Location"] == f"/v1/maps/{name}"
