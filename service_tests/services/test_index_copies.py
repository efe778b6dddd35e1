"""A copy of an index has all its vectors and tags, over another map or in other bands."""

from typing import Any, cast

import numpy as np
import orjson
import pytest
from scipy.sparse import csr_array

from app.container import Container
from app.core.errors import InvalidInput
from app.core.indexes import labels
from app.core.indexes.options import Batch, DeleteOptions, Filter, SearchOptions, TagChanges
from app.core.progress import Progress
from app.core.spec import MapSpec
from app.services import index_copies
from app.services.asked import NOTHING, AskedSpec
from app.services.errors import IndexNotFound
from app.services.index_copies import AskedCopy
from app.services.index_upserts import IndexUpserts
from app.services.indexes import AskedIndex, Indexes, OpenIndex
from app.store.errors import NameHeld
from app.store.indexes import Entry, IndexManifest, IndexStore
from service_tests.services.crowds import GMM, SIGNED, crowded, remove, service_with

N = 250
OTHERS = {"signed": SIGNED, "long": GMM | {"s": 300, "seed": 9}, "wide": GMM | {"input_dim": 6}}


@pytest.fixture
def service(store_url: str, client: Any, monkeypatch: pytest.MonkeyPatch) -> Container:
    """Two indexes, of vectors and of codes, with dense and sparse rows, every third of which has a tag."""
    assert client.dbsize() == 0
    monkeypatch.setattr(index_copies, "_AT_ONCE", 32)
    monkeypatch.setattr(index_copies, "_IN_HAND", 64)
    service = service_with(store_url, GMM, keep="vectors", bands=16, rows_per_band=4)
    for name, spec in OTHERS.items():
        service.map_creation.create(name, AskedSpec(MapSpec.model_validate(spec), NOTHING), Progress())
    service.indexes.create("codes", AskedIndex(map="m"), None)
    for name in ("i", "codes"):
        fill(service, name)
    return service


def fill(service: Container, name: str) -> None:
    rows = crowded(np.random.default_rng(2), N)
    tags = ["third" if i % 3 == 0 else None for i in range(N)]
    service.index_upserts.upsert(name, lambda *_: Batch(rows[:200], [*range(200)], tags[:200]))
    service.index_upserts.upsert(name, lambda *_: Batch(csr_array(rows[200:]), [*range(200, N)], tags[200:]))


def copied(service: Container, name: str, asked: dict[str, Any]) -> None:
    job = service.copies.submit(name, AskedCopy.model_validate(asked), None)
    assert (job.kind, job.subject) == ("copy-index", {"index": name, "from": asked["from"]})
    work(service, name, asked["from"])


def work(service: Container, name: str, source: str, progress: Progress | None = None) -> None:
    """Do what the job of a copy does."""
    payload = {at: [one, service.indexes.open(one).manifest.token] for at, one in (("from", source), ("to", name))}
    service.copies.copy(payload, progress or Progress(), "")


def contents(service: Container, name: str, queries: tuple[int, ...] = (0, 99, 249)) -> Any:
    """Ids, tags and vectors, and what some searches of all codes find."""
    page, _ = service.index_vectors.read_page(name, None, 1000, None, False)
    keeps = service.indexes.open(name).manifest.keep == "vectors"
    vectors = [str(service.index_vectors.get(name, one["id"], True)["vector"]) for one in page] if keeps else []
    options = SearchOptions(ids=queries or (min(one["id"] for one in page),), k=N, scan=True)
    results = service.index_vectors.search(name, lambda _: (options, None))[0]
    at = np.argsort([one["id"] for one in page])
    return (
        [page[i] for i in at],
        [vectors[i] for i in at if keeps],
        [dict(zip(one["ids"], one["similarity"], strict=True)) for one in results],
    )


def test_a_copy_has_what_the_index_has(service: Container) -> None:
    copied(service, "same", {"from": "i"})
    assert contents(service, "same") == contents(service, "i")
    copied(service, "bands", {"from": "i", "bands": 8, "rows_per_band": 8, "keep": "codes"})
    copied(service, "scan", {"from": "same", "bands": None, "map": None, "keep": "codes"})
    assert contents(service, "bands") == contents(service, "scan") == contents(service, "codes")
    banding = [service.indexes.get(name).bands for name in ("same", "bands", "scan")]
    assert banding == [16, 8, None]
    copied(service, "target", {"from": "i", "target": {"min_similarity": 0.8, "recall": 0.9}})
    assert service.indexes.get("target").serves is True
    for name in ("same", "bands", "scan", "target"):
        assert service.index_vectors.count(name, Filter(all=("third",))) == len(range(0, N, 3))


