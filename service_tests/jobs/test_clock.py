"""A store whose clock is set back, or forward, while jobs are at work."""

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.store.connection import connect
from service_tests.jobs.site import Site
from service_tests.power.disk import compiled
from service_tests.servers import EVERY_WRITE, valkey

SOURCE = Path(__file__).parent / "clock.c"


@pytest.mark.skipif(sys.platform != "linux", reason="libraries are preloaded in this way on Linux only")
@pytest.mark.nightly
@pytest.mark.parametrize("seconds", [-3600, 3600], ids=["back", "forward"])
def test_a_job_whose_worker_dies_goes_on_though_the_clock_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    shift = tmp_path / "shift"
    shift.write_text("0")
    with ExitStack() as opened:
        with monkeypatch.context() as clock:
            clock.setenv("LD_PRELOAD", str(compiled(SOURCE, tmp_path)))
            clock.setenv("CLOCK_SHIFT", str(shift))
            url = opened.enter_context(valkey(tmp_path, *EVERY_WRITE))
        client = opened.enter_context(connect(url, 5))
        site = Site(url, client)
        opened.callback(site.clean)
        job, before = site.walk(2), int(client.time()[0])
        site.attempt(job)  # of a worker that is never heard of again
        shift.write_text(str(seconds))
        assert abs(int(client.time()[0]) - before - seconds) < 600
        site.start()
        assert site.ended(job).state == "succeeded"
