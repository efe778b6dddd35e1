import json

import numpy as np

from app.store.manifest import ArrayEntry
from app.store.maps import digest

SPEC = json.dumps({"seed": 1, "s": 2})
ARRAYS = {"frequencies": ArrayEntry.of(np.arange(6.0).reshape(3, 2))}


def test_a_digest_hangs_on_spec_arrays_and_parameter_stream() -> None:
    other = {"frequencies": ArrayEntry.of(np.arange(6.0).reshape(2, 3))}
    digests = {
        digest(SPEC, ARRAYS, None),
        digest(SPEC, other, None),
        digest(SPEC, {}, None),
        digest(SPEC, {}, 1),
        digest(SPEC, {}, 2),
        digest(json.dumps({"seed": 2, "s": 2}), {}, 1),
    }
    assert len(digests) == 6


def test_a_digest_hangs_on_no_order_of_members() -> None:
    assert digest(json.dumps({"s": 2, "seed": 1}), ARRAYS, None) == digest(SPEC, ARRAYS, None)