@pytest.mark.parametrize("over", ["signed", "long"])
def test_a_copy_over_another_map_is_like_an_index_that_was_filled(service: Container, over: str) -> None:
    copied(service, "copy", {"from": "i", "map": over})
    service.indexes.create("filled", AskedIndex(map=over, keep="vectors"), None)
    fill(service, "filled")
    assert contents(service, "copy") == contents(service, "filled")


def test_sparse_vectors_stay_sparse_in_a_copy_around_a_centre(service: Container) -> None:
    spec = MapSpec.model_validate(GMM | {"kernel": {"kind": "gmm", "center": (0.1,) * 5}})
    service.map_creation.create("centred", AskedSpec(spec, NOTHING), Progress())
    copied(service, "copy", {"from": "i", "map": "centred"})
    assert contents(service, "copy")[1] == contents(service, "i")[1]


class Interrupted(Exception):
    pass


class Saving(Progress):
    """Keeps the state; with `stops`, the job is interrupted then."""

    stops, state = False, cast("bytes | None", None)

    def save(self, make_state: Any) -> None:
        self.state = make_state()
        if self.stops:
            raise Interrupted

    def restore(self) -> bytes | None:
        return self.state


def test_a_job_goes_on_where_it_was_interrupted(service: Container) -> None:
    progress = Saving()
    progress.stops = True
    service.copies.submit("copy", AskedCopy.model_validate({"from": "i"}), None)
    for size in (0, 64, 128):
        with pytest.raises(Interrupted):
            work(service, "copy", "i", progress)
        assert service.indexes.get("copy").size == size


