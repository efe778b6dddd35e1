from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import numpy as np
import pytest

from bochner_client import (
    ArrayNotFound,
    MapExists,
    MapNotFound,
    NotModified,
    PreconditionFailed,
)
from service_tests.cases import each
from service_tests.client.conftest import Asked


def test_a_map_is_created_looked_at_and_deleted(
    ask: Asked, name: str, gaussian: dict[str, Any], http: httpx.Client
) -> None:
    made = ask.put_map(name, gaussian, ttl=600)
    assert (made.name, made.status, made.n_output) == (name, "ready", 32)
    assert made.expires_at - made.created_at == timedelta(minutes=10)
    assert abs(made.created_at - datetime.now(UTC)) < timedelta(minutes=5)
    assert ask.get_map(name) == made
    assert ask.get_map(name).document == http.get(f"/v1/maps/{name}").json()
    with pytest.raises(NotModified):
        ask.get_map(name, if_none_match=made.digest)
    assert ask.export_map(name, "npz") == http.get(f"/v1/maps/{name}/export?format=npz").content
    assert ask.delete_map(name) is None
    with pytest.raises(MapNotFound) as refused:
        ask.get_map(name)
    assert refused.value.status == 404
    assert name in str(refused.value)


def test_a_map_is_changed_only_as_it_is_meant(ask: Asked, name: str, gaussian: dict[str, Any]) -> None:
    digest = ask.put_map(name, gaussian, only_new=True).digest
    with pytest.raises(PreconditionFailed):
        ask.put_map(name, gaussian, only_new=True)
    with pytest.raises(MapExists):
        ask.put_map(name, {**gaussian, "seed": 8})
    assert ask.put_map(name, gaussian, if_match=digest).digest == digest
    with pytest.raises(PreconditionFailed):
        ask.delete_map(name, if_match="sha256:0")
    ask.delete_map(name, if_match=digest)


def test_a_map_is_tried_before_it_is_made(ask: Asked, name: str, gaussian: dict[str, Any]) -> None:
    tried = ask.preview_map(name, gaussian)
    assert (tried.exists, tried.at_once, tried.n_output) == (False, True, 32)
    with pytest.raises(MapNotFound):
        ask.get_map(name)
    assert ask.put_map(name, gaussian).bytes == tried.bytes
    assert ask.preview_map(name, gaussian).exists


def test_frozen_arrays_come_as_they_are_or_as_asked(ask: Asked, standing: dict[str, str]) -> None:
    offsets = ask.get_array(standing["phase"], "offsets")
    assert (offsets.shape, offsets.dtype) == ((16,), np.float32)
    half = ask.get_array(standing["phase"], "offsets", dtype=np.float16)
    assert np.array_equal(half, offsets.astype(np.float16))
    with pytest.raises(ArrayNotFound):
        ask.get_array(standing["cos_sin"], "offsets")


@each("strange", ["", ".", ".."])
def test_a_name_that_would_lead_elsewhere_is_refused_before_it_is_sent(ask: Asked, strange: str) -> None:
    with pytest.raises(ValueError, match="a name"):
        ask.delete_map(strange)
