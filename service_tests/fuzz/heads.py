"""Heads of requests: addresses, fields, credentials; and whole requests, broken or not."""

from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

from service_tests.checks import JSON, NPY
from service_tests.fuzz.bodies import DEEP, ODD

MEDIA_TYPES = [
    *(JSON, NPY, f"{JSON}; charset=utf-8", "APPLICATION/JSON", f"{JSON};charset=utf-16", "text/plain", "*/*", "", "x"),
    *("application/problem+json", "multipart/form-data; boundary=b", "application/x-www-form-urlencoded", "a/b" * 900),
    *(
        "application/vnd.apache.arrow.stream",
        "application/octet-stream",
        "text/html",
        "image/svg+xml",
        '"',
        "\xff/\xfe",
    ),
]
ACCEPTS = [
    *MEDIA_TYPES,
    *(
        f"{NPY}; dtype=float16",
        f"{NPY};dtype=float32;q=0.5, */*;q=nan",
        f"{JSON};q=0",
        "*/*;q=1e999",
        ";,;,",
        "a/b," * 1000,
    ),
    *(f'{NPY};dtype="float16', f"{NPY};dtype=complex64", '"' * 50, f"{JSON};q=0, {NPY};q=0", "image/*", "*/*;q=-1"),
]
FIELDS = {
    "Accept": ACCEPTS,
    "Accept-Encoding": ["gzip", "zstd, br;q=1", "identity;q=0", "*"],
    "Content-Encoding": ["gzip", "identity", "br, gzip", "", "IDENTITY"],
    "Prefer": [
        "wait=1",
        "respond-async",
        "wait=-1",
        "wait=" + "9" * 400,
        "wait=nan",
        "wait=0, respond-async",
        '"',
        "\xff",
    ],
    "If-None-Match": ["*", '"sha256:0"', 'W/"x"', '"' * 3000, "", "\xff"],
    "If-Match": ["*", '"sha256:0"', "x"],
    "If-Modified-Since": ["Thu, 01 Jan 1970 00:00:00 GMT", "x"],
    "Range": ["bytes=0-1", "bytes=-99999999999999999999", "rows=1"],
    "X-Request-ID": ["an-id", "a" * 200, "\xe9", "<script>", "a b", "{}"],
    "Last-Event-ID": ["0", "0-0", "18446744073709551615-18446744073709551615", "-1", "x", "9" * 30, ""],
    "Expect": ["100-continue", "200-ok"],
    "Connection": ["close", "keep-alive", "upgrade", "Host", "close, keep-alive", "\xff"],
    "Upgrade": ["h2c", "websocket", "TLS/1.3"],
    "Cookie": ["key=1", "a" * 3000],
    "Origin": ["null", "http://evil.example"],
    "Forwarded": ["for=1.2.3.4;host=evil"],
    "X-Forwarded-For": ["1.2.3.4", "\xff", ","],
    "X-Forwarded-Host": ["evil.example"],
    "X-HTTP-Method-Override": ["DELETE"],
    "X-Original-URL": ["/v1/keys"],
    "Traceparent": ["00-" + "0" * 32 + "-" + "1" * 16 + "-01", "x"],
    "X-Long": ["a" * 20_000, "a" * 70_000],
}
HOSTS = [
    "localhost",
    "here",
    "127.0.0.1",
    "127.0.0.1:80",
    "[::1]:9",
    "LOCALHOST.",
    "evil.example",
    "a b",
    "",
    "\xff",
    "a" * 300,
]
_WORDS = [
    "",
    "a",
    "1",
    "true",
    "rows",
    "0" * 30,
    "nan",
    "1e999",
    "-1",
    "\0",
    "é",
    "*",
    "[a-z]*",
    "(a+)+$",
    "{map:x}",
    "\r\nX: 1",
]


class Request(NamedTuple):
    """A request that is framed as it should be."""

    method: str
    target: bytes
    fields: list[bytes]
    """Lines, without their ends."""
    body: bytes

    @property
    def sent(self) -> bytes:
        """As it is sent."""
        line = b"%s %s HTTP/1.1" % (self.method.encode(), self.target)
        return b"\r\n".join([line, *self.fields, b"", self.body])


def query(random: Random, parameters: list[dict[str, Any]]) -> str:
    """A query, of parameters that the address takes, and others."""
    if random.random() < 0.5:
        return ""
    named = [one["name"] for one in parameters if one["in"] == "query"] or ["limit"]
    allowed = [word for one in parameters for word in one["schema"].get("enum", [])]
    pairs = []
    for _ in range(random.choice((1, 1, 2, 3))):
        name = random.choice(named) if random.random() < 0.9 else random.choice(_WORDS)
        value = random.choice((*allowed, *_WORDS, "zero_bit", "b_bit", "one_hot", "8", "16", "64", "mark", "2", "500"))
        pairs.append(f"{quote(name)}={quote(value, safe='')}")
    return "?" + "&".join(pairs)