def test_what_is_deleted_when_the_job_is_interrupted_does_not_stay_in_the_copy(
    service: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress, store = Saving(), IndexUpserts.store

    def delete_first(upserts: IndexUpserts, opened: OpenIndex, entries: list[Entry], *more: Any) -> bool:
        one = labels.read(entries[3].id)
        for name in ("i", "copy"):
            remove(service, name, DeleteOptions(ids=(one,)))
        store(upserts, opened, entries, *more)
        raise Interrupted

    service.copies.submit("copy", AskedCopy.model_validate({"from": "i"}), None)
    monkeypatch.setattr(IndexUpserts, "store", delete_first)
    with pytest.raises(Interrupted):
        work(service, "copy", "i", progress)
    monkeypatch.setattr(IndexUpserts, "store", store)
    work(service, "copy", "i", progress)
    assert service.indexes.get("copy").size == N - 1
    assert contents(service, "copy", ()) == contents(service, "i", ())


@pytest.mark.parametrize("call", ["upsert", "remove_many"])
def test_an_attempt_that_has_lost_the_job_changes_nothing_in_the_copy(
    service: Container, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """It stops right before a write; meanwhile another attempt ends the job, and somebody changes the copy."""
    progress, write = Saving(), getattr(IndexStore, call)
    service.copies.submit("copy", AskedCopy.model_validate({"from": "codes"}), None)
    if call == "remove_many":  # the vector in hand has been deleted since
        progress.state = orjson.dumps([0, [labels.encode_id(7, "").hex()]])
        remove(service, "codes", DeleteOptions(ids=(7,)))

    def lose() -> None:
        raise Interrupted

    def stop_first(*args: Any, **named: Any) -> Any:
        monkeypatch.setattr(IndexStore, call, write)
        work(service, "copy", "codes")
        fill(service, "copy")
        remove(service, "copy", DeleteOptions(ids=(0, 1, 2)))
        monkeypatch.setattr(progress, "confirm", lose)
        before.append(contents(service, "copy", ()))
        return write(*args, **named)

    before = list[Any]()
    monkeypatch.setattr(IndexStore, call, stop_first)
    with pytest.raises(Interrupted):
        work(service, "copy", "codes", progress)
    assert contents(service, "copy", ()) == before[0]


@pytest.mark.parametrize("source", ["codes", "i"])
def test_changes_made_in_both_while_the_job_runs_are_in_both(
    service: Container, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    """Each in the index first, then in the copy, after the job has read the vectors and before it puts them."""
    rng, store = np.random.default_rng(9), IndexUpserts.store

    def change_first(upserts: IndexUpserts, opened: OpenIndex, entries: list[Entry], *more: Any, **named: Any) -> bool:
        if opened.manifest.name == "copy" and entries[0].id not in changing:
            changing.update(one.id for one in entries)
            for what, entry in enumerate(entries[:8]):
                one, row = int(labels.read(entry.id)), crowded(rng, 1)
                for name in (source, "copy"):
                    if what % 4 == 0:
                        batch = Batch(row, [one], ["other"])
                        service.index_upserts.upsert(name, lambda *_: batch)  # noqa: B023
                    elif what % 4 == 1:
                        remove(service, name, DeleteOptions(ids=(one,)))
                    elif what % 4 == 2:
                        service.index_upserts.change_tags(name, TagChanges(ids=(one,), add_tags=("also",)))
        return store(upserts, opened, entries, *more, **named)

    changing = set[bytes]()
    monkeypatch.setattr(IndexUpserts, "store", change_first)
    copied(service, "copy", {"from": source})
    assert len(changing) > 200
    assert contents(service, "copy", ()) == contents(service, source, ())


def test_a_vector_that_the_other_map_does_not_take_fails_the_job(service: Container) -> None:
    wide = GMM | {"dtype": "float64"}
    service.map_creation.create("wide64", AskedSpec(MapSpec.model_validate(wide), NOTHING), Progress())
    for row, said in (([1e300] * 5, "float32"), ([0.0] * 5, "'one' is all zero")):
        over = "signed" if not any(row) else "wide64"
        service.indexes.create(f"of-{over}", AskedIndex(map=over, keep="vectors"), None)
        service.index_upserts.upsert(f"of-{over}", lambda *_: Batch(np.array([row]), ["one"], None))  # noqa: B023
        with pytest.raises(InvalidInput, match=said):
            copied(service, f"copy-{over}", {"from": f"of-{over}", "map": "long"})


def test_maps_that_prepare_rows_in_the_same_way_take_each_others_vectors(service: Container) -> None:
    for name, scale in (("half", (2.0,) * 5), ("half-too", (2.0,) * 5), ("third", (3.0,) * 5)):
        spec = GMM | {"seed": len(name), "input": {"scale": scale}}
        service.map_creation.create(name, AskedSpec(MapSpec.model_validate(spec), NOTHING), Progress())
    service.indexes.create("halves", AskedIndex(map="half", keep="vectors"), None)
    fill(service, "halves")
    with pytest.raises(InvalidInput, match="in another way"):
        copied(service, "thirds", {"from": "halves", "map": "third"})
    copied(service, "copy", {"from": "halves", "map": "half-too"})
    service.indexes.create("filled", AskedIndex(map="half-too", keep="vectors"), None)
    fill(service, "filled")
    assert contents(service, "copy") == contents(service, "filled")
    copied(service, "again", {"from": "halves", "map": "half-too"})  # once the maps have prepared rows


def test_what_cannot_be_copied_is_refused_and_leaves_nothing(service: Container) -> None:
    for asked, pointer in (
        ({"from": "codes", "keep": "vectors"}, "/from"),
        ({"from": "codes", "map": "long"}, "/from"),
        ({"from": "i", "map": "wide"}, "/map"),
        ({"from": "i", "target": {"k": 1, "recall": 0.9, "dataset": "d"}}, "/target/dataset"),
        ({"from": "codes", "bands": 3}, "/rows_per_band"),
        ({"from": "i", "bands": 300, "rows_per_band": 1}, "/bands"),
    ):
        with pytest.raises(InvalidInput) as refused:
            copied(service, "copy", asked)
        assert refused.value.pointer == pointer
        with pytest.raises(IndexNotFound):
            service.indexes.get("copy")
    with pytest.raises(IndexNotFound):
        copied(service, "copy", {"from": "none"})
    for name in ("i", "codes"):
        with pytest.raises(NameHeld, match="has vectors"):
            service.copies.submit(name, AskedCopy.model_validate({"from": name}), ttl=2)
        assert service.indexes.get(name).ttl is None


def test_the_map_of_a_copy_is_the_one_that_was_looked_at(service: Container, monkeypatch: pytest.MonkeyPatch) -> None:
    create = Indexes.create

    def replace_map_first(indexes: Indexes, *given: Any, **named: Any) -> Any:
        service.maps.delete("long")
        spec = MapSpec.model_validate(GMM | {"input_dim": 4})
        service.map_creation.create("long", AskedSpec(spec, NOTHING), Progress())
        return create(indexes, *given, **named)

    monkeypatch.setattr(Indexes, "create", replace_map_first)
    with pytest.raises(InvalidInput, match="was replaced meanwhile"):
        service.copies.submit("copy", AskedCopy.model_validate({"from": "i", "map": "long"}), None)


def test_a_vector_that_moves_from_one_page_to_another_is_copied_once(
    service: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, pages = IndexStore.vector_page, list[int]()

    def shorter(store: IndexStore, manifest: IndexManifest, before: int | None, most: int, most_bytes: int) -> Any:
        found = page(store, manifest, before, min(most, 20), most_bytes)
        if not pages:  # the last vector moves into the place of another
            remove(service, "i", DeleteOptions(ids=(N - 30,)))
        pages.append(len(found[0]))
        return found

    monkeypatch.setattr(IndexStore, "vector_page", shorter)
    copied(service, "copy", {"from": "i"})
    monkeypatch.undo()
    assert sum(pages) == N, "one of them twice"
    assert service.indexes.get("copy").size == N - 1
    assert contents(service, "copy", ()) == contents(service, "i", ())
