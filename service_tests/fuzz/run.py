"""A run: many cases, one after the other, what every answer must be, and what must hold when they are over."""

import gzip
import http.client
import json
import re
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import jsonschema
import psutil
from hypothesis import HealthCheck, given, seed, settings

from app.api.bodies import zstd
from app.api.problems import KINDS
from app.store.keys import Role, hidden
from service_tests.checks import JSON, PROBLEM, put, put_dataset
from service_tests.connections.wire import connected
from service_tests.fuzz.cases import DOCUMENT, STANDING, Case, Credential, cases
from service_tests.keyed import Keyed, keyed
from service_tests.running import Running, service

# Answers of more bytes are not held against their schemas, which takes a second for a megabyte.
_MOST_CHECKED = 20_000
# What is repeated of a request may be as long as that.
_MOST_SAID = 8_000


class Answer(NamedTuple):
    """An answer as it came."""

    status: int
    headers: httpx.Headers
    body: bytes


def judge(case: Case, answer: Answer, keys_required: bool) -> None:
    """AssertionError unless this may be the answer to a whole case."""
    status, headers, body = answer
    assert headers["x-request-id"]
    assert len(headers.get_list("content-length")) <= 1, "it has two lengths"
    if body and (packing := headers.get("content-encoding")):
        body = {"gzip": gzip.decompress, "zstd": zstd.decompress}[packing](body)
    _judge_any(case, body, [status])
    role = case.credential.role if keys_required or case.credential.own else Role.write
    needed = case.operation.role if case.operation else Role.read
    allowed = needed is None or (role is not None and role.includes(needed))
    assert status >= 400 or allowed, f"it lets in {role} for {needed}"
    if case.method == "HEAD":
        assert not body
    elif status >= 400:
        _judge_problem(answer, body, len(case.sent))
    else:
        _judge_success(case, answer, body)


def judge_broken(case: Case, came: bytes, keys_required: bool) -> list[int]:
    """AssertionError unless this may be what comes when a case is broken; the statuses of its answers."""
    assert not came or came.startswith(b"HTTP/1.1 "), f"{came[:80]!r} is no answer"
    statuses = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) [\w -]*\r\n", came)]
    _judge_any(case, came, statuses)
    # What is broken may be a key no more, and of two keys one may be left.
    open_to_all = b"/health/" in case.sent or not keys_required or len(case.credential.fields) > 1
    is_let_in = any(200 <= status < 400 for status in statuses)
    assert case.credential.role is not None or open_to_all or not is_let_in, "it lets in who has no key"
    return statuses


def _judge_any(case: Case, body: bytes, statuses: list[int]) -> None:
    assert all(status < 500 or status in (503, 507) for status in statuses), "it is a failure"
    text = body.decode("latin-1")
    assert hidden(text) == text or b"/v1/keys" in case.sent, "it tells a key"


def _judge_problem(answer: Answer, body: bytes, sent: int) -> None:
    (status, headers, _), document = answer, json.loads(body)
    of_inference = document.get("error") == document["detail"]  # below /v2, for clients that read nothing else
    assert headers["content-type"] == (JSON if of_inference else PROBLEM)
    _valid(document, "#/components/schemas/Problem")
    slug = document["type"].removeprefix("/problems/")
    assert KINDS[slug].status == status or (slug, status) == ("overloaded", 429)
    assert (document["status"], document["instance"]) == (status, headers["x-request-id"])
    assert ("retry-after" in headers) == (status in (429, 503))
    for code, field in ((401, "www-authenticate"), (405, "allow")):
        assert status != code or field in headers
    assert status != 507 or "limit" in document
    assert not re.search(r"Traceback|\.py", document["detail"]), "it tells of the code"
    assert len(body) <= _MOST_SAID + 6 * sent


def _judge_success(case: Case, answer: Answer, body: bytes) -> None:
    assert case.operation is not None, "there is no such call"
    described, status = case.operation.described["responses"], answer.status
    assert str(status) in described, "the status is not documented"
    if status in (204, 303, 304):
        assert not body
        return
    media_type, content = answer.headers["content-type"].partition(";")[0], described[str(status)].get("content", {})
    assert status == 206 or media_type in content or "*/*" in content, f"{media_type} is not documented"
    if media_type == JSON and status != 206 and len(body) < _MOST_CHECKED:
        call = f"{case.operation.path.replace('/', '~1')}/{case.operation.method.lower()}"
        _valid(json.loads(body), f"#/paths/{call}/responses/{status}/content/{JSON.replace('/', '~1')}/schema")


def _valid(document: Any, reference: str) -> None:
    jsonschema.Draft202012Validator({**DOCUMENT, "$ref": reference}).validate(document)


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
