"""The header Prefer (RFC 7240): whether a client waits for an answer that takes long, or wants to hear of a job."""

import re
from typing import NamedTuple

from fastapi import Request

_QUOTED = r'"(?:[^"\\]|\\.)*+"'
# What stands between the commas of a list. A quote that is not closed goes to the end.
_PIECE = re.compile(rf'(?:[^,"]|{_QUOTED}|".*+)++', re.DOTALL)
# A name and its value; parameters may follow. Quantifiers are possessive, so that no header takes long to read.
_NAME, _VALUE = r"([!#$%&'*+.^_`|~0-9A-Za-z-]++)", rf'({_QUOTED}|[^\s;"]*+)'
_PREFERENCE = re.compile(rf"\s*+{_NAME}\s*+(?:=\s*+{_VALUE}\s*+)?+(?:;.*)?", re.DOTALL)
# A longer header is ignored, as malformed ones are.
_MOST_CHARACTERS = 8192
_SECONDS = re.compile(r'("?)([0-9]+)\1')


class Preferences(NamedTuple):
    """What a client prefers."""

    respond_async: bool = False
    """Whether the client prefers to hear of a job, at once or after `wait` seconds."""
    wait: int | None = None
    """Seconds that the client prefers to wait, no more than are allowed; None if it does not say."""

    @property
    def at_once(self) -> bool:
        """Whether the client wants a job without any waiting."""
        return self.wait == 0 or (self.respond_async and self.wait is None)

    def applied(self, status: int) -> dict[str, str]:
        """The headers of an answer of this status that say which preferences were applied."""
        names = ["respond-async"] if self.respond_async and status == 202 else []
        names += [] if self.wait is None else [f"wait={self.wait}"]
        return {"Vary": "Prefer"} | ({"Preference-Applied": ", ".join(names)} if names else {})


def preferences(request: Request, max_wait_seconds: float) -> Preferences:
    """The preferences of a request, with the wait that is granted. The standard wants malformed ones to be ignored."""
    found: dict[str, str] = {}
    header = ",".join(request.headers.getlist("prefer"))
    for piece in _PIECE.findall(header) if len(header) <= _MOST_CHARACTERS else ():
        preference = _PREFERENCE.fullmatch(piece)
        if preference is not None:
            # Where a preference comes twice, the first counts.
            found.setdefault(preference[1].lower(), preference[2] or "")
    seconds = _SECONDS.fullmatch(found.get("wait", ""))
    # As a float, as Python refuses to read whole numbers of many digits.
    wait = None if seconds is None else int(min(max_wait_seconds, float(seconds[2])))
    return Preferences(found.get("respond-async") in ("", '""'), wait)
