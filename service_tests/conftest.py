"""The service and the store that the tests share: real ones, started here."""

import gc
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from itertools import count
from typing import Any

import httpx
import pytest
import redis
from filelock import FileLock

from service_tests.checks import keys, put
from service_tests.jobs.site import PROGRAM
from service_tests.running import Running, compiler_bytes, service, start, stop
from service_tests.servers import EVERY_WRITE, valkey

# Hundreds of processes import the same sources: they are compiled once, also where Python is told to keep nothing.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Nothing of the thousands of tests that are found is garbage: it is sought once all are there, and not among them.
gc.disable()

_numbers = count()
AT_ONCE = ("--max-request-seconds", "0")
"""Options of a service that hands work over to jobs as soon as it can."""


MOST_SECONDS = {"nightly": 3600, "gate": 600}
"""How long a test of a tier may take; one that is of both is nightly. Quick ones have the time of pyproject.toml."""
TAKE_MINUTES = ("test_worst_requests.py", "test_image.py", "test_soak.py", "test_elsewhere.py", "test_benchmarks.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take minutes run first, then tests that start processes and wait: at the end they would run alone."""
    for item in items:
        tier = next(filter(item.get_closest_marker, MOST_SECONDS), None)
        if tier is not None:
            item.add_marker(pytest.mark.timeout(MOST_SECONDS[tier]))
    items.sort(key=lambda item: (item.path.name not in TAKE_MINUTES, "core" in item.path.parts))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a gate test that is skipped, as a program or a package is missing, counts as failed."""
    report = yield
    if report.skipped and "CI" in os.environ and item.get_closest_marker("gate"):
        report.outcome = "failed"
    return report


@pytest.fixture(scope="session", autouse=True)
def _compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Loops are compiled by the first of the processes side by side; the others wait, and find them on disk."""
    if hasattr(request.config, "workerinput"):
        from app.services.warm_up import warm_up  # a process alone, of tests of other things, need not wait for it

        with FileLock(tmp_path_factory.getbasetemp().parent / "compiling"):
            warm_up()


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One service on its embedded store, shared by all tests that do not kill it."""
    with service(
        tmp_path_factory.mktemp("service") / "data", "--max-body-bytes", "2000000", "--job-workers", "1"
    ) as shared:
        yield shared
        if sys.platform == "linux":  # elsewhere a process does not say what its memory holds
            assert compiler_bytes(shared.process.pid) < 1 << 20, "a request had to wait for a compiler"


@pytest.fixture(scope="session")
def http(running: Running) -> Iterator[httpx.Client]:
    """A client of the shared service. It waits, so that no answer hangs on how busy the machine is."""
    with running.client(Prefer="wait=30") as client:
        yield client


@pytest.fixture(scope="session")
def store(running: Running) -> Iterator[redis.Redis]:
    """A client of the shared service's store."""
    client = redis.Redis.from_url(running.socket)
    yield client
    client.close()


@pytest.fixture(scope="session")
def store_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A store for all tests that want one without a service and leave it running. Whoever takes it empties it first."""
    with valkey(tmp_path_factory.mktemp("store"), *EVERY_WRITE) as url:
        yield url


@pytest.fixture(scope="session")
def jobs_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service whose Monte Carlo takes long and gets no time in its request, with a worker of the same mind."""
    home = tmp_path_factory.mktemp("jobs")
    running = start(home / "data", "--max-queued-jobs", "3", "--max-requests", "4", *AT_ONCE, program=PROGRAM)
    with (home / "worker.log").open("wb") as log:
        worker = subprocess.Popen([sys.executable, "-m", PROGRAM, "worker", "--redis-url", running.socket], stderr=log)
    try:
        yield running
        # Without it tests wait in vain; those that end processes may be to blame, or what the worker says at its end.
        assert worker.poll() is None, (worker.returncode, (home / "worker.log").read_text())
    finally:
        worker.terminate()
        worker.wait(30)
        stop(running)


@pytest.fixture
def name() -> str:
    """A map name that no other test uses."""
    return f"map-{next(_numbers)}"


@pytest.fixture
def gaussian() -> dict[str, Any]:
    """A small valid spec."""
    return {
        "input_dim": 3,
        "kernel": {"kind": "gaussian", "length_scale": 1.5},
        "sampler": {"kind": "sobol"},
        "s": 16,
        "seed": 7,
    }


@pytest.fixture
def gmm() -> dict[str, Any]:
    """A small valid spec of a hashing map."""
    return {"input_dim": 3, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 16, "seed": 7}


@pytest.fixture(scope="session")
def standing(http: httpx.Client) -> dict[str, str]:
    """Names of maps of input_dim 3 that tests may use but not change: one for each form, and two that hash."""
    kernel, sampler = {"kind": "gaussian", "length_scale": 1.5}, {"kind": "sobol"}
    specs: dict[str, dict[str, Any]] = {
        "cos_sin": {"kernel": kernel, "sampler": sampler},
        "phase": {"kernel": kernel, "sampler": sampler, "form": "phase"},
        "complex": {"kernel": kernel, "sampler": sampler, "form": "complex"},
        "complex64": {"kernel": kernel, "sampler": sampler, "form": "complex", "dtype": "float64"},
        "float64": {"kernel": kernel, "sampler": sampler, "dtype": "float64"},
        "normalized": {"kernel": kernel, "sampler": sampler, "form": "phase", "normalize": True},
        "gmm": {"kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}},
        "centered": {"kernel": {"kind": "gmm", "p": 2.0, "center": [1, 0, 0]}, "sampler": {"kind": "gcws"}},
    }
    specs |= {"wide": {**specs["cos_sin"], "s": 4096}, "wide-gmm": {**specs["gmm"], "s": 4096}}
    for title, spec in specs.items():
        assert put(http, f"standing-{title}", {"input_dim": 3, "s": 16, "seed": 7, **spec}).status_code == 201
    return {title: f"standing-{title}" for title in specs}


@pytest.fixture
def nothing_stored(standing: dict[str, str], store: redis.Redis) -> Iterator[None]:
    """Fails the test if it leaves a key in the store or takes one away."""
    del standing
    before = keys(store)
    # Those of other tests may still end.
    jobs = {key.partition(b"}")[0] for key in before if b"{job:" in key}
    yield
    assert not [key for key in keys(store) ^ before if key.partition(b"}")[0] not in jobs]
