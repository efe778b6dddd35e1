"""The faults to be planted fit the code as it is."""

from service_tests.planted import FAULTS, ROOT


def test_a_fault_changes_one_place() -> None:
    for name, fault in FAULTS.items():
        assert (ROOT / fault.path).read_text().count(fault.right) == 1, name
        assert all((ROOT / tests).exists() for tests in fault.tests.split()), name
