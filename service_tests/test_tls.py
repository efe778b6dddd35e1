"""HTTPS of the service itself, and TLS between it and its store."""

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import redis
import trustme

from app.store.keys import Role
from service_tests.checks import post, put
from service_tests.connections.wire import connected
from service_tests.keyed import keyed
from service_tests.running import Running, free_port, service
from service_tests.servers import EVERY_WRITE, answers, until
from service_tests.test_settings import serve

pytestmark = pytest.mark.gate
REDIS = shutil.which("redis-server")


class Certified(NamedTuple):
    """Files of an authority, and of a certificate by it for this machine."""

    authority: Path
    certificate: Path
    key: Path

    @property
    def options(self) -> tuple[str, ...]:
        return ("--tls-certificate", str(self.certificate), "--tls-key", str(self.key))


def certified(folder: Path, *names: str) -> Certified:
    authority, folder = trustme.CA(), folder / "-".join(names)
    folder.mkdir()
    made = Certified(folder / "authority.pem", folder / "certificate.pem", folder / "key.pem")
    leaf = authority.issue_cert(*names)
    authority.cert_pem.write_to_path(made.authority)
    made.certificate.write_bytes(b"".join(part.bytes() for part in leaf.cert_chain_pems))
    leaf.private_key_pem.write_to_path(made.key)
    return made


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    return certified(tmp_path_factory.mktemp("certified"), "127.0.0.1", "localhost")


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory, local: Certified) -> Iterator[Running]:
    options = (*local.options, "--require-keys", "true")
    with service(tmp_path_factory.mktemp("secure") / "data", *options, scheme="https") as running:
        yield running


def test_the_service_speaks_https(secure: Running, local: Certified, gaussian: dict[str, Any]) -> None:
    key = {"Authorization": f"Bearer {keyed(secure).texts[Role.write]}"}
    trusted = ssl.create_default_context(cafile=str(local.authority))
    with httpx.Client(base_url=secure.url, verify=trusted, headers=key, timeout=60) as http:
        assert put(http, "m", gaussian).status_code == 201
        assert len(post(http, "m/transform", {"vectors": [[1, 2, 3]] * 1000}).json()["features"]) == 1000
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE"):
        httpx.get(secure.url + "/health/live", verify=ssl.create_default_context())


def test_it_speaks_nothing_else_there(secure: Running) -> None:
    with pytest.raises(httpx.TransportError):
        httpx.get(secure.url.replace("https", "http") + "/health/live")
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2
    with connected(secure) as line, old.wrap_socket(line) as spoken:
        name, _, bits = spoken.cipher() or ("", "", 0)
        assert name.startswith("ECDHE")  # what was recorded is not read with a key that is stolen later
        assert bits >= 128


def test_files_that_make_no_certificate_are_refused_at_the_start(local: Certified) -> None:
    absent, swapped = Path("/no/such.pem"), local._replace(certificate=local.key, key=local.certificate)
    for options, word in (
        (local.options[:2], "tls_key"),
        (local._replace(certificate=absent, key=absent).options, "tls_certificate"),
        (swapped.options, "tls_certificate"),
    ):
        ended = serve(*options)
        assert ended.returncode == 1
        assert word in ended.stderr
        assert "Traceback" not in ended.stderr


@pytest.fixture
def store(tmp_path: Path, local: Certified) -> Iterator[str]:
    """Debian's Redis over TLS, for clients with a certificate."""
    if REDIS is None:
        pytest.skip("there is no redis-server here: `apt-get install redis-server`")
    port = free_port()
    command = [REDIS, "--port", "0", "--tls-port", str(port), "--dir", str(tmp_path), *EVERY_WRITE, "--tls-cert-file"]
    command += [str(local.certificate), "--tls-key-file", str(local.key), "--tls-ca-cert-file", str(local.authority)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    url = f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={local.authority}"
    try:
        mutual = f"{url}&ssl_certfile={local.certificate}&ssl_keyfile={local.key}"
        until(lambda: answers(mutual) or process.poll() is not None)
        assert process.poll() is None, "this redis-server has no TLS"
        yield mutual
    finally:
        process.kill()
        process.wait(10)


def test_the_store_is_reached_over_tls(tmp_path: Path, store: str, gaussian: dict[str, Any]) -> None:
    with service(tmp_path / "data", "--redis-url", store) as running, running.client() as http:
        assert put(http, "m", gaussian).status_code == 201
        assert post(http, "m/transform", {"vectors": [[1, 2, 3]]}).status_code == 200
        assert http.get("/v1/info").json()["store"]["server"].startswith(("redis ", "valkey "))


def test_a_store_that_cannot_be_trusted_is_not_used(tmp_path: Path, store: str) -> None:
    stranger = certified(tmp_path, "store.example")
    wrong_authority = store.replace(store.partition("ssl_ca_certs=")[2].partition("&")[0], str(stranger.authority))
    assert answers(store)
    for url in (wrong_authority, store.partition("&")[0], store.replace("127.0.0.1", "127.0.0.2")):
        assert not answers(url)
        with redis.Redis.from_url(url, retry=None) as client, pytest.raises(redis.ConnectionError):
            client.ping()
