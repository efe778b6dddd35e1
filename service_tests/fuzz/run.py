"""A run: many cases, one after the other, and what must hold when they are over."""

import http.client
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psutil
from hypothesis import HealthCheck, given, seed, settings

from app.store.keys import Role
from service_tests.checks import put, put_dataset
from service_tests.connections.wire import connected
from service_tests.fuzz.cases import STANDING, Case, Credential, cases
from service_tests.fuzz.judge import Answer, judge, judge_broken
from service_tests.keyed import Keyed, keyed
from service_tests.running import Running, service

MiB = 1 << 20
EACH = 1000
"""Cases that Hypothesis remembers."""
# So small that everything which is bounded is at its bound soon, and that no case takes long.
_OPTIONS = (
    *("--max-body-bytes=2000000", "--max-spec-bytes=250000", "--max-result-bytes=8000000", "--max-map-bytes=16000000"),
    *("--max-build-bytes=32000000", "--cache-bytes=64000000", "--max-store-bytes=512000000", "--max-keys=50"),
    *("--max-operations=2000000000", "--max-request-seconds=0.3", "--max-wait-seconds=1", "--max-job-seconds=5"),
    *("--job-ttl=60", "--head-timeout=5", "--client-timeout=5", "--job-workers=1", "--log-level=warning"),
)
_GAUSSIAN = {"kind": "gaussian", "length_scale": 1.5}
_SPECS: dict[str, dict[str, Any]] = {
    "cos-sin": {"sampler": {"kind": "sobol"}},
    "phase": {"sampler": {"kind": "halton"}, "form": "phase", "normalize": True},
    "complex": {"sampler": {"kind": "monte_carlo"}, "form": "complex", "dtype": "float64"},
    "signed": {"sampler": {"kind": "sparse_grid", "level": 2}, "s": None},
    "landmarks": {"sampler": {"kind": "landmarks", "dataset": "points"}, "s": 4},
    "gmm": {"kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}},
}
_SETTINGS = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))
# A broken request is thought to be over when nothing came for so many seconds.
_SILENCE = 0.2


class Attacked(NamedTuple):
    """A service to send cases to, and what may be sent in the place of keys."""

    running: Running
    credentials: list[Credential]
    with_keys: bool


@contextmanager
def attacked(data_dir: Path, with_keys: bool) -> Iterator[Attacked]:
    """A service with maps, for the length of a with block."""
    with service(data_dir, *_OPTIONS, "--require-keys", str(with_keys).lower()) as running:
        known = keyed(running)
        with known.client(Role.write) as http:
            http.headers["Prefer"] = "wait=30"
            put_dataset(http, "points", [[i / 7, i % 5, i * i % 11, i % 2] for i in range(40)]).raise_for_status()
            for name in STANDING:
                spec = {"input_dim": 4, "s": 8, "seed": 7, "kernel": _GAUSSIAN, **_SPECS[name]}
                assert put(http, name, spec).status_code in (201, 202)
            http.put(f"/v1/indexes/{STANDING[-1]}", json={"map": STANDING[-1]}).raise_for_status()
        yield Attacked(running, _credentials(known), with_keys)


def _credentials(known: Keyed) -> list[Credential]:
    """Keys of each role, and all that is none."""

    def bearer(text: str, role: Role | None, own: bool = True) -> Credential:
        return Credential((f"Authorization: Bearer {text}".encode(),), role, own)

    texts, revoked = known.texts, known.make(Role.admin)
    with known.client(Role.admin) as http:
        http.delete(f"/v1/keys/{revoked.id}").raise_for_status()
    read, admin = texts[Role.read], texts[Role.admin]
    return [
        *(bearer(text, role) for role, text in texts.items() for _ in range(1 if role is Role.read else 9)),
        Credential((), None, own=False),
        Credential(tuple(f"Authorization: Bearer {text}".encode() for text in (read, admin)), None),
        bearer(revoked.key, None),
        bearer(read[:-1] + ("A" if read[-1] != "A" else "B"), None),
        bearer(admin[:25] + read[25:], None),
        bearer(admin + "x", None, own=False),
        Credential((f"Authorization: {admin}".encode(),), None, own=False),
        Credential((b"Authorization: Basic \xff",), None, own=False),
    ]


def run(on: Attacked, count: int, seed_: int) -> tuple[Counter[str], int]:
    """Send cases; how often which status was seen, and by how many bytes the memory of the service grew.

    What is wrong is raised, with the shortest case that Hypothesis finds for it.
    """
    seen = Counter[str]()
    process = psutil.Process(on.running.process.pid)
    (log,) = on.running.data_dir.parent.glob(f"{on.running.data_dir.name}.*.log")
    before = process.memory_info().rss
    for first in range(0, count, EACH):

        @seed(seed_ + first)
        @settings(_SETTINGS, max_examples=min(EACH, count - first))
        @given(cases(on.credentials))
        def send(case: Case) -> None:
            seen["whole" if case.is_whole else "broken"] += 1
            if case.is_whole:
                answer = _asked(on.running, case)
                seen[str(answer.status)] += 1
                judge(case, answer, on.with_keys)
            else:
                seen.update(map(str, judge_broken(case, _came(on.running, case), on.with_keys)))

        send()
        if not first:  # the caches fill first
            before = process.memory_info().rss
    assert httpx.get(f"{on.running.url}/health/ready", verify=False).status_code == 200
    assert "Traceback" not in log.read_text(errors="replace")
    return seen, process.memory_info().rss - before


def _asked(running: Running, case: Case) -> Answer:
    """The answer to a whole case."""
    with connected(running, 90) as line:
        with suppress(ConnectionError):  # it may be refused before it is sent
            line.sendall(case.sent)
        answer = http.client.HTTPResponse(line, method=case.method)
        answer.begin()
        headers = httpx.Headers([(name.encode(), value.encode("latin-1")) for name, value in answer.getheaders()])
        is_stream = headers.get("content-type", "").startswith("text/event-stream")
        return Answer(answer.status, headers, b"" if is_stream else answer.read())


def _came(running: Running, case: Case) -> bytes:
    """All that comes when a broken case is sent."""
    came = b""
    with connected(running, 90) as line, suppress(ConnectionError):
        line.sendall(case.sent)
        line.settimeout(_SILENCE)
        try:
            while piece := line.recv(1 << 16):
                came += piece
        except TimeoutError:
            line.settimeout(90)
            line.shutdown(socket.SHUT_WR)
            while piece := line.recv(1 << 16):
                came += piece
    return came
