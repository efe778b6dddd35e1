"""Access control: host names that the service answers to, keys and their roles, and request rates of keys."""

import asyncio
import base64
import binascii
import ipaddress
import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from cachetools import LRUCache
from fastapi import Request
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.admission import Asked
from app.api.problems import HANDLERS, METHODS, Refusal, limit
from app.api.schemas import EXPOSED
from app.core.maps import FAMILIES
from app.request_context import REQUEST
from app.store.errors import StoreUnavailable
from app.store.keys import Key, Keys, Role, Taken, id_in

# A name, an IPv4 address or an IPv6 address in brackets; optionally a port.
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:\[\]/@]+)(?::\d*)?", re.IGNORECASE)


class Hosts:
    """Hosts that requests may name: the names that the service answers to.

    A page of another site can make its own name resolve to the address of this service (DNS rebinding), and could then
    read whatever the browser's user may read. It cannot change the name in the header `Host`.

    Args:
        allowed: names; `*.example.org` stands for all names below it, `*` for any.
        near: whether IP addresses, names without a dot and a missing name are allowed too: no page of the internet has
            one.
    """

    def __init__(self, allowed: tuple[str, ...], near: bool) -> None:
        self._names = frozenset(name.lower().removesuffix(".") for name in allowed)
        self._any = "*" in self._names
        self._endings = tuple(name.removeprefix("*") for name in self._names if name.startswith("*."))
        self._near = near

    def allow(self, host: str) -> bool:
        """Return whether a value of the header `Host` is a name of this service."""
        if self._any:
            return True
        found = _HOST.fullmatch(host)
        if found is None:
            return self._near and not host
        name = found[1].lower().removesuffix(".")
        return name in self._names or name.endswith(self._endings) or (self._near and _is_near(name))


def _is_near(name: str) -> bool:
    if "." not in name and ":" not in name:
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


# Seconds for which a key that another process has revoked may still be accepted.
_FRESH_SECONDS = 0.5
# Seconds for which the keys known last may still read metrics while the store is unavailable.
_REMEMBERED_SECONDS = 3600.0
# Seconds between two records of the use of a key.
_NOTED_SECONDS = 60.0
# Seconds that a request for metrics waits for a store that hangs, to check its key. The store's figures are waited for
# afterwards.
_PATIENCE_SECONDS = 1.0
# Seconds between two reads of the store, however many unknown keys arrive.
_PAUSE_SECONDS = 0.02


class KnownKeys:
    """Finds keys by their text, without a read of the store for each request.

    The keys are read again if the last read is more than half a second ago, and for an unknown key, as it may have been
    made just now. Requests that arrive during a read share it, so guesses cost the store next to nothing.
    """

    def __init__(self, changed: Callable[[Keys], Awaitable[Keys]], note_use: Callable[[str], Awaitable[None]]) -> None:
        self._changed, self._note_use = changed, note_use
        self._noted = dict[str, float]()
        self._keys = Keys({}, None)
        self._as_of = self._told_at = -math.inf
        self._read_again = Asked(self._read, one_at_a_time=True)

    async def find(self, text: bytes) -> Key | None:
        """Return the valid key with this text, or None; raise StoreUnavailable if the store does not answer."""
        key_id = id_in(text)
        if key_id is None:
            return None
        came = time.monotonic()
        found = await self.get(key_id)
        if found is None:
            await self._look(came)
            found = self._valid(key_id)
        if found is None or not found.opens_with(text):
            return None
        if time.monotonic() - self._noted.get(key_id, -math.inf) > _NOTED_SECONDS:
            self._noted[key_id] = time.monotonic()
            with suppress(StoreUnavailable):  # a store that refuses writes can still be read
                await self._note_use(key_id)
        return found

    async def get(self, key_id: str) -> Key | None:
        """Return the valid key with an id; None if there is none, or there was none half a second ago."""
        await self._look(time.monotonic() - _FRESH_SECONDS)
        return self._valid(key_id)

    def recall(self, text: bytes) -> Key | None:
        """Return the key with this text as last read from the store; None if it was not there, or over an hour ago."""
        if time.monotonic() - self._told_at > _REMEMBERED_SECONDS:
            return None
        found = self._valid(id_in(text) or "")
        return found if found is not None and found.opens_with(text) else None

    def forget(self) -> None:
        """Make the next query read the store again, as this process has changed a key."""
        self._as_of = -math.inf

    def _valid(self, key_id: str) -> Key | None:
        found = self._keys.by_id.get(key_id)
        return found if found is not None and found.is_valid else None

    async def _look(self, not_before: float) -> None:
        """Read the keys unless they were read at the time `not_before` or later."""
        while self._as_of < not_before:
            await self._read_again("keys")

    async def _read(self, _: str) -> None:
        await asyncio.sleep(max(0.0, self._as_of + _PAUSE_SECONDS - time.monotonic()))
        began = time.monotonic()
        self._keys = await self._changed(self._keys)
        self._as_of = self._told_at = began


