"""A client that openapi-python-client makes of the document calls every operation, with typed bodies and answers."""

import importlib
import importlib.util
import io
import json
import keyword
import re
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from http import HTTPStatus
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import pytest

from docs.calls import JSON, Call
from service_tests.api.operations import DOCUMENT, OPERATIONS
from service_tests.generated.conftest import Target

OPENAPI = Path(__file__).parents[2] / "openapi"
PACKAGE = "bochner_generated"
pytestmark = pytest.mark.gate


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ModuleType, str]]:
    """The package, and what the generator said."""
    pytest.importorskip("openapi_python_client", reason="pip install -e '.[clients]'")
    folder = tmp_path_factory.mktemp("generated")
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    paths = {
        "--path": OPENAPI / "openapi.json",
        "--config": OPENAPI / "openapi-python-client.yaml",
        "--output-path": folder / PACKAGE,
    }
    command += [str(word) for option in paths.items() for word in option]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    sys.path.insert(0, str(folder))
    yield importlib.import_module(PACKAGE), said.stdout + said.stderr
    sys.path.remove(str(folder))


def test_every_operation_is_called_and_its_answer_is_read(made: tuple[ModuleType, str], target: Target) -> None:
    package, _ = made
    client = package.AuthenticatedClient(base_url=target.url, token=target.key, timeout=60)
    done = []
    for call in target.calls:
        # One answer of a status has one type for this generator, that of JSON.
        if call.accept in (JSON, "text/html", "text/plain", "text/event-stream", "application/octet-stream"):
            with client.with_headers(call.asked) as sending:
                check(package, sending, call)
            done.append(call.operation)
    assert set(done) == set(OPERATIONS), "add a call of the new operation to docs/calls.py"


def check(package: ModuleType, client: Any, call: Call) -> None:
    """Make a call through its generated function, and compare what it read with what was sent."""
    function = module_of(call).sync_detailed
    types = get_type_hints(function)
    given = {python_name(name): value for name, value in (*call.path.items(), *call.query.items())}
    arguments = {name: in_type(types[name], value) for name, value in given.items()}
    if call.content:
        arguments["body"] = package.types.File(payload=io.BytesIO(call.content))
    elif call.body is not None:
        arguments["body"] = model_of(types["body"], call.body)
    answer = function(client=client, **arguments)
    assert answer.status_code == HTTPStatus(call.status), (call.operation, answer.content)
    read = answer.parsed
    assert type(read).__name__ != "Problem", call.operation
    if hasattr(read, "to_dict"):
        assert plain(read.to_dict()) == plain(json.loads(answer.content)), call.operation
    elif isinstance(read, list):
        assert [plain(one.to_dict()) for one in read] == plain(json.loads(answer.content)), call.operation
    elif call.operation == "export_map":
        assert b"__metadata__" in read.payload.read()
    elif call.operation in ("problem", "metrics"):
        assert read == answer.content.decode()
    else:
        assert call.status == 204 or call.operation in ("watch_job", "get_job_result")


def module_of(call: Call) -> ModuleType:
    """The generated module of an operation."""
    method, path = OPERATIONS[call.operation]
    tag = DOCUMENT["paths"][path][method.lower()]["tags"][0]
    return importlib.import_module(f"{PACKAGE}.api.{tag}.{call.operation}")


def python_name(name: str) -> str:
    """A parameter as the generator calls it."""
    name = name.lower().replace("-", "_")
    return f"{name}_" if name in ("format", *keyword.kwlist) else name


def choices(described: Any) -> tuple[Any, ...]:
    """The classes of a union, or the one class."""
    return get_args(described) or (described,)


def in_type(described: Any, value: Any) -> Any:
    """A parameter, as a member of the enumeration that it is of, if there is one."""
    enums = [one for one in choices(described) if isinstance(one, type) and issubclass(one, Enum)]
    return enums[0](value) if enums else value


def model_of(described: Any, body: Any) -> Any:
    """A body as an object of the first class that reads and writes all of it."""
    for one in choices(described):
        if hasattr(one, "from_dict"):
            try:
                read = one.from_dict(body)
            except (KeyError, TypeError, ValueError):
                continue
            if plain({**read.to_dict(), **body}) == plain(read.to_dict()) and not read_more(read):
                return read
    raise AssertionError(f"no class reads {body}")


def read_more(read: Any) -> dict[str, Any]:
    """Members of a body that its class does not know."""
    return getattr(read, "additional_properties", {})


def plain(value: Any) -> Any:
    """JSON with times written in one way."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return re.sub(r"\+00:00$", "Z", value) if isinstance(value, str) else value
