"""Who is let in: by the name that is asked for, by keys, and by how often these have asked."""

import base64
import binascii
import logging
import math
import re

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.hosts import Hosts
from app.api.known_keys import KnownKeys
from app.api.problems import HANDLERS, Refusal, limit
from app.api.rates import Rates
from app.api.roles import WITHOUT_KEY, unauthorized
from app.store.errors import StoreUnavailable
from app.store.keys import Key, hidden, id_in

OPEN = frozenset({"/health/live", "/health/ready", "/v2/health/live", "/v2/health/ready"})
"""Addresses that are open to everybody, under any host: probes of a cluster ask for an IP address, and have no key."""
METRICS = "/metrics"
"""Asked for by the address of a pod, and so under any host where it takes a key, which no page of another site has."""
ASSETS = "/page/"
"""Below it are the scripts and styles of the page at /."""
_CREDENTIALS = re.compile(rb"(?P<scheme>[A-Za-z]+) +(?P<given>[A-Za-z0-9._~+/=-]+)")
_LOOKING = ("GET", "HEAD")
_BASIC = 'Basic realm="bochner", charset="UTF-8"'


class Access:
    """Lets requests in.

    Args:
        required: whether a request needs a key. Who sends one where none is needed is held to it.
    """

    def __init__(self, required: bool, hosts: Hosts, keys: KnownKeys, rates: Rates) -> None:
        self.required = required
        self._hosts, self.keys, self._rates = hosts, keys, rates

    async def admit(self, scope: Scope) -> None:
        """Raise Refusal unless the request may come in; its state then has its `role` and its `key`, or None for none.

        Raises StoreUnavailable where the store does not answer.
        """
        state = scope["state"]
        state["role"] = state["key"] = None
        if scope["path"] in OPEN:
            return
        if not (self.required and scope["path"] == METRICS):
            self._check_host(scope)
        if _is_shell(scope):
            return
        key = state["key"] = await self._key(scope)
        state["role"] = WITHOUT_KEY if key is None else key.role
        if key is not None and key.rate is not None:
            wait = await self._rates.wait(key)
            if wait > 0:
                detail = f"key {key.name!r} may ask {key.rate:g} times a second, and {key.burst} times at once"
                retry = {"Retry-After": str(math.ceil(wait))}
                raise Refusal("overloaded", detail, status=429, headers=retry, **limit("key_rate", key.rate))

    async def holds(self, key: Key | None) -> bool:
        """Whether a request that was let in with this key would still be; for answers that last."""
        return key is None or await self.keys.get(key.id) is not None

    def _check_host(self, scope: Scope) -> None:
        came = _values(scope, b"host")
        if len(came) > 1:
            raise Refusal("bad-request", f"{len(came)} headers Host came; one is wanted")
        host = came[0].decode("latin-1") if came else ""
        if not self._hosts.allow(host):
            raise Refusal("misdirected", f"host {host[:80]!r} came, which BOCHNER_ALLOWED_HOSTS does not name")

    async def _key(self, scope: Scope) -> Key | None:
        came = _values(scope, b"authorization")
        if len(came) > 1:
            raise unauthorized(f"{len(came)} headers Authorization came; one is wanted", "invalid_request")
        text = _text(came[0], scope["method"]) if came else b""
        if not self.required and id_in(text) is None:
            return None  # credentials of somebody else, as of a proxy
        if not came:
            raise unauthorized("no key came; `Authorization: Bearer KEY` is wanted")
        key = await self.keys.find(text)
        if key is None:
            raise unauthorized("no key that is valid here came; `Authorization: Bearer KEY` is wanted", "invalid_token")
        return key


def owner_of(request: Request) -> str:
    """Whose what a request makes is in the account of the store: the id of its key, or "" without one."""
    key: Key | None = request.scope["state"]["key"]
    return "" if key is None else key.id


def looks(scope: Scope) -> bool:
    """Whether somebody looks at a page, who can be asked for a key."""
    return scope["method"] in _LOOKING and any(b"text/html" in value for value in _values(scope, b"accept"))


class Authorization:
    """Refuses requests that may not come in, before anything else is looked at and before a body is read."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on if it may come in."""
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


def without_keys(record: logging.LogRecord) -> bool:
    """Filter a log of requests: a client may write its key into an address by mistake."""
    if isinstance(record.args, tuple):
        record.args = tuple(hidden(one) if isinstance(one, str) else one for one in record.args)
    return True


def _values(scope: Scope, name: bytes) -> list[bytes]:
    return [value for header, value in scope["headers"] if header == name]


def _is_shell(scope: Scope) -> bool:
    """Whether it is the page without any data, or a file of it. What the page asks for is asked for with a key."""
    if scope["path"] == "/":
        return looks(scope)
    return scope["method"] in _LOOKING and scope["path"].startswith(ASSETS)


def _text(credentials: bytes, method: str) -> bytes:
    """The text of the key in a header `Authorization`; empty if there is none.

    A browser asks for a name and a password, of which the password is the key. It then sends them by itself, also where
    a page of another site has it send something. So they only serve to look at something.
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