# Seconds of requests that are taken from the store in advance.
_AHEAD_SECONDS = 0.1
# Seconds after which requests that were taken and not used are lost.
_KEPT_SECONDS = 1.0
# Most keys whose allowance is remembered. Allowances of other keys are taken from the store again.
_MOST_KEYS = 4096

Take = Callable[[str, float, int, int], Awaitable[Taken]]


class _Allowance:
    """Requests of one key that one process has taken from the store and not admitted yet."""

    def __init__(self) -> None:
        self.left = 0
        self.ends = 0.0
        """Time after which the remaining requests are lost."""
        self.refused_until = 0.0
        self.waiting = 0
        self.taking = asyncio.Lock()


class Rates:
    """Rate limiter: admits as many requests of each key as its rate allows.

    In any t seconds all processes together admit burst + rate·t requests of a key, plus at most a tenth of a second's
    worth for each process, taken in advance.
    """

    def __init__(self, take: Take) -> None:
        self._take = take
        self._of: LRUCache[str, _Allowance] = LRUCache(_MOST_KEYS)

    async def wait(self, key: Key) -> float:
        """Return the seconds until the key may ask again, 0 if it may now; raise StoreUnavailable if the store does."""
        if key.rate is None or key.burst is None:
            return 0.0
        one = self._of.get(key.id)
        if one is None:
            one = self._of[key.id] = _Allowance()
        one.waiting += 1
        try:
            async with one.taking:
                now = time.monotonic()
                if now >= one.ends:
                    one.left = 0
                if not one.left:
                    if now < one.refused_until:
                        return one.refused_until - now
                    wanted = max(int(key.rate * _AHEAD_SECONDS), one.waiting)
                    one.left, wait = await self._take(key.id, key.rate, key.burst, wanted)
                    one.ends = now + _KEPT_SECONDS
                    if not one.left:
                        one.refused_until = now + wait
                        return wait
                one.left -= 1
                return 0.0
        finally:
            one.waiting -= 1


ROLES: dict[str, Role | None] = {
    # Probes of the service's health need no key.
    **dict.fromkeys(("live", "ready", "inference_live", "inference_ready")),
    **dict.fromkeys(("page", "page_file")),  # these show no data until they are given a key
    **dict.fromkeys(
        (
            *(f"get_{array}" for family in FAMILIES for array in family.fetched),
            *("list_maps", "get_map", "export_map", "transform", "kernel", "codes", "similarity", "diagnose"),
            *("list_indexes", "get_index", "search_index", "find_duplicates", "advise", "plan_bands", "recommend"),
            *("measure_recall", "list_vectors", "get_vector", "count_vectors", "list_aliases", "get_alias"),
            *("list_datasets", "get_dataset", "list_jobs", "get_job", "get_job_result", "watch_job", "cancel_job"),
            *("inference_server", "inference_model", "inference_model_ready", "inference_index", "infer"),
            *("info", "catalog", "docs_page", "docs_file", "openapi_document"),
        ),
        Role.read,
    ),
    **dict.fromkeys(("metrics", "problem"), Role.metrics),  # a client that was refused may read why
    **dict.fromkeys(("put_map", "delete_map", "put_dataset", "delete_dataset"), Role.write),
    **dict.fromkeys(("put_alias", "delete_alias"), Role.write),
    **dict.fromkeys(("put_index", "copy_index", "delete_index", "upsert_vectors", "change_tags"), Role.write),
    **dict.fromkeys(("delete_vector", "delete_vectors"), Role.write),
    **dict.fromkeys(("create_key", "list_keys", "revoke_key"), Role.admin),
}
"""Role that each operation needs; None for operations that are open to everybody."""

