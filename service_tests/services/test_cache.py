import json
import threading
from typing import Any, NamedTuple

import pytest

from app.container import Container
from app.core.progress import Progress
from app.core.spec import MapSpec
from app.services import cache
from app.services.asked import NOTHING, AskedSpec
from app.services.cache import Cache
from app.settings import Settings
from service_tests.races import at_once


class Thing(NamedTuple):
    bytes: int


class Listed(NamedTuple):
    """What a cache sees of a manifest."""

    name: str
    digest: str
    kind: str = "map"


class Loader:
    """Counts what it loads."""

    def __init__(self, bytes_each: int = 10) -> None:
        self.loaded: list[str] = []
        self._bytes = bytes_each

    def __call__(self, manifest: Any) -> Thing:
        self.loaded.append(manifest.digest)
        return Thing(self._bytes)


@pytest.fixture
def _nothing_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_BYTES_PER_ENTRY", 0)


def test_things_of_no_bytes_go_too() -> None:
    load = Loader(bytes_each=0)
    small = Cache(100 * 4096)
    kept: Any = small.keeping(load)
    for number in range(101):
        kept(Listed("m", str(number)))
    assert (small.entries, small.nbytes) == (100, 100 * 4096)


WINDOWS = {"kind": "anova", "length_scale": 1.0, "windows": {"image_shape": [20, 20], "patch_shape": [11, 11]}}


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    ("sampler", "kernel", "dim", "n"),
    [
        ("dart_minhash", {"kind": "gmm", "center": [0.5] * 20_000}, 20_000, 20_000),
        ("monte_carlo", WINDOWS, 400, 10**2 * 11**2),
    ],
)
def test_the_numbers_of_a_spec_count(store_url: str, sampler: str, kernel: dict[str, Any], dim: int, n: int) -> None:
    """Each takes some 60 to 90 bytes: in the spec, in its kernel and as an array; so does each place of a window."""
    service = Container(Settings(redis_url=store_url))
    spec = {"input_dim": dim, "kernel": kernel, "sampler": {"kind": sampler}, "s": 100, "seed": 1}
    service.map_creation.create("m", AskedSpec(MapSpec.model_validate_json(json.dumps(spec)), NOTHING), Progress())
    service.maps.open("m")
    assert service.cache.nbytes > 60 * n


@pytest.mark.usefixtures("_nothing_beside")
def test_things_are_kept_by_digest_not_by_name() -> None:
    load = Loader()
    kept: Any = Cache(100).keeping(load)
    first = kept(Listed("m", "a"))
    assert kept(Listed("m", "a")) is first
    assert kept(Listed("other", "a")) is first
    made_anew = kept(Listed("m", "b"))
    assert made_anew is not first
    assert load.loaded == ["a", "b"]


@pytest.mark.usefixtures("_nothing_beside")
def test_the_least_recently_used_goes_first() -> None:
    load = Loader(bytes_each=40)
    kept: Any = Cache(100).keeping(load)
    for digest in ("a", "b", "a", "c", "a", "b"):
        kept(Listed("m", digest))
    assert load.loaded == ["a", "b", "c", "b"]


@pytest.mark.usefixtures("_nothing_beside")
def test_many_that_want_one_thing_load_it_once() -> None:
    load, loading = Loader(), threading.Event()

    def slow(manifest: Any) -> Thing:
        loading.wait(0.2)
        return load(manifest)

    kept: Any = Cache(100).keeping(slow)
    found = at_once(8, lambda _: kept(Listed("m", "a")))
    assert load.loaded == ["a"]
    assert all(one is found[0] for one in found)


@pytest.mark.usefixtures("_nothing_beside")
def test_what_fails_is_tried_again() -> None:
    outcomes: list[Any] = [ValueError("no"), Thing(1)]

    def load(_: Any) -> Thing:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        made: Thing = outcome
        return made

    kept: Any = Cache(100).keeping(load)
    with pytest.raises(ValueError, match="no"):
        kept(Listed("m", "a"))
    assert kept(Listed("m", "a")).bytes == 1
