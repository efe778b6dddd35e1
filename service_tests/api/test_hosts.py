from app.api.access import Hosts
from service_tests.cases import each

LOCAL = Hosts(("box.example",), near=True)


@each(
    "host",
    [
        *("localhost", "LOCALHOST:8000", "localhost.", "localhost:", "127.0.0.1", "127.0.0.1:8000", "[::1]"),
        *("[::1]:8000", "192.168.1.7:80", "[fe80::1]:8000", "0.0.0.0:1", "api:8000", "", "box.example:80"),
    ],
)
def test_without_keys_near_names_and_addresses_are_answered(host: str) -> None:
    assert LOCAL.allow(host)


@each(
    "host",
    [
        *(
            "evil.example",
            "evil.example.",
            "EVIL.example",
            "evil.example:8000",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
        ),
        *("evil.example/localhost", "localhost@evil.example", "localhost:8000:80", "localhost:http", "[::1"),
        *(
            "[evil.example]",
            "localhost evil.example",
            "127.0.0.1,evil.example",
            "0x7f.1",
            "127.1",
            "[::1].evil.example",
        ),
        *("localhost.example\x00", " ", ":80", "[", "[]", "box.example.evil.example"),
    ],
)
def test_a_name_that_leads_here_is_not(host: str) -> None:
    assert not LOCAL.allow(host)


def test_a_list_is_all_there_is() -> None:
    hosts = Hosts(("Bochner.example.org", "*.inside.example"), near=False)
    for host in ("bochner.example.org", "BOCHNER.example.org:443", "a.inside.example", "a.b.inside.example:80"):
        assert hosts.allow(host)
    for host in (
        "example.org",
        "inside.example",
        "notinside.example",
        "x.bochner.example.org",
        "127.0.0.1",
        "localhost",
        "",
    ):
        assert not hosts.allow(host)