def fields(random: Random, media_type: str | None) -> list[bytes]:
    """Lines of a head, beside those that say how a body is framed. Any name, and media type, may be wrong."""
    host = "localhost" if random.random() < 0.97 else random.choice(HOSTS)
    lines = [f"Host: {host}"]
    if media_type is not None:
        lines.append(f"Content-Type: {media_type if random.random() < 0.93 else random.choice(MEDIA_TYPES)}")
    for _ in range(random.choice((0, 0, 1, 1, 2, 4))):
        name = random.choice(list(FIELDS))
        lines.append(f"{name}: {random.choice(FIELDS[name])}")
    random.shuffle(lines)
    return [line.encode("latin-1") for line in lines]


def framed(random: Random, body: bytes) -> tuple[list[bytes], bytes]:
    """The fields that frame a body, and what is then sent of it: whole, or in pieces."""
    if random.random() < 0.8:
        return [b"Content-Length: %d" % len(body)], body
    pieces, at = list[bytes](), 0
    while at < len(body):
        size = min(random.choice((1, 7, 100, 5000)), len(body) - at) if len(pieces) < 20 else len(body) - at
        extension = random.choice((b"", b"", b";a=b", b';a="\\""'))
        pieces.append(b"%x%s\r\n%s\r\n" % (size, extension, body[at : at + size]))
        at += size
    trailer = random.choice((b"", b"", b"X-Late: 1\r\n", b"Authorization: Bearer x\r\n"))
    return [b"Transfer-Encoding: chunked"], b"".join(pieces) + b"0\r\n" + trailer + b"\r\n"


def broken(random: Random, request: Request) -> bytes:
    """Bytes that are no request any more, or another, or several."""
    sent = request.sent
    for _ in range(random.choice((1, 1, 2, 3))):
        change = random.choice((_in_bytes, _in_bytes, _in_lines, _in_lines, _in_the_first_line, _around))
        sent = change(random, sent, request.method.encode())
    return sent


def _in_bytes(random: Random, sent: bytes, _: bytes) -> bytes:
    """Bytes of the head more, or one less, or an early end of all."""
    at = random.randrange(sent.find(b"\r\n\r\n") % (len(sent) + 1) + 1)
    match random.randrange(3):
        case 0:
            return sent[:at] + random.randbytes(random.choice((1, 4, 50))) + sent[at:]
        case 1:
            return sent[:at] + sent[at + 1 :]
    return sent[: random.randrange(len(sent) + 1)]


def _in_lines(random: Random, sent: bytes, _: bytes) -> bytes:
    """Other ends of lines, a line twice, or one that frames a body in another way."""
    head, blank, rest = sent.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    match random.randrange(4):
        case 0:
            head = head.replace(b"\r\n", random.choice((b"\n", b"\r", b"\r\n ", b"\0\r\n")))
            return head + blank + rest
        case 1:
            lines.insert(random.randrange(len(lines)), random.choice(lines))
        case _:
            lines.insert(random.randrange(1, len(lines) + 1), random.choice(_FRAMING))
    return b"\r\n".join(lines) + blank + rest


def _in_the_first_line(random: Random, sent: bytes, method: bytes) -> bytes:
    """Another method, address or version."""
    match random.randrange(3):
        case 0:
            return sent.replace(b"HTTP/1.1", random.choice((b"HTTP/1.0", b"HTTP/2.0", b"HTTP/1.12", b"", b"HTTP/0.9")))
        case 1:
            forms = b" http://evil/", b" //", b" *", b" /../", b" /%2e%2e/", b"  /"
            return sent.replace(b" /", random.choice(forms), 1)
    return sent.replace(method, random.choice(_METHODS), 1)


def _around(random: Random, sent: bytes, _: bytes) -> bytes:
    """Something before it, or itself once more behind it."""
    before = b"\r\n", b"\x16\x03\x01\x02\0", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\0" * DEEP, sent
    return random.choice(before) + sent


_FRAMING = [
    *(b"Content-Length: 0", b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: +5", b"Content-Length: 0x5"),
    *(b"Content-Length: 99999999999999999999", b"Content-Length: 5, 5", b"Content-Length : 5", b"Content-Length:"),
    *(b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: identity"),
    *(b"Transfer-Encoding : chunked", b"Transfer-Encoding: \x0bchunked", b"Transfer-Encoding: chunked, chunked"),
    *(
        b"Transfer_Encoding: chunked",
        b"Host: other",
        b" folded",
        b"\tfolded",
        b"no colon",
        b": no name",
        b"X: \0",
        b"X\xff: 1",
    ),
    *(
        b"Authorization: Bearer x",
        b"Connection: upgrade\r\nUpgrade: h2c",
        b"Expect: 100-continue",
        b"Connection: close",
    ),
]
_METHODS = [
    *b"HEAD OPTIONS TRACE CONNECT PATCH get POSTS PRI PROPFIND M-SEARCH".split(),
    b"\xff",
    b"",
    b"A" * 300,
    b"PUT",
]
# Not the name of the dataset that stays.
TEXTS = [one for one in ODD if isinstance(one, str) and one != "points"]
