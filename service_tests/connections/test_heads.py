import pytest

from service_tests.connections.wire import LIVE, asked
from service_tests.running import Running

MOST_HEAD = 64 << 10


@pytest.mark.parametrize(("excess", "status"), [(0, 200), (1, 431)])
def test_a_head_has_a_limit_to_the_byte(running: Running, excess: int, status: int) -> None:
    filled = sum(map(len, (b"/health/live", b"Host", b"here", b"Connection", b"close", b"X-Long")))
    head = LIVE + b"Connection: close\r\nX-Long: " + b"a" * (MOST_HEAD - filled + excess) + b"\r\n\r\n"
    assert [answer.status_code for answer in asked(running, head)] == [status]


@pytest.mark.parametrize(("fields", "status"), [(256, 200), (257, 431)])
def test_a_head_has_no_more_fields_than_some(running: Running, fields: int, status: int) -> None:
    head = LIVE + b"Connection: close\r\n" + b"X: y\r\n" * (fields - 2) + b"\r\n"
    assert [answer.status_code for answer in asked(running, head)] == [status]


@pytest.mark.parametrize(("count_", "status"), [(100, 422), (101, 414)])
def test_an_address_has_no_more_parameters_than_some(running: Running, count_: int, status: int) -> None:
    address = b"/v1/maps?" + b"&".join([b"a="] * count_)
    (answer,) = asked(running, b"GET " + address + b" HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
    assert answer.status_code == status
