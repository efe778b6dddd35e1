"""Heads of requests: addresses, fields, framing; and whole requests, broken or not."""

from random import Random
from typing import Any
from urllib.parse import quote

from service_tests.checks import ARROW, JSON, NPY

DEEP = 400
TEXTS = [
    "",
    "a",
    "1",
    "NaN",
    "0" * 30,
    "-1",
    "1e999",
    "\0",
    "\r\nX: 1",
    "é",
    "a" * 2000,
    "../../passwd",
    "{map:x}",
    "*",
]
MEDIA_TYPES = [
    *(JSON, NPY, ARROW, "APPLICATION/JSON", f"{JSON};charset=utf-16", "text/html", "", "x", "*/*", "a/b" * 900, '"'),
    *("multipart/form-data; boundary=b", "application/octet-stream", "image/svg+xml", "\xff/\xfe"),
]
FIELDS = {
    "Accept": [
        *(*MEDIA_TYPES, f"{NPY}; dtype=float16", f"{NPY};dtype=float32;q=0.5, */*;q=nan", f"{JSON};q=0", "*/*;q=1e999"),
        *(";,;,", "a/b," * 1000, f'{NPY};dtype="float16', f"{NPY};dtype=complex64", "image/*"),
    ],
    "Accept-Encoding": ["gzip", "zstd, br;q=1", "identity;q=0", "*"],
    "Content-Encoding": ["gzip", "identity", "br, gzip", ""],
    "Prefer": ["wait=1", "respond-async", "wait=-1", "wait=" + "9" * 400, "wait=nan", "wait=0, respond-async", "\xff"],
    "If-None-Match": ["*", '"sha256:0"', 'W/"x"', '"' * 3000, "", "\xff"],
    "X-Request-ID": ["an-id", "a" * 200, "\xe9", "<script>", "{}"],
    "Last-Event-ID": ["0-0", "18446744073709551615-18446744073709551615", "-1", "x", ""],
    "Expect": ["100-continue", "200-ok"],
    "Connection": ["close", "keep-alive", "upgrade", "Host", "\xff"],
    "X-Long": ["a" * 20_000, "a" * 70_000],
}
_HOSTS = ["[::1]:9", "LOCALHOST.", "evil.example", "a b", "", "\xff", "a" * 300]
_FRAMING = [
    *(b"Content-Length: 0", b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: +5", b"Content-Length: 0x5"),
    *(b"Content-Length: 99999999999999999999", b"Content-Length: 5, 5", b"Content-Length : 5", b"Content-Length:"),
    *(b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: identity"),
    *(b"Transfer-Encoding : chunked", b"Transfer-Encoding: \x0bchunked", b"Transfer-Encoding: chunked, chunked"),
    *(b"Transfer_Encoding: chunked", b"Host: other", b" folded", b"no colon", b": no name", b"X: \0", b"X\xff: 1"),
    *(b"Authorization: Bearer x", b"Connection: upgrade\r\nUpgrade: h2c", b"Expect: 100-continue"),
]
_METHODS = [*b"HEAD OPTIONS TRACE CONNECT PATCH get PRI PROPFIND PUT".split(), b"\xff", b"", b"A" * 300]


def query(random: Random, parameters: list[dict[str, Any]]) -> str:
    """A query, of parameters that the address takes, and others."""
    if random.random() < 0.5:
        return ""
    names = [one["name"] for one in parameters if one["in"] == "query"] * 9 + ["limit", *TEXTS]
    words = [word for one in parameters for word in one["schema"].get("enum", [])]
    words += [*TEXTS, "zero_bit", "b_bit", "one_hot", "8", "16", "64", "mark", "2", "500"]
    pairs = [(random.choice(names), random.choice(words)) for _ in range(random.choice((1, 1, 2, 3)))]
    return "?" + "&".join(f"{quote(name)}={quote(word, safe='')}" for name, word in pairs)


def fields(random: Random, media_type: str | None) -> list[bytes]:
    """Lines of a head, beside those that say how a body is framed. Any name, and media type, may be wrong."""
    lines = [f"Host: {'localhost' if random.random() < 0.97 else random.choice(_HOSTS)}"]
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
    size = max(random.choice((7, 100, 5000)), len(body) // 20)
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    extension = random.choice((b"", b";a=b", b';a="\\""'))
    chunks = [b"%x%s\r\n%s\r\n" % (len(piece), extension, piece) for piece in pieces]
    trailer = random.choice((b"", b"X-Late: 1\r\n", b"Authorization: Bearer x\r\n"))
    return [b"Transfer-Encoding: chunked"], b"".join(chunks) + b"0\r\n" + trailer + b"\r\n"


def broken(random: Random, sent: bytes, method: str) -> bytes:
    """Bytes that are no request any more, or another, or several."""
    for _ in range(random.choice((1, 1, 2, 3))):
        sent = _changed(random, sent, method.encode())
    return sent


def _changed(random: Random, sent: bytes, method: bytes) -> bytes:
    head, blank, rest = sent.partition(b"\r\n\r\n")
    lines, at = head.split(b"\r\n"), random.randrange(len(head) + 1)
    match random.randrange(9):
        case 0:
            return sent[:at] + random.randbytes(random.choice((1, 4, 50))) + sent[at:]
        case 1:
            return sent[:at] + sent[at + 1 :]
        case 2:
            return sent[: random.randrange(len(sent) + 1)]
        case 3:
            return head.replace(b"\r\n", random.choice((b"\n", b"\r", b"\r\n ", b"\0\r\n"))) + blank + rest
        case 4:
            return sent.replace(b"HTTP/1.1", random.choice((b"HTTP/1.0", b"HTTP/2.0", b"HTTP/1.12", b"", b"HTTP/0.9")))
        case 5:
            return sent.replace(b" /", random.choice((b" http://evil/", b" //", b" *", b" /../", b" /%2e%2e/")), 1)
        case 6:
            return sent.replace(method, random.choice(_METHODS), 1)
        case 7:  # something before it, or itself once more behind it
            return random.choice((b"\r\n", b"\x16\x03\x01\x02\0", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", sent)) + sent
    lines.insert(random.randrange(1, len(lines) + 1), random.choice([*_FRAMING, random.choice(lines)]))
    return b"\r\n".join(lines) + blank + rest
