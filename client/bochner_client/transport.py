"""Common parts of both clients: setting up httpx, building its requests, and converting its errors."""

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from fnmatch import fnmatchcase
from typing import Any, TypedDict
from urllib.request import getproxies, proxy_bypass

import httpx

from bochner_client.address import key_of, url_of
from bochner_client.errors import BochnerWarning, InvalidAnswer, Refused, ServiceAway
from bochner_client.refusals import refusal
from bochner_client.requests import Reading, Request

TIMEOUT_SECONDS = 60.0
PATIENCE_SECONDS = 60.0

_LONGEST_TEXT = 200
# Stack frames between the code that reads the head of an answer and the caller of the client's method.
_FRAMES_UP = 6
# Errors that are raised before anything has reached the service.
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Options(TypedDict):
    """Arguments of an httpx client."""

    base_url: httpx.URL
    headers: dict[str, str]
    timeout: float | httpx.Timeout
    verify: Any
    limits: httpx.Limits


def options(url: str | None, key: str | None, timeout: float | httpx.Timeout, verify: Any) -> Options:
    """Return the arguments of an httpx client for the service at a URL; ValueError if the URL or the key is invalid."""
    base, key = httpx.URL(url_of(url)), key_of(key)
    # Arrays hardly shrink, and take long to compress.
    headers = {"Accept-Encoding": "identity"} | ({} if key is None else {"Authorization": f"Bearer {key}"})
    # Loading the certificates of all authorities takes long, and plain HTTP needs none.
    is_plain = verify is True and base.scheme == "http"
    # No limit, as each wait for a job holds a connection.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30)
    return Options(base_url=base, headers=headers, timeout=timeout, verify=False if is_plain else verify, limits=limits)


def arguments(request: Request[Any], timeout: httpx.Timeout) -> dict[str, Any]:
    """Return the arguments of an httpx request, without its content. `timeout` is the client's timeout."""
    headers = {**request.headers}
    if request.body is not None:
        headers |= {"Content-Type": request.body.media_type, "Content-Length": str(request.body.length)}
    found: dict[str, Any] = {
        "method": request.method,
        "url": request.path,
        "params": {name: value for name, value in request.params.items() if value is not None},
        "headers": headers,
    }
    if request.read_timeout is not None:
        found["timeout"] = httpx.Timeout(
            connect=timeout.connect, read=request.read_timeout, write=timeout.write, pool=timeout.pool
        )
    return found


def _proxy_of(url: httpx.URL) -> httpx.URL | None:
    """Return the proxy that httpx uses for a URL, without user and password; None if it uses none."""
    proxies = getproxies()
    found = proxies.get(url.scheme) or proxies.get("all")
    if not found or proxy_bypass(url.host):
        return None
    return httpx.Proxy(found if "://" in found else f"http://{found}").url


@contextmanager
def away(url: httpx.URL) -> Iterator[None]:
    """Convert the exceptions that httpx raises in the with block to exceptions of this client."""
    url = url.copy_with(userinfo=b"")
    try:
        yield
    except httpx.DecodingError as error:
        raise InvalidAnswer(f"{url} sent an answer that cannot be decompressed: {error}") from error
    except httpx.TransportError as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise InvalidAnswer(f"{url} is not trusted: {error}") from error  # repeating the request would not help
        said, unsent = str(error) or type(error).__name__, isinstance(error, _UNSENT)
        if (proxy := _proxy_of(url)) is not None:
            said = f"the proxy at {proxy} {'did not answer' if unsent else 'failed'}: {said}"
        hint = "; `bochner serve` starts a service" if unsent and url.host in ("localhost", "127.0.0.1", "::1") else ""
        raise ServiceAway(f"{url} does not answer: {said}{hint}", unsent) from error


def refused(response: httpx.Response) -> Refused:
    """Return the exception for an answer with a status of 400 or above, whose body has been read."""
    return refusal(response.status_code, _problem(response), _retry_after(response.headers.get("Retry-After")))


def reading(request: Request[Any], response: httpx.Response) -> Reading[Any]:
    """Return how to read the answer to a request; InvalidAnswer if its status or media type is not expected."""
    status, headers = response.status_code, response.headers
    came = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    found = request.reads.get(status)
    if found is not None and fnmatchcase(came, found.media_type):
        return found
    wanted = " or ".join(f"{one} {how.media_type}".removesuffix(" *") for one, how in request.reads.items())
    got = f"{status} {came}".strip() + (f", Location {headers['Location']}" if "Location" in headers else "")
    raise InvalidAnswer(f"{request.method} {request.path}: expected {wanted}, got {got[:_LONGEST_TEXT]}")


def heed(headers: httpx.Headers) -> None:
    """Raise a Python warning at the line that called the client, if the service warns about its answer."""
    if (said := headers.get("Bochner-Warning")) is not None:
        warnings.warn(said, BochnerWarning, stacklevel=_FRAMES_UP)


def _problem(response: httpx.Response) -> dict[str, Any]:
    try:
        document = json.loads(response.content)
        if isinstance(document, dict) and "title" in document:
            return document
    except ValueError:
        pass
    said = response.text[:_LONGEST_TEXT].strip()
    return {"title": response.reason_phrase, "detail": f"{response.reason_phrase} {said}".strip()}


def _retry_after(text: str | None) -> float | None:
    """Return the seconds of a `Retry-After`, a number or a date (RFC 9110, 10.2.3); None if it is neither."""
    if text is None:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