WITHOUT_KEY = Role.write
"""Role of clients without a key when none is required. To make or revoke keys takes a key or the command line."""


def permit(operation: str, state: Mapping[str, Any]) -> None:
    """Raise Refusal if the role in a request's state does not include an operation.

    An operation that is not in the table `ROLES` needs role `admin`.
    """
    needed = ROLES.get(operation, Role.admin)
    role: Role | None = state["role"]
    if needed is None or (role is not None and role.includes(needed)):
        return
    key: Key | None = state["key"]
    if key is None:
        raise unauthorized_refusal(f"expected a key with role {needed}, got none")
    raise Refusal("forbidden", f"expected role {needed}, got key {key.name!r} with role {key.role}")


def unauthorized_refusal(detail: str, error: str | None = None) -> Refusal:
    """Return the refusal of a request without a valid key; `error` is the code of RFC 6750 if credentials came."""
    challenge = 'Bearer realm="bochner"' + (f', error="{error}"' if error else "")
    return Refusal("unauthorized", detail, headers={"WWW-Authenticate": challenge})


_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key. The service needs one by default exactly where it does not listen on a loopback address. "
    "Its role is `metrics`, `read`, `write` or `admin`; each includes those before it.",
}


def add_roles(document: dict[str, Any], required: bool) -> None:
    """Add to the OpenAPI document the role that each operation needs, and whether it can do without a key."""
    document["components"]["securitySchemes"] = {"key": _SCHEME}
    for path in document["paths"].values():
        for operation in path.values():
            role = ROLES[operation["operationId"]]
            optional = role is not None and not required and WITHOUT_KEY.includes(role)
            operation["security"] = [] if role is None else [{"key": [role]}] + [{}] * optional


OPEN = frozenset({"/health/live", "/health/ready", "/v2/health/live", "/v2/health/ready"})
"""Paths open to everybody, under any host: probes of a cluster use an IP address, and have no key."""
METRICS = "/metrics"
"""Path of metrics. Requested under a pod's address: if it needs a key, any host will do, as other sites have none."""
ASSETS = "/page/"
"""Prefix of the paths of scripts and styles of the page at /."""
_CREDENTIALS = re.compile(rb"(?P<scheme>[A-Za-z]+) +(?P<given>[A-Za-z0-9._~+/=-]+)")
_LOOKING = ("GET", "HEAD")
_BASIC = 'Basic realm="bochner", charset="UTF-8"'


class Access:
    """Admits requests.

    Args:
        required: whether a request needs a key. A key that is sent although none is required limits the request to its
            role.
    """

    def __init__(self, required: bool, hosts: Hosts, keys: KnownKeys, rates: Rates) -> None:
        self.required = required
        self._hosts, self.keys, self._rates = hosts, keys, rates

    async def admit(self, scope: Scope) -> None:
        """Raise Refusal unless the request is admitted; set `role` and `key` in its state, which may be None.

        Raises StoreUnavailable if the store does not answer.
        """
        state = scope["state"]
        state["role"] = state["key"] = None
        if scope["path"] in OPEN:
            return
        if not (self.required and scope["path"] == METRICS):
            self._check_host(scope)
        if _is_shell(scope):
            return
        key = await (self._key_of_metrics(scope) if scope["path"] == METRICS else self._key(scope))
        state["key"], state["role"] = key, WITHOUT_KEY if key is None else key.role
        if key is not None and (request := REQUEST.get()) is not None:
            request.owner = key.id

    async def holds(self, key: Key | None) -> bool:
        """Return whether a request that was admitted with this key still would be; for answers that last long."""
        return key is None or await self.keys.get(key.id) is not None

    def _check_host(self, scope: Scope) -> None:
        came = _values(scope, b"host")
        if len(came) > 1:
            raise Refusal("bad-request", f"expected one header Host, got {len(came)}")
        host = came[0].decode("latin-1") if came else ""
        if not self._hosts.allow(host):
            raise Refusal("misdirected", f"host {host[:80]!r} came, which BOCHNER_ALLOWED_HOSTS does not name")

    async def _key(self, scope: Scope) -> Key | None:
        text = _read_key(scope)
        if not self.required and (text is None or id_in(text) is None):
            return None  # credentials for another service, such as a proxy
        if text is None:
            raise unauthorized_refusal("expected `Authorization: Bearer KEY`, got no key")
        key = await self.keys.find(text)
        if key is None:
            raise unauthorized_refusal("expected a valid key as `Authorization: Bearer KEY`", "invalid_token")
        wait = await self._rates.wait(key)
        if key.rate is not None and wait > 0:
            detail = f"key {key.name!r} may ask {key.rate:g} times a second, and {key.burst} times at once"
            retry = {"Retry-After": str(math.ceil(wait))}
            raise Refusal("overloaded", detail, status=429, headers=retry, **limit("key_rate", key.rate))
        return key

    async def _key_of_metrics(self, scope: Scope) -> Key | None:
        """Return the key as `_key` does, or as last known if the store does not answer: alerts need metrics then."""
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                return await self._key(scope)
        except (StoreUnavailable, TimeoutError) as error:
            key = self.keys.recall(_read_key(scope) or b"")
            if key is None:
                raise StoreUnavailable("the store does not answer, and did not tell of this key before") from error
            return key


