"""The image that the Dockerfile makes, and the services of docker-compose.yml, in real containers."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
import yaml

from service_tests.checks import RESPOND_ASYNC, post, put
from service_tests.deploy.containers import Container, Network
from service_tests.deploy.image import ROOT, Image, built, missing
from service_tests.servers import until

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(missing() is not None, reason=str(missing()))]
MB = 1_000_000
URL = "http://127.0.0.1:8000"
COMPOSED = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSED["services"]
GAUSSIAN = {"input_dim": 3, "kernel": {"kind": "gaussian", "length_scale": 1.5}, "sampler": {"kind": "sobol"}, "s": 16}
GMM = {"input_dim": 3, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 16}
LEARNED = {**GAUSSIAN, "sampler": {"kind": "greedy_adaptive", "box": 2.0, "iterations": 3}}
ROWS = {"vectors": [[1, 2, 3], [0, 1, 0.5]]}


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    with built(tmp_path_factory.mktemp("image")) as made:
        yield made


@pytest.fixture
def network() -> Iterator[Network]:
    of = Network()
    yield of
    of.close()


@contextmanager
def client(network: Network, container: Container) -> Iterator[httpx.Client]:
    """A client of a service that has come up in a container, with a new key."""
    with network.entered(), httpx.Client(base_url=URL, timeout=60, headers={"Prefer": "wait=30"}) as http:
        until(lambda: ready(http) or container.process.poll() is not None)
        assert http.get("/v1/maps").status_code == 401
        made = container.run("bochner", "keys", "create", "ops", "--role", "write")
        assert made.returncode == 0, made.stderr
        http.headers["Authorization"] = f"Bearer {made.stdout.strip()}"
        yield http


def ready(http: httpx.Client) -> bool:
    try:
        return http.get("/health/ready").status_code == 200
    except httpx.TransportError:
        return False


@contextmanager
def composed(image: Image, network: Network, directory: Path) -> Iterator[dict[str, Container]]:
    """The three services, with the password that the script draws for them."""
    subprocess.run([ROOT / "docker" / "secrets.sh", directory / "secrets"], check=True)
    secrets = {"redis_url": directory / "secrets" / "redis_url"}
    with ExitStack() as stack:
        running: dict[str, Container] = {}
        for name in ("store", "api", "worker"):
            running[name] = Container(image, SERVICES[name], network, directory, name, secrets)
            stack.callback(running[name].kill)
            if name == "store":
                test = SERVICES[name]["healthcheck"]["test"][1:]
                until(lambda: running["store"].run(*test).returncode == 0)  # noqa: B023 - called at once
        yield running


def test_the_composed_services_work_together(image: Image, network: Network, tmp_path: Path) -> None:
    """On a read-only root, without rights. Maps are there again when all containers are made anew on the volume."""
    with composed(image, network, tmp_path) as running, client(network, running["api"]) as http:
        api = running["api"]
        assert "compiling" not in api.log.read_text(), "what the image has compiled is of no use"
        assert api.run("id", "-u").stdout == "10001\n"
        assert api.run("sh", "-c", "touch /opt/x").returncode != 0
        assert "NoNewPrivs:\t1" in api.run("cat", "/proc/1/status").stdout
        for name, spec in {"m": GAUSSIAN, "h": GMM}.items():
            assert put(http, name, spec).status_code == 201
        features = post(http, "m/transform", ROWS).json()
        assert post(http, "h/codes", ROWS).status_code == 200
        pair = {"x": [[1, 2, 3]], "y": [[0, 1, 0.5]]}
        picture = http.post("/v1/maps/m/diagnostics/variance", json=pair, headers={"Accept": "image/svg+xml"})
        assert picture.text.startswith("<?xml"), picture.text
        assert http.put("/v1/maps/l", json=LEARNED, headers=RESPOND_ASYNC).status_code == 202
        until(lambda: http.get("/v1/maps/l").json()["status"] == "ready")
        assert http.get("/v1/info").json()["store"]["durability"] == "always"
        for who in ("", "bochner:change-me@"):
            with redis.Redis.from_url(f"redis://{who}127.0.0.1") as stranger, pytest.raises(redis.AuthenticationError):
                stranger.ping()
        for name in ("worker", "api", "store"):
            grace = int(SERVICES[name]["stop_grace_period"].removesuffix("s"))
            assert running[name].stop(grace) in (0, 143), running[name].log.read_text()
    with composed(image, network, tmp_path) as running, client(network, running["api"]) as http:
        assert post(http, "m/transform", ROWS).json() == features
        assert http.get("/v1/maps/l").json()["status"] == "ready"


def test_every_package_is_there_for_arm(tmp_path: Path) -> None:
    """Nothing is compiled while an image for another processor is built; only what pip would install is asked."""
    listed: Any = subprocess.run(
        [sys.executable, ROOT / "docker" / "dependencies.py", "otel"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    (tmp_path / "requirements.txt").write_bytes(listed.stdout)
    platforms = [f"--platform=manylinux_{glibc}_aarch64" for glibc in ("2_17", "2_24", "2_26", "2_27", "2_28")]
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--target", str(tmp_path), "--python-version=3.13", "--platform=manylinux2014_aarch64", *platforms]
    subprocess.run([*command, "--requirement", str(tmp_path / "requirements.txt")], check=True)
