import re

import pytest

from app.store.connection import parse_address
from service_tests.cases import each


def test_a_cluster_is_named_by_some_of_its_nodes() -> None:
    at = parse_address("rediss+cluster://me:se%40cret@a.example:7000, b.example,[::1]:7002/0?socket_keepalive=yes")
    assert (at.kind, at.tls, at.nodes) == ("cluster", True, (("a.example", 7000), ("b.example", 6379), ("::1", 7002)))
    assert dict(at.options) == {"username": "me", "password": "se@cret", "socket_keepalive": True}
    assert parse_address("redis+cluster://a").options == {}


def test_sentinels_are_named_with_the_service_that_they_know_and_have_a_password_of_their_own() -> None:
    at = parse_address("redis+sentinel://:secret@a,b:1/main/3?sentinel_password=other&sentinel_username=guard")
    assert (at.kind, at.tls, at.nodes, at.service) == ("sentinel", False, (("a", 26379), ("b", 1)), "main")
    assert dict(at.options) == {"password": "secret", "db": 3}
    assert dict(at.of_sentinels) == {"password": "other", "username": "guard"}
    assert "db" not in parse_address("redis+sentinel://a/main").options


@each(
    ("url", "words"),
    [
        ("redis://localhost/main", "'/main'"),
        ("redis+cluster://a/1", "a cluster has no databases but 0"),
        ("redis+cluster:///0", "names no host"),
        ("redis+cluster://a:x", "Port"),
        ("redis+sentinel://a,b", "names no service"),
        ("redis+sentinel://a/main/x", "'x'"),
        ("redis+sentinels://a/main", "known are redis, rediss, unix, redis+cluster"),
        ("unix+cluster:///a", "begins with 'unix+cluster'"),
        ("rediss+cluster://a?ssl_ca_certs=/nowhere.pem", "/nowhere.pem is no file"),
    ],
)
def test_an_address_that_would_be_guessed_at_is_refused(url: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_address(url)
