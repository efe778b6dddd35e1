"""How many processors a process takes for its own: those it may run on, and no more than its control groups grant."""

import os
from pathlib import Path

import pytest

from app.processors import available
from service_tests.cases import each

MANY = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
V1 = "4:cpu,cpuacct:{group}\n3:memory:/other\n"
V2 = "0::{group}\n"


def machine(root: Path, cgroup: str, files: dict[str, str]) -> Path:
    """A directory that looks like a machine whose process is in a control group."""
    for name, text in {"proc/self/cgroup": cgroup, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@each(("quota", "wanted"), [("50000 100000", 1), ("100000 100000", 1), ("max 100000", MANY), ("99900000 100000", MANY)])
@each("group", ["/", "/system.slice/bochner.service", "/docker/named-by-the-host"])
def test_a_quota_of_version_2(quota: str, wanted: int, group: str, tmp_path: Path) -> None:
    # A container sees its own group at the top; a service of the machine its own below it.
    at = "" if "docker" in group else group.strip("/") + "/"
    assert available(machine(tmp_path, V2.format(group=group), {f"sys/fs/cgroup/{at}cpu.max": quota})) == wanted


@each(("quota", "wanted"), [("50000\n", 1), ("-1\n", MANY)])
def test_a_quota_of_version_1(quota: str, wanted: int, tmp_path: Path) -> None:
    files = {"cpu.cfs_quota_us": quota, "cpu.cfs_period_us": "100000\n"}
    files = {f"sys/fs/cgroup/cpu/{name}": text for name, text in files.items()}
    assert available(machine(tmp_path, V1.format(group="/"), files)) == wanted


def test_the_tightest_group_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    files = {"a/b/cpu.max": "800000 100000", "a/cpu.max": "300000 100000", "cpu.max": "max 100000"}
    root = machine(tmp_path, V2.format(group="/a/b"), {f"sys/fs/cgroup/{name}": text for name, text in files.items()})
    assert available(root) == 3
