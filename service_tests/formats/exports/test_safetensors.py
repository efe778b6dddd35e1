import json

import numpy as np
import pytest

from service_tests.core.combinations import Fields
from service_tests.core.specs import spec
from service_tests.formats.exports.taken import DIGEST, taken, written

MAPS: list[Fields] = [
    {"form": "phase", "s": 7, "input": {"center": [1, 2, 3, 4], "scale": 2.0}},
    {"input_dim": 9, "sampler": {"kind": "structured_orthogonal"}, "dtype": "float64"},
    {"sampler": {"kind": "sparse_grid", "level": 2}, "s": None},
    {"sampler": {"kind": "uploaded_landmarks", "landmarks": [[1, 2, 3, 4], [0, 0, 1, 0]]}},
    {"kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}},
]


@pytest.mark.parametrize("members", MAPS, ids=str)
def test_numbers_are_aligned_and_metadata_is_text(members: Fields) -> None:
    content = written(taken(spec(**members))[0], "safetensors")
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    told = header.pop("__metadata__")
    assert told["digest"] == DIGEST
    assert told.get("parameter_stream") == ("1" if "gcws" in str(members) else None)
    assert length % 8 == 0
    ends = [0]
    for entry in header.values():
        start, end = entry["data_offsets"]
        assert start == ends[-1]
        assert start % (int(entry["dtype"][1:]) // 8) == 0
        ends.append(end)
    assert len(content) == 8 + length + ends[-1]


@pytest.mark.nightly
@pytest.mark.parametrize("members", MAPS, ids=str)
def test_the_published_reader_has_every_array(members: Fields) -> None:
    from safetensors.numpy import load

    away, _ = taken(spec(**members))
    content = written(away, "safetensors")
    found = load(content)
    assert found.keys() == away.arrays.keys()
    for name, array in away.arrays.items():
        assert isinstance(array, np.ndarray)
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
