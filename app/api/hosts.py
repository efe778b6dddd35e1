"""The names that the service answers to.

A page of another site can have its own name lead to the address of this service (DNS rebinding), and then reads what
the browser's user may read. It cannot change the name in the header `Host`.
"""

import ipaddress
import re

ANY = "*"
# A name, an IPv4 address or an IPv6 address in brackets; perhaps a port.
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:\[\]/@]+)(?::\d*)?", re.IGNORECASE)


class Hosts:
    """Which hosts may be asked for.

    Args:
        allowed: names; `*.example.org` stands for all below it, `*` for any.
        near: whether IP addresses, names without a dot and no name at all will do too: no page of the internet has one.
    """

    def __init__(self, allowed: tuple[str, ...], near: bool) -> None:
        self._names = frozenset(name.lower().removesuffix(".") for name in allowed)
        self._any = ANY in self._names
        self._endings = tuple(name.removeprefix(ANY) for name in self._names if name.startswith("*."))
        self._near = near

    def allow(self, host: str) -> bool:
        """Whether a value of the header `Host` is a name of this service."""
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
