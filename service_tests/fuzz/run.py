"""A run: many cases from several clients at once, and what must hold between them."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import inf
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import unquote

import psutil
import redis

from app.store.keys import Role
from service_tests.checks import keys, put, put_dataset
from service_tests.fuzz.cases import Case, Credential, Names, case
from service_tests.fuzz.judge import Answer, judge
from service_tests.fuzz.line import Line
from service_tests.keyed import Keyed, keyed
from service_tests.running import Running, service

MiB = 1 << 20
CLIENTS = 8
EACH = 1000
"""Cases between two looks at the memory of the service, its log, and its store."""
# So small that everything which is bounded is at its bound soon, and that no case takes long.
_OPTIONS = {
    "max-body-bytes": 2 * MiB,
    "max-spec-bytes": MiB // 4,
    "max-result-bytes": 8 * MiB,
    "max-map-bytes": 16 * MiB,
    "max-build-bytes": 32 * MiB,
    "cache-bytes": 64 * MiB,
    "max-store-bytes": 512 * MiB,
    "max-operations": 2_000_000_000,
    "max-request-seconds": 0.3,
    "max-wait-seconds": 1,
    "max-job-seconds": 5,
    "job-ttl": 60,
    "max-keys": 50,
    "head-timeout": 5,
    "client-timeout": 5,
    "idle-timeout": 600,  # the clients pause while memory is looked at
    "log-level": "warning",
}
_GAUSSIAN = {"kind": "gaussian", "length_scale": 1.5}
_SPECS: dict[str, dict[str, Any]] = {
    "cos-sin": {"kernel": _GAUSSIAN, "sampler": {"kind": "sobol"}},
    "phase": {"kernel": _GAUSSIAN, "sampler": {"kind": "halton"}, "form": "phase", "normalize": True},
    "complex": {"kernel": _GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "form": "complex", "dtype": "float64"},
    "signed": {"kernel": _GAUSSIAN, "sampler": {"kind": "sparse_grid", "level": 2}, "s": None},
    "structured": {"kernel": _GAUSSIAN, "sampler": {"kind": "structured_orthogonal"}, "input_dim": 8},
    "landmarks": {"kernel": _GAUSSIAN, "sampler": {"kind": "landmarks", "dataset": "points"}, "s": 4},
    "gmm": {"kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}},
}


class Figures(NamedTuple):
    """What was seen."""

    seen: Counter[str]
    """Answers by status, and how many cases were "whole" and how many "broken"."""
    memory: list[int]
    """Bytes of the service's process before the first case, and after each thousand."""
    waited: list[tuple[float, bytes]]
    """What each client waited for longest: seconds, and the beginning of the case."""
    wrong: list[str]


@contextmanager
def attacked(data_dir: Path, with_keys: bool) -> Iterator[tuple[Running, list[Credential]]]:
    """A service to send cases to, and what may be sent in the place of keys; for the length of a with block."""
    options = [part for name, value in _OPTIONS.items() for part in (f"--{name}", str(value))]
    with service(data_dir, *options, "--job-workers", "1", "--require-keys", str(with_keys).lower()) as running:
        yield running, _credentials(keyed(running))


def _credentials(known: Keyed) -> list[Credential]:
    """Keys of each role, and all that is none."""

    def bearer(text: str, role: Role | None, own: bool = True) -> Credential:
        return Credential((f"Authorization: Bearer {text}".encode(),), role, own)

    texts = known.texts
    revoked = known.make(Role.admin)
    with known.client(Role.admin) as http:
        http.delete(f"/v1/keys/{revoked.id}").raise_for_status()
    read, admin = texts[Role.read], texts[Role.admin]
    several = tuple(f"Authorization: Bearer {text}".encode() for text in (read, admin))
    return [
        *(bearer(texts[role], role) for role in Role),
        *(bearer(text, role) for role, text in texts.items() if role is not Role.read for _ in range(9)),
        Credential((), None, own=False),
        Credential(several, None),
        bearer(revoked.key, None),
        bearer(read[:-1] + ("A" if read[-1] != "A" else "B"), None),
        bearer(admin[:25] + read[25:], None),
        bearer(admin + "x", None, own=False),
        bearer("x", None, own=False),
        Credential((f"Authorization: {admin}".encode(),), None, own=False),
        Credential((b"Authorization: Basic \xff",), None, own=False),
    ]


