"""The faults to be planted fit the code as it is."""

import pytest

from service_tests.planted import FAULTS, ROOT


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_changes_one_place(name: str) -> None:
    fault = FAULTS[name]
    assert (ROOT / fault.path).read_text().count(fault.right) == 1
    for tests in fault.tests.split():
        assert (ROOT / tests).exists()
