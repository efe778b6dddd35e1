from pathlib import Path

import pytest

from bochner_client import Client
from bochner_client.address import key_of, url_of


def test_what_is_given_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("BOCHNER_URL", "BOCHNER_KEY", "BOCHNER_KEY_FILE"):
        monkeypatch.delenv(variable, raising=False)
    assert (url_of(None), key_of(None)) == ("http://127.0.0.1:8000", None)
    (tmp_path / "key").write_text("from-a-file\n")
    monkeypatch.setenv("BOCHNER_URL", "https://example.org/maps")
    monkeypatch.setenv("BOCHNER_KEY_FILE", str(tmp_path / "key"))
    assert (url_of(None), key_of(None)) == ("https://example.org/maps", "from-a-file")
    monkeypatch.setenv("BOCHNER_KEY", "from-a-variable")
    assert (url_of("http://other"), key_of(None), key_of("given")) == ("http://other", "from-a-variable", "given")


def test_what_is_no_address_or_key_is_refused_and_no_key_is_shown() -> None:
    for url in ("localhost:8000", "ftp://example.org", "http://"):
        with pytest.raises(ValueError, match=r"http:// or https://"):
            Client(url)
    for key in ("bäd", "line\nbreak"):
        with pytest.raises(ValueError, match="no key has") as refused:
            Client(key=key)
        assert key not in str(refused.value)
