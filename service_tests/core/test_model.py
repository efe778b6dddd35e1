"""What all models of clients have in common."""

from collections.abc import Iterator
from typing import Any

from app.core.diagnostics import DIAGNOSTICS
from app.core.model import Frozen
from app.core.recommendations.candidates import KernelsMember, RecommendationOptions
from app.core.spec import MapSpec
from app.services.asked import InputOfRows, ScaleOfRows
from service_tests.cases import each

MODELS = [MapSpec, RecommendationOptions, KernelsMember, InputOfRows, ScaleOfRows, *DIAGNOSTICS.values()]


def inside(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema of pydantic's, and all in it."""
    if isinstance(schema, dict):
        yield schema
    for one in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list | tuple) else ():
        yield from inside(one)


@each("model", MODELS)
def test_a_list_is_refused_at_the_first_thing_that_is_wrong_in_it(model: type[Frozen]) -> None:
    """Each error takes half a kilobyte, and there is no bound on what is wrong."""
    lists = [one for one in inside(model.__pydantic_core_schema__) if one.get("type") in ("list", "tuple")]
    assert [one for one in lists if "variadic_item_index" in one or one["type"] == "list"] == [
        one for one in lists if one.get("fail_fast")
    ]
