"""Maps of another version of the hash stream."""

import json
from collections.abc import Callable
from typing import Any, cast

import pytest
import redis

from app.core.progress import Progress
from app.core.spec import MapSpec
from app.store.errors import NewerVersion, StoreDamaged
from app.store.manifest import ArrayEntry
from app.store.map_manifest import digest
from service_tests.services.conftest import Service

GAUSSIAN = MapSpec.model_validate(
    {"input_dim": 3, "kernel": {"kind": "gaussian", "length_scale": 1.5}, "sampler": {"kind": "halton"}, "s": 5}
)
GMM = MapSpec.model_validate({"input_dim": 3, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 5})


def resealed(manifest: dict[str, Any], spec: MapSpec = GMM) -> dict[str, Any]:
    """With the digest of what it says now, as another version of the service would have written it."""
    arrays = {name: ArrayEntry.model_validate(entry) for name, entry in manifest.get("arrays", {}).items()}
    return manifest | {"digest": digest(spec.canonical(), arrays, manifest.get("parameter_stream"))}


def without_stream(manifest: dict[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in manifest.items() if field != "parameter_stream"}


@pytest.mark.parametrize(
    ("change", "error", "complaint"),
    [
        (lambda manifest: manifest | {"parameter_stream": 2}, StoreDamaged, "digest"),
        (without_stream, StoreDamaged, "digest"),
        (
            lambda manifest: resealed(manifest | {"parameter_stream": 2}),
            NewerVersion,
            "newer version of the service, with parameter stream 2; this version knows 1",
        ),
        (lambda manifest: resealed(manifest | {"parameter_stream": 0}), StoreDamaged, "parameter stream 0"),
        (lambda manifest: resealed(without_stream(manifest)), StoreDamaged, "parameter stream None"),
    ],
    ids=["changed", "taken away", "of a newer version", "of no version", "of a version without"],
)
def test_a_map_of_another_parameter_stream_gives_no_codes(
    service: Callable[..., Service],
    client: redis.Redis,
    change: Callable[[Any], Any],
    error: type[Exception],
    complaint: str,
) -> None:
    service().create("m", GMM, Progress())
    service().create("n", GMM, Progress())
    key = "bochner:{map:m}:manifest"
    client.set(key, json.dumps(change(json.loads(cast(bytes, client.get(key))))))
    with pytest.raises(error, match=complaint):
        service().ready("m")
    listed = json.loads(service().list("", None, 10))["maps"]
    assert [one["name"] for one in listed] == ["m", "n"], "its record can be read all the same"
    service().delete("m")
    assert service().create("m", GMM, Progress())[1]
