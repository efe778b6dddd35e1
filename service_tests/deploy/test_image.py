"""The image that the Dockerfile makes, and the services of docker-compose.yml, in real containers."""

import json
import platform
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import distributions
from pathlib import Path

import httpx
import pytest
import redis
import trustme
import yaml

from service_tests.checks import RESPOND_ASYNC, post, put
from service_tests.deploy.containers import Container, Network
from service_tests.deploy.image import ROOT, Image, built, missing
from service_tests.servers import until

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(missing() is not None, reason=str(missing()))]
MB = 1_000_000
URL = "http://127.0.0.1:8000"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COMPOSED = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSED["services"]
GAUSSIAN = {"input_dim": 3, "kernel": {"kind": "gaussian", "length_scale": 1.5}, "sampler": {"kind": "sobol"}, "s": 16}
GMM = {"input_dim": 3, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 16}
LEARNED = {**GAUSSIAN, "sampler": {"kind": "greedy_adaptive", "box": 2.0, "iterations": 3}}
# What the entrypoint sets on a processor without AVX-512.
WITHOUT_AVX_512 = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": "+avx2,+fma"}
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
        probe = SERVICES["store"]["healthcheck"]["test"][1:]
        for wrong in ("redis://bochner:change-me@store:6379/0", "rediss://bochner:change-me@store:6379/0"):
            assert running["store"].run("env", "REDIS_URL_FILE=", f"REDIS_URL={wrong}", *probe).returncode != 0
        for name in ("worker", "api", "store"):
            grace = int(SERVICES[name]["stop_grace_period"].removesuffix("s"))
            assert running[name].stop(grace) in (0, 143), running[name].log.read_text()
    with composed(image, network, tmp_path) as running, client(network, running["api"]) as http:
        assert post(http, "m/transform", ROWS).json() == features
        assert http.get("/v1/maps/l").json()["status"] == "ready"


def test_the_probe_of_the_service_speaks_tls(image: Image, network: Network, tmp_path: Path) -> None:
    """By a certificate that does not name the machine, and on an older processor."""
    leaf = trustme.CA().issue_cert("bochner.example.org")
    secrets = {"certificate": tmp_path / "certificate.pem", "key": tmp_path / "key.pem"}
    leaf.cert_chain_pems[0].write_to_path(secrets["certificate"])
    leaf.private_key_pem.write_to_path(secrets["key"])
    environment = (WITHOUT_AVX_512 if platform.machine() == "x86_64" else {}) | {
        "BOCHNER_DATA_DIR": "/tmp/data",
        "BOCHNER_JOB_WORKERS": "0",
        "BOCHNER_PORT": "8443",
        "BOCHNER_TLS_CERTIFICATE": "/run/secrets/certificate",
        "BOCHNER_TLS_KEY": "/run/secrets/key",
    }
    api = Container(
        image, {**SERVICES["api"], "environment": environment, "secrets": [*secrets]}, network, tmp_path, "api", secrets
    )
    try:
        probe = image.config["Healthcheck"]["Test"][1:]
        until(lambda: api.run(*probe).returncode == 0 or api.process.poll() is not None)
        assert api.process.poll() is None, api.log.read_text()
        assert api.run("env", "--unset=BOCHNER_TLS_CERTIFICATE", *probe).returncode != 0, "it is not spoken to in clear"
        assert api.run("env", "BOCHNER_PORT=8444", *probe).returncode != 0, "nobody is there"
        assert "compiling" not in api.log.read_text(), "what the image has compiled is of no use"
    finally:
        api.kill()


def test_the_image_tells_what_is_in_it(image: Image) -> None:
    assert image.config["Labels"]["org.opencontainers.image.version"] == PROJECT["version"]
    told = json.loads((image.root / "usr/share/doc/bochner/sbom.cdx.json").read_text())
    assert told["bomFormat"] == "CycloneDX"
    listed = {(one["name"], one["version"]) for one in [told["metadata"]["component"], *told["components"]]}
    folders = [image.root / "opt/service", *image.root.glob("opt/bochner/lib/python3*/site-packages")]
    installed = {(one.name, one.version) for one in distributions(path=[*map(str, folders)])}
    assert listed == installed
    assert ("bochner", PROJECT["version"]) in listed


@pytest.mark.parametrize("lock", ["build.lock", "requirements.lock"])
def test_every_package_is_there_for_arm(tmp_path: Path, lock: str) -> None:
    """Nothing is compiled while an image for another processor is built; only what pip would install is asked."""
    platforms = [f"--platform=manylinux_{glibc}_aarch64" for glibc in ("2_17", "2_24", "2_26", "2_27", "2_28")]
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--target", str(tmp_path), "--python-version=3.13", "--platform=manylinux2014_aarch64", *platforms]
    command += ["--no-deps", "--require-hashes", "--requirement", str(ROOT / "docker" / lock)]
    subprocess.run(command, check=True)