def owner_of(request: Request) -> str:
    """Return the id of the request's key, or "": the account in the store for everything that the request creates."""
    key: Key | None = request.scope["state"]["key"]
    return "" if key is None else key.id


def looks(scope: Scope) -> bool:
    """Return whether a browser requests a page, so that its user can be asked for a key."""
    return scope["method"] in _LOOKING and any(b"text/html" in value for value in _values(scope, b"accept"))


class Authorization:
    """Middleware that refuses requests which are not admitted, before anything else and before a body is read."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on if it is admitted."""
        if scope["type"] == "http":
            try:
                await self._access.admit(scope)
            except Refusal as refusal:
                response = HANDLERS[Refusal](Request(scope), refusal)
                if response.status_code == 401 and looks(scope):
                    response.headers.append("WWW-Authenticate", _BASIC)
                await response(scope, receive, send)
                return
            except StoreUnavailable as error:
                await HANDLERS[StoreUnavailable](Request(scope), error)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _values(scope: Scope, name: bytes) -> list[bytes]:
    return [value for header, value in scope["headers"] if header == name]


def _read_key(scope: Scope) -> bytes | None:
    """Return the key text of a request; empty if the credentials are of another kind, None if there are none."""
    came = _values(scope, b"authorization")
    if len(came) > 1:
        raise unauthorized_refusal(f"expected one header Authorization, got {len(came)}", "invalid_request")
    return _text(came[0], scope["method"]) if came else None


def _is_shell(scope: Scope) -> bool:
    """Return whether the page without data, or a file of it, is requested. The page fetches its data with a key."""
    if scope["path"] == "/":
        return looks(scope)
    return scope["method"] in _LOOKING and scope["path"].startswith(ASSETS)


def _text(credentials: bytes, method: str) -> bytes:
    """Return the text of the key in a header `Authorization`; empty if there is none.

    A browser asks its user for a name and a password; the password is the key. It then sends both by itself, even if a
    page of another site triggers the request. So such credentials count for GET and HEAD only.
    """
    found = _CREDENTIALS.fullmatch(credentials.strip(b" \t"))
    if found is None:
        return b""
    scheme, given = found["scheme"].lower(), found["given"]
    if scheme == b"bearer":
        return given
    if scheme == b"basic" and method in _LOOKING:
        try:
            return base64.b64decode(given, validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return b""


# Seconds for which a browser may remember the answer to a preflight request.
_REMEMBERED = 600


class CrossOrigin(CORSMiddleware):
    """Lets pages of the given origins read answers. For other origins, requests are answered as if CORS did not exist.

    A page sends its key as any client does, in `Authorization`: cookies have no meaning here.
    """

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=METHODS,
            allow_headers=["*"],
            expose_headers=EXPOSED,
            max_age=_REMEMBERED,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a preflight request, or pass the request on and name the origin whose pages may read the answer."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            wanted = headers.get("access-control-request-method", "GET")
            # Refusals are problem documents, which the application writes.
            if not self.is_allowed_origin(headers.get("origin", "")) or wanted not in METHODS:
                await self.app(scope, receive, send)
                return
        await super().__call__(scope, receive, send)
