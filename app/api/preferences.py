"""What a client prefers of a request that may take long (RFC 7240): to wait for the answer, or to be told of a job."""

import re
from typing import NamedTuple

from fastapi import Request

# Pieces of a list, as a comma or a semicolon parts them outside of quotes. A quote that is not closed goes to the end.
_QUOTED = r'"(?:[^"\\]|\\.)*(?:"|\\?$)'
_BETWEEN_COMMAS = re.compile(rf'(?:[^,"]|{_QUOTED})+')
_BETWEEN_SEMICOLONS = re.compile(rf'(?:[^;"]|{_QUOTED})+')
_PREFERENCE = re.compile(r"\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*(?:=\s*(.*?)\s*)?", re.DOTALL)
_SECONDS = re.compile(r'("?)([0-9]+)\1')
# Numbers of more digits, which Python may refuse to read, are longer than any wait.
_MOST_DIGITS = 15


class Preferences(NamedTuple):
    """What the client prefers."""

    respond_async: bool = False
    """To be told of a job at once, or after `wait` seconds."""
    wait: int | None = None
    """Seconds to wait for the answer, no more than are allowed; None if nothing came."""

    @property
    def at_once(self) -> bool:
        """Whether the client wants a job without any waiting."""
        return self.wait == 0 or (self.respond_async and self.wait is None)

    def applied(self, status: int) -> dict[str, str]:
        """Headers that say what was made of the preferences in an answer of this status."""
        names = ["respond-async"] if self.respond_async and status == 202 else []
        names += [] if self.wait is None else [f"wait={self.wait}"]
        return {"Vary": "Prefer"} | ({"Preference-Applied": ", ".join(names)} if names else {})


def preferences(request: Request, max_wait_seconds: float) -> Preferences:
    """The preferences of a request. Those that are malformed or not known here are ignored, as the standard wants.

    Args:
        request: with any number of headers `Prefer`.
        max_wait_seconds: the longest wait that is granted.
    """
    found: dict[str, str] = {}
    for piece in _BETWEEN_COMMAS.findall(",".join(request.headers.getlist("prefer"))):
        preference = _PREFERENCE.fullmatch(_BETWEEN_SEMICOLONS.findall(piece)[0])
        if preference is not None:
            # Of a preference that is repeated the first counts.
            found.setdefault(preference[1].lower(), preference[2] or "")
    seconds = _SECONDS.fullmatch(found.get("wait", ""))
    wait = None
    if seconds is not None:
        wait = int(max_wait_seconds)
        if len(seconds[2]) <= _MOST_DIGITS:
            wait = min(wait, int(seconds[2]))
    return Preferences(found.get("respond-async") in ("", '""'), wait)
