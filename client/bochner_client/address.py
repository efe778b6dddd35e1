"""Where the service is, and the key to ask it with: as given, else as the environment says."""

import os
import re
from pathlib import Path

URL, KEY, KEY_FILE = "BOCHNER_URL", "BOCHNER_KEY", "BOCHNER_KEY_FILE"
_DEFAULT_URL = "http://127.0.0.1:8000"


def url_of(given: str | None) -> str:
    """The address of the service.

    Raises:
        ValueError: it is none of HTTP or HTTPS.
    """
    url = given or os.environ.get(URL) or _DEFAULT_URL
    if not re.match(r"https?://[^/]", url):
        raise ValueError(f"url {url!r} came; http:// or https:// and a host are wanted")
    return url


def key_of(given: str | None) -> str | None:
    """The key; None if there is none.

    Raises:
        ValueError: it has characters that no key has, or its file cannot be read.
    """
    key = given or os.environ.get(KEY)
    if not key and (path := os.environ.get(KEY_FILE)):
        try:
            key = Path(path).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{KEY_FILE}: {path} cannot be read: {error}") from error
    if key and not re.fullmatch("[!-~]+", key):
        raise ValueError("the key has characters that no key has")  # which are not shown: it may be one
    return key or None
