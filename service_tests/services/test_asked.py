"""Specs that leave something open, and maps that learn: which rows settle them."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import redis
from pydantic import ValidationError

from app.core.building import RowsOf
from app.core.errors import InvalidInput
from app.core.input import Fit, fit_input
from app.core.length_scales import Heuristic, length_scale, per_column
from app.core.progress import Progress
from app.core.spec import MapSpec
from app.services import map_creation
from app.services.asked import AskedSpec, LeftOpen, Settled, asked_spec, draw_seed, resolve
from app.services.cache import Cache
from app.services.datasets import Datasets
from app.services.errors import MapExists
from app.services.map_creation import build_reservation, kept_rows
from app.store.datasets import DatasetStore
from app.store.maps import MapStore
from service_tests.jobs.site import attempt
from service_tests.services.conftest import LIMITS, Service

ROWS = np.random.default_rng(4).normal(size=(40, 3)) * [1, 2, 5] + 7
GAUSSIAN = {"kind": "gaussian", "length_scale": 1.5}
PLAIN: dict[str, Any] = {"input_dim": 3, "kernel": GAUSSIAN, "sampler": {"kind": "halton"}, "s": 8}
OPEN = PLAIN | {
    "kernel": {"kind": "gaussian", "length_scale": {"per_column": "nearest_neighbor"}},
    "input": {"fit": "robust", "dataset": "rows", "unit_norm": True},
    "seed": None,
}


@pytest.fixture
def datasets(client: redis.Redis) -> Datasets:
    client.flushall()
    made = Datasets(DatasetStore(client), LIMITS, Cache(1 << 20), lambda: None)
    made.create("rows", ROWS, None)
    return made


def rows_in(datasets: Datasets) -> RowsOf:
    """The rows of `rows` as they are now."""
    return kept_rows(datasets, {"rows": datasets.digest("rows")})


def asked(spec: dict[str, Any]) -> AskedSpec:
    return asked_spec(json.dumps(spec).encode(), lambda model, body: model.model_validate_json(body), lambda *_: None)


def test_what_is_left_open_is_settled_in_order(datasets: Datasets) -> None:
    found, text, warnings = resolve(draw_seed(asked(OPEN)), rows_in(datasets), 2)
    wanted = fit_input(Fit.robust, ROWS, unit_norm=True)
    rows = wanted.apply(ROWS, "")
    scale = length_scale(Heuristic.nearest_neighbor, rows, "euclidean")
    assert found.input == wanted
    assert found.kernel.model_dump() == {"kind": "gaussian", "length_scale": per_column(scale, rows)}
    assert found.seed < 1 << 53
    assert warnings == ()
    left_open = LeftOpen.model_validate_json(text)
    assert (left_open.with_placeholders(found), left_open) == asked(OPEN)
    again = resolve(draw_seed(asked(OPEN)), rows_in(datasets), 1).spec
    assert again.seed != found.seed
    assert again == found.model_copy(update={"seed": again.seed})


LEARNING = PLAIN | {"sampler": {"kind": "landmarks", "dataset": "rows"}}


@pytest.mark.parametrize("beside", [OPEN | {"kernel": OPEN["kernel"] | {"dataset": "rows"}}, LEARNING])
def test_an_input_without_a_dataset_takes_the_one_beside_it(beside: dict[str, Any]) -> None:
    """By its name or as an object; it is stored like one that names the dataset."""
    wanted = asked(beside | {"input": {"fit": "robust", "dataset": "rows"}})
    assert asked(beside | {"input": {"fit": "robust"}}) == asked(beside | {"input": "robust"}) == wanted
    other = asked(beside | {"input": {"fit": "robust", "dataset": "other"}})
    assert json.loads(other.left_open.text)["input"]["dataset"] == "other"


def test_an_input_without_any_dataset_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"input\.dataset\n  Field required"):
        asked(PLAIN | {"input": "robust"})


def test_the_same_is_found_without_a_look_at_the_dataset(service: Callable[..., Service], datasets: Datasets) -> None:
    maps, spec = service(), asked(OPEN)
    datasets.create("rows", ROWS, None)
    made = maps.create("m", spec.spec, Progress(), spec.left_open)
    assert made.new
    datasets.delete("rows")
    assert maps.create("m", spec.spec, Progress(), spec.left_open) == (made.record, False)
    assert isinstance(made.record.spec, MapSpec)
    assert maps.create("m", made.record.spec, Progress()) == (made.record, False)
    with pytest.raises(MapExists):
        maps.create("m", spec.spec, Progress(), LeftOpen(input=spec.left_open.input, kernel=spec.left_open.kernel))
    with pytest.raises(MapExists):
        maps.create("m", spec.spec, Progress())
    with pytest.raises(InvalidInput, match="no dataset 'rows'"):
        maps.create("other", spec.spec, Progress(), spec.left_open)


def test_one_that_comes_second_gets_the_map_of_the_first(
    service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have found the name free, and have drawn a seed each."""
    maps, (spec, left_open) = service(), asked(PLAIN | {"seed": None})
    others: list[Any] = []

    def settled_late(*given: Any) -> Settled:
        if not others:
            others.append("begun")
            others.append(maps.create("m", spec, Progress(), left_open).record)
        return resolve(*given)

    monkeypatch.setattr(map_creation, "resolve", settled_late)
    assert maps.create("m", spec, Progress(), left_open) == (others[1], False)


def test_no_attempt_of_a_job_learns_from_another_dataset(
    client: redis.Redis, service: Callable[..., Service], datasets: Datasets
) -> None:
    """Each has the rows of the submission, or none."""
    spec = asked(PLAIN | {"sampler": {"kind": "global_adaptive", "dataset": "rows", "iterations": 5}}).spec
    job = service().create("m", spec, None).record.job
    begun = attempt(client, str(job).rpartition("/")[2])
    run = partial(build_reservation, MapStore(client), datasets, 1, begun.payload, begun)
    datasets.delete("rows")
    with pytest.raises(InvalidInput, match="there is no dataset 'rows'"):
        run()
    datasets.create("rows", 2 * ROWS, None)
    with pytest.raises(InvalidInput, match="'rows' is not the one that was there when the job was submitted"):
        run()
    datasets.delete("rows")
    datasets.create("rows", ROWS, None)
    run()
    assert service().get("m").status == "ready"
