import json

import numpy as np

from app.store.manifest import ArrayEntry
from app.store.map_manifest import MapManifest, digest
from app.store.reservations import State

SPEC = json.dumps({"seed": 1, "s": 2})
ARRAYS = {"frequencies": ArrayEntry.of(np.arange(6.0).reshape(3, 2))}


def test_maps_of_the_time_before_datasets_are_read() -> None:
    """A manifest as the code of that time wrote it."""
    stored = (
        '{"schema_version":1,"token":"0000000000000000","name":"m","spec":"{\\"seed\\": 1, \\"s\\": 2}","arrays":'
        '{"frequencies":{"dtype":"float64","shape":[3,2],"sha256":'
        '"84a6e8b7afdd286a48ab0aab2c72227fff91a935b0489e633018914bd01693cd"}},'
        '"digest":"sha256:87fec1095758238a92c39aa0ab76ac76e4e21c10b4057aa95e2cdff5c4d9f141","n_frequencies":3,'
        '"n_output":6,"created_at":"2026-11-21T11:45:57Z","generator":{"bochner":"0.1.0"},"parameter_stream":null,'
        '"warnings":["w"]}'
    )
    manifest = MapManifest.parse(stored.encode())
    assert manifest.digest == digest(SPEC, ARRAYS, None)
    assert (manifest.spec, manifest.state) == (SPEC, State.ready)
    assert digest(SPEC, {}, 1) == "sha256:46a2e30fce17a55d54b1293bb599cd995919229ab728bd402eaac334d1a6406d"