def run(
    running: Running,
    credentials: list[Credential],
    count: int,
    seed: int,
    with_keys: bool,
    seconds: float = inf,
    report: Callable[[str], object] = lambda _: None,
) -> Figures:
    """Send cases to a service, and give what was seen; what is wrong is in words, and in the bytes that were sent.

    No more are sent once so many seconds are over, or more than 20 things are wrong.
    """
    ends = time.monotonic() + seconds
    names = Names([f"s-{title}" for title in _SPECS], [f"w-{i}" for i in range(40)], [])
    process = psutil.Process(running.process.pid)
    (log,) = running.data_dir.parent.glob(f"{running.data_dir.name}.*.log")
    _prepare(running, credentials)
    with redis.Redis.from_url(running.socket) as store, ThreadPoolExecutor(CLIENTS) as pool:
        before = _lasting(store)
        figures = Figures(Counter(), [process.memory_info().rss], [], [])
        asked_for: set[str] = set()
        for first in range(0, count, EACH):
            share = -(-min(EACH, count - first) // CLIENTS)
            clients = [
                pool.submit(_client, running, credentials, names, share, f"{seed}.{first}.{i}", with_keys)
                for i in range(CLIENTS)
            ]
            for client in clients:
                seen, wrong, named, waited = client.result()
                figures.seen.update(seen)
                figures.wrong.extend(wrong)
                figures.waited.append(waited)
                asked_for |= named
                for one in wrong:
                    report(one)
            figures.memory.append(process.memory_info().rss)
            report(f"{first + EACH} of {count}: {figures.memory[-1] / MiB:.0f} MiB, {len(figures.wrong)} wrong")
            if len(figures.wrong) > 20 or time.monotonic() > ends:
                break
        began = time.monotonic()
        figures.wrong.extend(_aftermath(running, credentials, store, before, asked_for))
        report(f"all was deleted, and the store as before, after {time.monotonic() - began:.0f} s")
    figures.wrong.extend(line for line in log.read_text(errors="replace").splitlines() if "Traceback" in line)
    return figures


def _prepare(running: Running, credentials: list[Credential]) -> None:
    with running.client(Authorization=_admin(credentials)) as http:
        put_dataset(http, "points", [[i / 7, i % 5, i * i % 11, i % 2] for i in range(40)]).raise_for_status()
        for title, spec in _SPECS.items():
            answer = put(http, f"s-{title}", {"input_dim": 4, "s": 8, "seed": 7, **spec})
            assert answer.is_success, answer.text
            while http.get(f"/v1/maps/s-{title}").json()["status"] == "building":  # on a machine with much to do
                time.sleep(0.1)


def _client(
    running: Running, credentials: list[Credential], names: Names, count: int, seed: str, with_keys: bool
) -> tuple[Counter[str], list[str], set[str], tuple[float, bytes]]:
    """Send some cases; give answers by status, what is wrong, names that something may have got, the longest wait."""
    random, line = Random(seed), Line(running)
    seen, wrong, named, longest = Counter[str](), list[str](), set[str](), (0.0, b"")
    for _ in range(count):
        one = case(random, names, credentials)
        seen["whole" if one.is_whole else "broken"] += 1
        began = time.monotonic()
        try:
            for answer in line.ask(one):
                seen[str(answer.status)] += 1
                named |= _named(one, answer, names)
                judge(one, answer, with_keys)
        except Exception as error:  # whatever is wrong with an answer
            line.close()
            wrong.append(f"{type(error).__name__}: {str(error)[:600]}\n  {one.sent[:1500]!r}")
        longest = max(longest, (time.monotonic() - began, one.sent[:300]))
    line.close()
    return seen, wrong, named, longest


def _named(one: Case, answer: Answer, names: Names) -> set[str]:
    """The name that an answer says something has got; a job's is kept too."""
    for field in ("location", "link"):
        if job := re.search(r"/v1/jobs/(\w+)", answer.headers.get(field, "")):
            names.jobs.append(job[1])
    path = one.request.target.partition(b"?")[0].decode("latin-1")
    if one.is_whole:
        return {unquote(path.rpartition("/")[2])} if one.request.method == "PUT" and answer.status < 300 else set()
    return {answer.headers["location"].rpartition("/")[2]} if "location" in answer.headers else set()


def _aftermath(
    running: Running, credentials: list[Credential], store: redis.Redis, before: set[bytes], acknowledged: set[str]
) -> list[str]:
    """What is wrong when all is over: names that nobody was told of, or what stays when they are deleted."""
    wrong = []
    with running.client(Authorization=_admin(credentials)) as http:
        if http.get("/health/ready").status_code != 200:
            wrong.append("it is not ready any more")
        for kind in ("maps", "datasets"):
            entries = http.get(f"/v1/{kind}", params={"limit": 1000}).json()[kind]
            for name in (entry["name"] for entry in entries):
                if name.startswith("s-") or name == "points":
                    continue
                # Of those who hang up on a broken request, some had made a map before.
                if name not in acknowledged and not name.startswith("w-"):
                    wrong.append(f"{kind} {name!r} was acknowledged to nobody")
                if (status := http.delete(f"/v1/{kind}/{name}").status_code) not in (204, 404):
                    wrong.append(f"deleting {name} answers {status}")
        for key in http.get("/v1/keys").json()["keys"]:
            if not key["name"].startswith("the-"):
                http.delete(f"/v1/keys/{key['id']}")
        deadline = time.monotonic() + 120
        while _lasting(store) != before and time.monotonic() < deadline:
            time.sleep(0.5)
    changed = _lasting(store) ^ before
    return wrong + [f"{len(changed)} keys of the store differ: {sorted(changed)[:5]}"] * bool(changed)


def _lasting(store: redis.Redis) -> set[bytes]:
    """The keys of the store, but for those of jobs and rates, which go by themselves."""
    return {key for key in keys(store) if not re.match(rb"bochner:(\{?jobs?[:}]|jobs|rate|\{job)", key)}


def _admin(credentials: list[Credential]) -> str:
    found = next(one for one in credentials if one.role is Role.admin)
    return found.fields[0].decode().partition(": ")[2]
