"""A command-line client of a running service: create a map, wait for a job."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
from tqdm import tqdm

_LOOK_SECONDS = 0.5
_TIMEOUT_SECONDS = 60.0
# How long a service may be away, as while it is being restarted.
_PATIENCE_SECONDS = 60.0


class ClientFailed(Exception):
    """What was asked for did not happen; the message is one sentence for the user."""


class Service(NamedTuple):
    """A running service, and the key that it is asked with."""

    url: str
    key: str | None

    def client(self) -> httpx.Client:
        """A client of it."""
        headers = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        return httpx.Client(base_url=self.url, timeout=_TIMEOUT_SECONDS, headers=headers)


def create(service: Service, name: str, spec: Path, wait: bool) -> None:
    """Create a map from a file with its spec, "-" for standard input; wait for its job if told to; print its record."""
    try:
        body = sys.stdin.buffer.read() if str(spec) == "-" else spec.read_bytes()
    except OSError as error:
        raise ClientFailed(f"{spec}: {error.strerror}") from error
    with service.client() as http:
        path = f"/v1/maps/{quote(name, safe='')}"
        record = _answer(http, "PUT", path, content=body, headers={"Content-Type": "application/json"})
        if wait and record["status"] == "building":
            wait_for(service, record["job"])
            record = _answer(http, "GET", path)
    sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")


def wait_for(service: Service, job: str) -> None:
    """Show the progress of a job, named by its id or link, until it has ended; ClientFailed unless it succeeds."""
    job_id = job.rstrip("/").rpartition("/")[2]
    with service.client() as http:
        show = _bar if sys.stderr.isatty() else _lines
        record = show(_seen(http, f"/v1/jobs/{quote(job_id, safe='')}"))
    if record["state"] != "succeeded":
        error = record["error"]
        raise ClientFailed(f"job {job_id} {record['state']}" + (f": {error['detail']}" if error else ""))


def _seen(http: httpx.Client, path: str) -> Iterator[dict[str, Any]]:
    """The record of a job, again and again, until it has ended; a service that is away for a moment is waited for."""
    answered: float | None = None
    while True:
        try:
            record = _answer(http, "GET", path)
        except _AwayError:
            if answered is None or time.monotonic() > answered + _PATIENCE_SECONDS:
                raise
        else:
            answered = time.monotonic()
            yield record
            if record["state"] not in ("queued", "running"):
                return
        time.sleep(_LOOK_SECONDS)


def _bar(seen: Iterator[dict[str, Any]]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    with tqdm(total=100, unit="%", bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed}{postfix}") as bar:
        for record in seen:
            bar.set_description_str(record["state"], refresh=False)
            bar.n = round(100 * record["progress"], 1)
            bar.set_postfix_str(_words(record), refresh=False)
            bar.refresh()
    return record


def _lines(seen: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """A line whenever there is something new: for logs."""
    record: dict[str, Any] = {}
    last = ""
    for record in seen:
        line = f"{record['state']} {100 * record['progress']:.0f}%"
        if line != last:
            last = line
            sys.stderr.write(f"{line} {_words(record)}".rstrip() + "\n")
    return record


def _words(record: dict[str, Any]) -> str:
    words = []
    if record["of"] is not None:
        words.append(f"step {record['step']} of {record['of']}")
    if record["objective"] is not None:
        words.append(f"objective {record['objective']:.4g}")
    if record["eta_seconds"] is not None:
        words.append(f"{record['eta_seconds']:.0f} s left")
    return ", ".join(words)


class _AwayError(ClientFailed):
    """The service does not answer now; it may a moment later."""


def _answer(http: httpx.Client, method: str, path: str, **options: Any) -> dict[str, Any]:
    try:
        response = http.request(method, path, **options)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _AwayError(f"{http.base_url} does not answer: {error}") from error
    try:
        answer: dict[str, Any] = response.json()
    except ValueError:
        answer = {}
    if response.status_code in (429, 503):
        raise _AwayError(f"{response.status_code}: {answer.get('detail', 'the service is away')}")
    if response.is_error or "detail" in answer:
        raise ClientFailed(f"{response.status_code}: {answer.get('detail', response.reason_phrase)}")
    return answer
