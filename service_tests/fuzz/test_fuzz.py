"""Fuzzed requests, of all calls, formats, heads and keys, broken ones among them: no client can cause a 500."""

from pathlib import Path

import pytest

pytest.importorskip("hypothesis", reason="draws the bodies: pip install hypothesis")

from service_tests.cases import few_and_many
from service_tests.fuzz.run import MiB, attacked, run


@pytest.mark.gate
@pytest.mark.parametrize("with_keys", [True, False])
@pytest.mark.parametrize("count", few_and_many(250, 3000))
def test_no_answer_is_wrong_and_memory_stays(tmp_path: Path, count: int, with_keys: bool) -> None:
    with attacked(tmp_path / "data", with_keys) as found:
        seen, grown = run(found, count, 15)
    assert seen["200"] + seen["201"] + seen["202"] > count / 30
    assert seen["broken"] > count / 20
    assert count < 3000 or grown < 100 * MiB  # at night only: the gate bounds no memory
