"""A connection that sends bytes and reads answers, without trust in either."""

import socket
from contextlib import suppress

import httpx

from service_tests.connections.wire import connected
from service_tests.fuzz.cases import Case
from service_tests.fuzz.judge import Answer, Wrong
from service_tests.running import Running

# What must come comes in so many seconds, also beside others.
_PATIENCE = 90
# A broken request is thought to be over when nothing came for so many.
_SILENCE = 0.2


class Line:
    """A connection to the service, opened anew where it ends."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._socket: socket.socket | None = None
        self._came = b""

    def close(self) -> None:
        """Hang up."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._came = None, b""

    def ask(self, case: Case) -> list[Answer]:
        """Send a case, and give its answers: one, if it is whole."""
        if not case.is_whole:
            return self._ask_broken(case)
        line = self._socket = self._socket or connected(self._running, _PATIENCE)
        with suppress(ConnectionError):  # it may be refused before it is sent
            line.sendall(case.sent)
        answer = self._answer(line, case.request.method == "HEAD")
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            self.close()
        elif answer.headers.get("connection", "").lower() == "close":
            with suppress(ConnectionError):  # as it ends where not all that was sent is read
                self._came += line.recv(1)
            if self._came:
                raise Wrong("more comes behind the last answer")
            self.close()
        return [answer]

    def _answer(self, line: socket.socket, is_head: bool) -> Answer:
        """The next answer, but for those that only say to go on."""
        while True:
            head = self._until(line, b"\r\n\r\n")
            first, *lines = head.split(b"\r\n")
            status = int(first.removeprefix(b"HTTP/1.1 ")[:3])
            if status >= 200:
                break
        pairs = [(name, value.strip()) for name, _, value in (one.partition(b":") for one in lines)]
        headers = httpx.Headers(pairs)
        if is_head or status in (204, 304) or headers.get("content-type", "").startswith("text/event-stream"):
            return Answer(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self._until(line, b"\r\n"), 16):
                body += self._bytes(line, size)
                self._bytes(line, 2)
            self._bytes(line, 2)
            return Answer(status, headers, body)
        return Answer(status, headers, self._bytes(line, int(headers["content-length"])))

    def _ask_broken(self, case: Case) -> list[Answer]:
        self.close()
        with connected(self._running, _PATIENCE) as line:
            with suppress(ConnectionError):
                line.sendall(case.sent)
            came = b""
            line.settimeout(_SILENCE)
            with suppress(ConnectionError):
                try:
                    while piece := line.recv(1 << 16):
                        came += piece
                except TimeoutError:
                    line.settimeout(_PATIENCE)
                    line.shutdown(socket.SHUT_WR)
                    while piece := line.recv(1 << 16):
                        came += piece
        return _parted(came)

    def _until(self, line: socket.socket, end: bytes) -> bytes:
        while end not in self._came:
            self._more(line)
        found, _, self._came = self._came.partition(end)
        return found

    def _bytes(self, line: socket.socket, count: int) -> bytes:
        while len(self._came) < count:
            self._more(line)
        found, self._came = self._came[:count], self._came[count:]
        return found

    def _more(self, line: socket.socket) -> None:
        try:
            piece = line.recv(1 << 16)
        except OSError as error:
            raise Wrong(f"the answer does not come: {error!r}; {self._came[:200]!r} did") from error
        if not piece:
            raise Wrong(f"the connection ends without an answer; {self._came[:200]!r} came")
        self._came += piece


def _parted(came: bytes) -> list[Answer]:
    """The answers that bytes consist of, of which the last may be a part."""
    found = []
    while came:
        if not came.startswith(b"HTTP/1.1 "):
            raise Wrong(f"{came[:80]!r} is no answer")
        head, blank, came = came.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        if not blank:
            break
        headers = httpx.Headers([(name, value.strip()) for name, _, value in (one.partition(b":") for one in lines)])
        status = int(first[9:12])
        if status < 200:
            continue
        if "content-length" not in headers:  # in pieces, or none: what it holds is judged where requests are whole
            found.append(Answer(status, headers, b"", status in (204, 304)))
            end = came.find(b"0\r\n\r\n") if "transfer-encoding" in headers else -5
            came = came[end + 5 :] if end != -1 else b""
            continue
        length = 0 if came.startswith(b"HTTP/1.1 ") else int(headers["content-length"])  # that of a HEAD
        found.append(Answer(status, headers, came[:length], len(came) >= length > 0))
        came = came[length:]
    return found
