"""Address of the service and the key for it, from arguments or else from the environment."""

import os
import re
from pathlib import Path

URL, KEY, KEY_FILE = "BOCHNER_URL", "BOCHNER_KEY", "BOCHNER_KEY_FILE"
_DEFAULT_URL = "http://127.0.0.1:8000"


def url_of(given: str | None) -> str:
    """Return the address of the service: `given`, else `BOCHNER_URL`, else the default.

    Raises:
        ValueError: it is not an HTTP or HTTPS address.
    """
    url = given or os.environ.get(URL) or _DEFAULT_URL
    if not re.match(r"https?://[^/]", url):
        raise ValueError(f"url {url!r} came; http:// or https:// and a host are wanted")
    return url


def key_of(given: str | None) -> str | None:
    """Return the key: `given`, else `BOCHNER_KEY`, else the content of `BOCHNER_KEY_FILE`; None if none is set.

    Raises:
        ValueError: it has characters that are not allowed in keys, or its file cannot be read.
    """
    key = given or os.environ.get(KEY)
    if not key and (path := os.environ.get(KEY_FILE)):
        try:
            key = Path(path).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{KEY_FILE}: {path} cannot be read: {error}") from error
    if key and not re.fullmatch("[!-~]+", key):
        raise ValueError("the key has characters that no key has")  # not shown, as it may be a secret
    return key or None
