"""What HTTP adds to batches and single vectors, what large requests do to small ones, and a large answer."""

import http.client
from collections.abc import Callable
from contextlib import ExitStack, closing

import httpx
import psutil

from benchmarks.clients import (
    Post,
    answers_a_second,
    as_json,
    clients,
    obvious_service,
    posting,
    ready_answer,
    service,
    transform,
)
from benchmarks.contender import PLAIN, Contender
from benchmarks.timing import LATE, LIBRARY_REST, TIMES, Peak, Plan, Report, Times, in_turns, timed

TITLE = "HTTP"
BY_HTTP_CLIENT, BY_HTTPX = ".npy, http.client", ".npy, httpx"
READY = "an answer that is there"
TRANSFORM = "/v1/maps/bench/transform"
# By client: the most parts of what plain NumPy takes.
OF_PLAIN = {BY_HTTP_CLIENT: 1.8, BY_HTTPX: 3.0}


def by_httpx(client: httpx.Client, post: Post) -> Callable[[], float]:
    """A request by httpx."""
    headers = {"Content-Type": post.content_type}
    return timed(lambda: client.post(post.path, content=post.body, headers=headers).raise_for_status())


def empty(address: str) -> Callable[[], float]:
    """A request that is answered with next to nothing."""
    line = http.client.HTTPConnection(address)

    def call() -> None:
        line.request("GET", "/health/live")
        line.getresponse().read()

    return timed(call)


def batches(report: Report, plan: Plan, address: str, obvious: str) -> None:
    """A batch over one connection."""
    with ExitStack() as stack:
        client = stack.enter_context(httpx.Client(base_url=f"http://{address}"))
        binary, text = transform("bench", 1000, 128), as_json(TRANSFORM, 1000, 128)
        ready = stack.enter_context(ready_answer(len(posting(address, binary)())))
        to_ready = stack.enter_context(httpx.Client(base_url=f"http://{ready}"))
        calls: dict[str, Callable[[], float]] = {
            PLAIN: stack.enter_context(closing(Contender(PLAIN, 1000, 128, 512))),
            BY_HTTP_CLIENT: timed(posting(address, binary)),
            BY_HTTPX: by_httpx(client, binary),
            f"{READY}, http.client": timed(posting(ready, binary)),
            f"{READY}, httpx": by_httpx(to_ready, binary),
        }
        in_json = {
            "JSON, http.client": timed(posting(address, text)),
            "the obvious service, JSON, http.client": timed(posting(obvious, as_json("/transform", 1000, 128))),
        }
        found = in_turns(calls, plan.seconds(12), LIBRARY_REST)
        slow = in_turns(in_json, plan.seconds(6), LIBRARY_REST)
    report.say(
        "1,000 vectors of 128 numbers to 1,024 float32 features over loopback, one connection, beside the same by "
        "NumPy in process. The obvious service is a pickled RBFSampler behind a pydantic model, in "
        "`benchmarks/obvious_service.py`. What is there already are as many bytes, answered by a bare ASGI application "
        "(`benchmarks/ready_answer.py`): no service can be faster with this server and these clients."
    )
    ratios = {name: times.over(found[PLAIN]) for name, times in found.items()}
    table = [(name, *times.cells(), ratios[name].spread()) for name, times in found.items()]
    plain = found[PLAIN].median
    table += [(name, *times.cells(), Times(times.values / plain).spread()) for name, times in slow.items()]
    report.table(("client", *TIMES, "of plain"), table)
    for name, limit in OF_PLAIN.items():
        figure = f"1,000 × 128 → 1,024 over HTTP, {name}, of plain NumPy"
        report.at_most(figure, ratios[name].median, limit, ratios[name].spread())


def singles(report: Report, plan: Plan, address: str, obvious: str) -> None:
    """One vector over one connection."""
    with httpx.Client(base_url=f"http://{address}") as client:
        one = transform("bench", 1, 128)
        calls = {
            "an empty route, http.client": empty(address),
            BY_HTTP_CLIENT: timed(posting(address, one)),
            BY_HTTPX: by_httpx(client, one),
            "JSON, http.client": timed(posting(address, as_json(TRANSFORM, 1, 128))),
            "the obvious service, JSON, http.client": timed(posting(obvious, as_json("/transform", 1, 128))),
        }
        found = in_turns(calls, plan.seconds(10), every=True)
    report.say("One vector, one connection:")
    report.table(("client", *LATE), ((name, *times.late()) for name, times in found.items()))
    middle, _, late = found[BY_HTTP_CLIENT].late()
    report.at_most("one vector, http.client, median", 1e3 * found[BY_HTTP_CLIENT].median, 0.75, middle, " ms")
    report.at_most("one vector, http.client, 99 %", 1e3 * found[BY_HTTP_CLIENT].at(99), 1.5, late, " ms")


def beside_large_ones(report: Report, plan: Plan, address: str) -> None:
    """One small request at a time while others transform large ones."""
    small, large = (transform("bench", 1, 128), 1), (transform("large", 2000, 512), 1)
    seconds, table = plan.seconds(3) or 0.3, []
    for others in (0, 1, 2, 4):
        times, *of_large = clients(address, seconds, small, *[large] * others)
        rate = sum(answers_a_second(one, 1) for one in of_large)
        table.append((str(others), *times.late(), f"{rate:.1f}"))
        if others:
            figure = f"one vector beside {others} × (2,000 × 512 → 4,096), 99 %"
            report.at_most(figure, 1e3 * times.at(99), 15, times.late()[2], " ms")
    report.say("One vector, one connection, while other clients transform 2,000 rows of 512 to 4,096 columns:")
    report.table(("large clients", *LATE, "large answers a second"), table)


def large_answer(report: Report, plan: Plan, address: str, process: psutil.Process) -> None:
    """The time and the most memory of an answer of a gigabyte, by a service that has done nothing but small things."""
    posting(address, transform("long", 1, 8))()
    n = 20_000 if plan.tiny else 250_000
    post = transform("long", n, 8)
    line = http.client.HTTPConnection(address)
    length = 0

    def read() -> None:
        nonlocal length
        line.request("POST", post.path, post.body, {"Content-Type": post.content_type})
        answer = line.getresponse()
        while piece := answer.read(1 << 20):
            length += len(piece)

    with Peak(process) as peak:
        seconds = timed(read)()
    above = (peak.bytes - peak.before) / 1e6
    report.say(f"{n:,} × 8 → 1,024, {length / 1e9:.2f} GB, streamed in {seconds:.2f} s: {above:.0f} MB above idle.")
    report.at_most(f"peak memory of a streamed answer of {length / 1e9:.1f} GB", above, 64, f"{above:.0f} MB", " MB")


def run(report: Report, plan: Plan) -> None:
    """Write the tables."""
    with service() as (address, _), obvious_service() as obvious:
        batches(report, plan, address, obvious)
        singles(report, plan, address, obvious)
        beside_large_ones(report, plan, address)
    with service() as (address, process):
        large_answer(report, plan, address, process)
