"""Latency and answers a second by the number of clients, with one process and two, beside the obvious service."""

from contextlib import ExitStack

from benchmarks.clients import Post, answers_a_second, as_json, clients, obvious_service, service, transform
from benchmarks.timing import LATE, Plan, Report, Times

TITLE = "Many clients"
CLIENTS = (1, 2, 4, 8, 16, 64)
ROUNDS = 5


def run(report: Report, plan: Plan) -> None:
    """Write the tables."""
    with ExitStack() as stack:
        told = {1: "one process", 2: "two processes"}
        ours = {told[n]: stack.enter_context(service(n))[0] for n in told}
        theirs = {f"obvious service, {told[n]}": stack.enter_context(obvious_service(n)) for n in told}
        singles(report, plan, ours, theirs)
        batches(report, plan, ours, theirs)


def singles(report: Report, plan: Plan, ours: dict[str, str], theirs: dict[str, str]) -> None:
    """Single vectors."""
    ask = dict.fromkeys(ours, transform("bench", 1, 128)) | dict.fromkeys(theirs, as_json("/transform", 1, 128))
    seconds = plan.seconds(1.2) or 0.3
    report.say(
        "Single vectors of 128 numbers to 1,024 features, each client with a connection of its own; all run in one "
        "process on the same cores. Ours in .npy, the obvious service's in JSON."
    )
    report.table(
        ("clients", "service", *LATE, "answers a second"),
        (
            (str(n), name, *times.late(), f"{answers_a_second(times, n):.0f}")
            for n in (CLIENTS[:2] if plan.tiny else CLIENTS)
            for name, address in (ours | theirs).items()
            for times in clients(address, seconds, (ask[name], n))
        ),
    )


def batches(report: Report, plan: Plan, ours: dict[str, str], theirs: dict[str, str]) -> None:
    """Batches of 1,000 from four clients: answers a second, round after round."""
    one, two = _rates(plan, ours, transform("bench", 1000, 128))
    report.say(
        "Batches of 1,000 × 128 → 1,024 from four clients: answers a second, median and quartiles of the rounds."
    )
    ratio = two.over(one)
    rates = dict(zip(ours, (one, two), strict=True))
    rates |= dict(zip(theirs, _rates(plan, theirs, as_json("/transform", 1000, 128), rounds=1), strict=True))
    report.table(("service", "answers a second"), ((name, rate.spread()) for name, rate in rates.items()))
    report.at_least("batches of four clients, two processes, of one", ratio.median, 0.95, ratio.spread())


def _rates(plan: Plan, services: dict[str, str], post: Post, rounds: int = ROUNDS) -> list[Times]:
    """Answers a second of each service in each round."""
    seconds = plan.seconds(1.2) or 0.3
    counts = [
        [
            sum(answers_a_second(one, 1) for one in clients(address, seconds, *[(post, 1)] * 4))
            for address in services.values()
        ]
        for _ in range(1 if plan.tiny else rounds)
    ]
    return [Times(column) for column in zip(*counts, strict=True)]
