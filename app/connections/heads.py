"""Heads of requests: which are refused, and how."""

from collections.abc import Sequence

import httptools

from app.api.problems import Refusal, limit

Fields = Sequence[tuple[bytes, bytes]]


def check(method: bytes, version: str, address: bytes, fields: Fields, most: int) -> None:
    """Refuse a head that is not one of HTTP/1.1, or of which two readers might think differently where its body ends.

    Args:
        method: of the request line.
        version: likewise, such as "1.1".
        address: likewise.
        fields: names in lower case, and values.
        most: bytes of the largest head that is taken.
    """
    size = len(address) + sum(len(name) + len(value) for name, value in fields)
    if size > most:
        raise too_large(len(address), size, most)
    if version not in ("1.0", "1.1") or method == b"CONNECT":
        raise Refusal("bad-request", f"{method.decode()} in HTTP/{version} came; HTTP/1.1 is spoken here, to no others")
    hosts = [name for name, _ in fields].count(b"host")
    if hosts > 1 or (hosts == 0 and version == "1.1"):
        raise Refusal("bad-request", f"{hosts} fields Host came; one is wanted")
    codings = [value.strip().lower() for name, value in fields if name == b"transfer-encoding"]
    if codings not in ([], [b"chunked"]) or (codings and version == "1.0"):
        came = b", ".join(codings)[:80].decode("latin-1")
        raise Refusal("bad-request", f"Transfer-Encoding {came} came in HTTP/{version}; only chunked is read, in 1.1")


def with_path(address: bytes) -> bytes:
    """An address that has a path: `http://host` without one means the same as with `/` (RFC 9112, 3.2.2)."""
    if address.startswith(b"/"):
        return address
    parsed = httptools.parse_url(address)
    return address if parsed.path else b"/" + (b"?" + parsed.query if parsed.query else b"")


def too_large(address_bytes: int, size: int, most: int) -> Refusal:
    """The refusal of a head of so many bytes or more, of which the address has so many."""
    members = limit("max_head_bytes", most)
    if address_bytes > most:
        return Refusal("uri-too-long", f"{address_bytes} bytes or more of an address came; {most} may come", **members)
    return Refusal("head-too-large", f"{size} bytes or more of a head came; {most} may come", **members)
