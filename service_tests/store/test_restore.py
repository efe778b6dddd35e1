"""What a backup gives back, and to which stores."""

from pathlib import Path
from unittest.mock import DEFAULT, Mock

import pytest

from app.jobs import scripts
from app.jobs.job_context import JobContext
from app.jobs.record import JobState
from app.store import backup, identity, restore
from app.store.backup import BackupFailed
from app.store.connection import connect
from app.store.identity import StoreReplaced
from app.store.maps import MapStore
from service_tests.jobs.site import Site, read
from service_tests.store.backups import contents, embedded, external, fill
from service_tests.store.new_maps import new


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup."""
    home = tmp_path_factory.mktemp("backup")
    with external(home / "source") as client:
        fill(client)
        backup.back_up(client, home / "file")
    return home / "file"


def test_a_damaged_backup_changes_nothing_and_none_goes_into_a_store_that_is_not_empty(
    tmp_path: Path, written: Path
) -> None:
    data, file = written.read_bytes(), tmp_path / "file"
    half = len(data) // 2
    flipped = data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :]
    with external(tmp_path / "target") as client:
        for damaged in (data[:-9], flipped, b"nothing of the kind", b""):
            file.write_bytes(damaged)
            with pytest.raises(BackupFailed, match=str(file)):
                restore.restore(client, file)
            assert client.dbsize() == 0
        MapStore(client).create(new("mine"))
        before = contents(client)
        with pytest.raises(BackupFailed, match="not empty"):
            restore.restore(client, written)
        assert contents(client) == before


def test_a_value_that_is_not_as_servers_write_it_does_not_end_the_embedded_one(tmp_path: Path) -> None:
    fields = b"\x0d\0\0\0\x02\0\x8fk\x02\x81v\x02\xff"  # says that the first name has 15 bytes
    value = b"\x10\x0abochner:xx" + bytes([len(fields)]) + fields
    (tmp_path / "file").write_bytes(b"REDIS0011" + value + b"\xff" + bytes(8))
    with embedded(tmp_path / "target") as client:
        with pytest.raises(BackupFailed, match="does not take"):
            restore.restore(client, tmp_path / "file")
        assert client.ping()


def test_a_restore_that_was_cut_short_is_known_and_begun_anew(
    tmp_path: Path, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with external(tmp_path / "target") as client, external(tmp_path / "other") as other:
        monkeypatch.setattr(restore, "_BATCH_KEYS", 5)
        monkeypatch.setattr(
            restore, "_carry_out", Mock(wraps=restore._carry_out, side_effect=[DEFAULT, DEFAULT, KeyboardInterrupt])
        )
        with pytest.raises(KeyboardInterrupt):
            restore.restore(client, written)
        with connect("unix://" + client.connection_pool.connection_kwargs["path"], 5) as service:
            with pytest.raises(StoreReplaced, match="being put back"):
                identity.settle(service)
            backup.back_up(client, tmp_path / "half")
            with pytest.raises(BackupFailed, match="not empty"):
                restore.restore(client, tmp_path / "half")  # another one
            monkeypatch.undo()
            restore.restore(client, written)
            identity.settle(service)
        restore.restore(other, written)
        assert contents(client) == contents(other)


def test_jobs_go_on_where_the_backup_is_put(tmp_path: Path, written: Path) -> None:
    """Those that waited are still queued; those that ran are taken back, as if their worker had died."""
    with external(tmp_path / "target") as client:
        restore.restore(client, written)
        site = Site("", client)
        states = [job.state for job in site.jobs.page(None, None, 10).jobs]
        assert sorted(states) == [JobState.queued] * 4 + [JobState.running]
        (running,) = (job.id for job in site.jobs.page(JobState.running, None, 10).jobs)
        site.abandon(site.jobs.fields(running)["message"])  # as three seconds do
        site.queue.tend()
        assert {job.state for job in site.jobs.page(None, None, 10).jobs} == {JobState.queued}
        for _ in range(5):
            message = read(client)
            assert scripts.run(client, "claim", message.job_id, message.id) == b"ok"
            begun = JobContext(client, message.job_id, message.id, site.jobs.fields(message.job_id))
            assert begun.attachment("rows") == bytes(10_000)
