"""What users wait for, beside what they would run instead: each peer in a process of its own, as it is installed."""

import http.client
import platform
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from benchmarks.clients import Post, answers_a_second, bare_service, clients, posting, service, transform
from benchmarks.contender import NARROW, NYSTROEM, PLAIN, PRODUCT, RBF, Contender
from benchmarks.timing import LIBRARY_REST, TIMES, Plan, Report, Times, in_turns, timed
from benchmarks.transform import PHASE, STRUCTURED, Size, measured

TITLE = "Peers"
LIVE, ONE, RECORD, BATCH = "GET /health/live", "one vector 128 → 1,024, .npy", "record of a map", "1,000 × 128 → 1,024"
LANDMARKS = "landmarks 4,000 × 64 → 512"
# By figure: what ours takes at most, of the peer.
OF_PEER = {LIVE: 1.5, ONE: 1.4, BATCH: 1.5, LANDMARKS: 1.1}
# Of a transform, by dimension and dtype: the most of P, and how many times the speed of RBFSampler at least.
OF_P = {(784, "float32"): (1.0, 0.15), (784, "float64"): (1.05, 0.15)}
FASTER = {(16, "float32"): 3, (16, "float64"): 12, (128, "float32"): 2.5, (128, "float64"): 6}
SIZES = (
    Size(4096, 784, 4096, (PRODUCT, PHASE, STRUCTURED, RBF)),
    Size(2000, 16, 1024, (PRODUCT, PHASE, RBF)),
    Size(1000, 128, 1024, (PRODUCT, PHASE, RBF)),
)
TINY = (Size(20, 16, 64, (PRODUCT, PHASE, RBF)),)


def vector_width() -> str:
    """The widest vectors of this processor that NumPy and the loops use."""
    told = Path("/proc/cpuinfo")
    flags = told.read_text() if told.exists() else platform.machine()
    return next((name for name in ("avx512f", "avx2", "asimd") if name in flags), "no wide vectors")


def got(address: str, path: str) -> Callable[[], float]:
    """A request without a body, over a connection of its own."""
    line = http.client.HTTPConnection(address)

    def call() -> None:
        line.request("GET", path)
        line.getresponse().read()

    return timed(call)


def over_http(report: Report, plan: Plan) -> None:
    """Requests beside those to the bare service, and beside the same work in process."""
    one, many, by_landmarks = transform("bench", 1, 128), transform("bench", 1000, 128), transform("near", 4000, 64)
    with ExitStack() as stack:
        ours, bare = stack.enter_context(service())[0], stack.enter_context(bare_service())
        peers: dict[str, tuple[str, Callable[[], float]]] = {
            LIVE: ("Starlette", got(bare, "/health/live")),
            ONE: ("Starlette", timed(posting(bare, Post("/transform", one.body)))),
            BATCH: (PLAIN, stack.enter_context(closing(Contender(PLAIN, 1000, 128, 512)))),
            LANDMARKS: (NYSTROEM, stack.enter_context(closing(Contender(NYSTROEM, 4000, 64, 512)))),
        }
        calls = {f"{name}, {peer}": call for name, (peer, call) in peers.items()}
        calls |= {LIVE: got(ours, "/health/live"), RECORD: got(ours, "/v1/maps/bench")}
        calls |= {ONE: timed(posting(ours, one)), BATCH: timed(posting(ours, many))}
        calls |= {LANDMARKS: timed(posting(ours, by_landmarks))}
        found = in_turns(calls, plan.seconds(20), LIBRARY_REST)
        (times,) = clients(ours, plan.seconds(3) or 0.3, (one, 16))
    report.table(("what", *TIMES), ((name, *times.cells()) for name, times in found.items()))
    for name, (peer, _) in peers.items():
        _at_most(report, f"{name}: of {peer}", found[name].over(found[f"{name}, {peer}"]), OF_PEER[name])
    _at_most(report, f"{RECORD}: of {LIVE}", found[RECORD].over(found[LIVE]), 2)
    report.say(f"16 clients, one vector each: {answers_a_second(times, 16):,.0f} answers a second.")


def run(report: Report, plan: Plan) -> None:
    """Write the tables."""
    width = vector_width()
    report.say(f"Vectors: {width}. P is NumPy's product of rows and frequencies, on all cores.")
    over_http(report, plan)
    products(report, plan, width)
    if width == "avx512f":
        products(report, plan, "avx2", **NARROW)


def products(report: Report, plan: Plan, width: str, **variables: str) -> None:
    """Transforms in process, with these variables set for ours and for the peers."""
    for size in TINY if plan.tiny else SIZES:
        for dtype in size.dtypes:
            found, told = measured(size, dtype, plan, **variables), f"{size.told}, {dtype}, {width}"
            report.say(f"\n{told}:")
            report.table(("what", *TIMES), ((name, *times.cells()) for name, times in found.items()))
            for name, limit in zip((PHASE, STRUCTURED), OF_P.get((size.d, dtype), ()), strict=False):
                _at_most(report, f"{told}, {name}: of P", found[name].over(found[PRODUCT]), limit)
            if least := FASTER.get((size.d, dtype)):
                ratio = found[RBF].over(found[PHASE])
                report.at_least(f"{told}, {PHASE}: times the speed of {RBF}", ratio.median, least, ratio.spread())


def _at_most(report: Report, figure: str, ratio: Times, limit: float) -> None:
    report.at_most(figure, ratio.median, limit, ratio.spread())
