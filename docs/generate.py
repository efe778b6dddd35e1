"""The pages that come from the code.

Those of the reference are committed, for readers of the source: `python -m docs.generate` writes them anew. All others
are made by each build.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.api.problems import KINDS
from app.api.routes.service import catalog
from app.metrics import ASKED, COUNTED
from app.settings import Settings, default_of
from benchmarks.results import RESULTS, section_of
from docs.pictures import draw
from docs.schemas import Schema, kind_of, members, one_line, type_of

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parent.parent
FIGURES = re.compile(r"<!-- figures: (?P<title>.+) -->")
"""Stands in a page for a section of the benchmarks' results."""
_FAMILIES = {
    "kernels": "Stand in the member `kernel` of a spec.",
    "samplers": "Stand in the member `sampler` of a spec.",
    "forms": "Stand in the member `form` of a spec.",
    "diagnostics": "Stand in the address of `POST /v1/maps/{name}/diagnostics/{kind}`; the fields stand in its body.",
}
_LABELS = {
    "method": "GET, HEAD, PUT, POST or DELETE; `other` for any other",
    "route": "the address of the call as the OpenAPI document has it, as `/v1/maps/{name}/transform`; empty where a "
    "request was refused before its call was known, or asks for none",
    "status": "HTTP status of the answer; 499 where the client left before there was one",
    "problem": "the kind of problem, as `overloaded`; see the page of problems",
    "of": "what there are places for: `requests`, `builds` or `listeners`",
    "waits_for": "`compute` (work of some length), `brief` (some milliseconds), `store` (short calls to the store), "
    "`submit` (leaving work to a job) or `file` (reading a Parquet file, and storing it as a dataset)",
    "command": "the command of the store, as `EVALSHA`",
    "outcome": "`ok` or `error`",
    "state": "of jobs: `queued` or `running`; of those that have ended: `succeeded`, `failed` or `cancelled`",
    "kind": "of a job: what it does, as `build`",
    "reason": "`ready`, or why not: `starting` or `store-unavailable`",
    "role": "of a process: `server` or `worker`",
    "version": "of the service",
    "numpy": "version of NumPy",
    "scipy": "version of SciPy",
    "python": "version of Python",
}
"""The meaning of each label of the metrics."""
_UNTOLD = ("Successful Response", "Created")
"""What the framework says of an answer that nobody has described."""


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the generated pages and pictures. mkdocs calls this before each build."""
    from mkdocs.structure.files import File

    for address, page in (("explanation/figures.md", RESULTS), ("changelog.md", ROOT / "CHANGELOG.md")):
        files.append(File.generated(config, address, content=page.read_text()))
    for picture in sorted(RESULTS.parent.glob("*.svg")):
        files.append(File.generated(config, f"explanation/{picture.name}", content=picture.read_text()))
    for name, drawn in draw().items():
        files.append(File.generated(config, f"pictures/{name}.svg", content=drawn))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The text of a page, with the figures that it asks for: mkdocs calls this for each page."""
    return FIGURES.sub(lambda asked: section_of(RESULTS.read_text(), asked["title"]), markdown)


def pages() -> dict[Path, str]:
    """The Markdown of every page of the reference that comes from the code, by its file."""
    made = {
        "settings": settings_page(),
        "http": http_page(),
        "problems": problems_page(),
        "metrics": metrics_page(),
        "catalogue": catalogue_page(),
    }
    return {ROOT / "docs" / "reference" / f"{name}.md": page for name, page in made.items()}


def settings_page() -> str:
    """A table of every setting."""
    lines = [
        "# Settings\n",
        "Each setting is an environment variable, and an option of `bochner serve`; `bochner worker` has those that it "
        "needs. The option wins over the variable. Sizes are bytes, or have a unit: `512MiB`, `1.5 GB`.\n",
        "| variable | option | default | meaning |",
        "| --- | --- | --- | --- |",
    ]
    for name, field in Settings.model_fields.items():
        option = f"--{name.replace('_', '-')}"
        described = one_line(field.description or "")
        lines.append(f"| `{Settings.variable(name)}` | `{option}` | {default_of(name, field)} | {described} |")
    return "\n".join(lines) + "\n"


def problems_page() -> str:
    """A section for every kind of problem."""
    lines = [
        "# Problems\n",
        "Every refusal is a problem document (RFC 9457, `application/problem+json`). `type` names the kind, `detail` "
        "says what came and what was wanted, `instance` is the id of the request, and `errors` points at the places "
        "that are wrong. The service shows these texts itself, at the address in `type`.\n",
    ]
    for slug, kind in KINDS.items():
        lines += [f"## {slug}\n", f"{kind.title}. Status {kind.status}.\n", kind.page + "\n"]
    return "\n".join(lines)


def metrics_page() -> str:
    """A table of every metric, and one of every label."""
    lines = [
        "# Metrics\n",
        "What `GET /metrics` tells. The name of a counter ends with `_total`; a histogram has `_bucket`, `_sum` and "
        "`_count`. How to have Prometheus read them: [Watch it run](../how-to/watch-it-run.md).\n",
    ]
    for title, every in (
        ("Counted by the processes of a service, and told as their sum", COUNTED),
        ("Asked of the store: every service on it tells the same", ASKED),
    ):
        lines += [f"## {title}\n", "| name | kind | labels | meaning |", "| --- | --- | --- | --- |"]
        for one in every:
            name = one.name + "_total" * (one.kind == "counter")
            labels = ", ".join(f"`{label}`" for label in one.labels)
            lines.append(f"| `{name}` | {one.kind} | {labels} | {one.told} |")
        lines.append("")
    lines += ["## Labels\n", "| label | meaning |", "| --- | --- |"]
    lines += [f"| `{label}` | {meaning} |" for label, meaning in _LABELS.items()]
    return "\n".join(lines) + "\n"


def catalogue_page() -> str:
    """Every kind of every family, from what `/v1/catalog` answers."""
    described = catalog().model_dump()
    lines = [
        "# Catalogue of kinds\n",
        "What a running service says of them is at `/v1/catalog`. Where advice gives a Gram error, it is "
        "‖K − K̂‖/‖K‖ in the Frobenius norm, a mean of ten seeds, for kernel `gaussian` and, unless it says "
        "otherwise, the form `cos_sin`.\n",
    ]
    for family, kinds in described.items():
        lines += [f"## {family.capitalize()}\n", _FAMILIES[family] + "\n"]
        for kind, schema in kinds.items():
            lines += [f"### {kind} {{ #{family}-{kind} }}\n", *_kind(schema)]
    return "\n".join(lines) + "\n"


def _kind(schema: Schema) -> Iterator[str]:
    yield schema["description"] + "\n"
    yield f"**Choose it**: {schema['choose_when']}\n"
    if schema.get("limits"):
        yield f"**Limits**: {'; '.join(schema['limits'])}.\n"
    fields = list(members(schema, schema.get("$defs", {})))
    if fields:
        yield "**Fields**:\n"
        yield "\n".join(fields) + "\n"
    yield f"**Source**: {schema['source']}.\n"


def http_page() -> str:
    """Every operation, and every object that answers are made of, from the committed OpenAPI document."""
    document = json.loads((ROOT / "openapi" / "openapi.json").read_text())
    objects = document["components"]["schemas"]
    lines = [
        "# HTTP\n",
        "The same stands in `openapi/openapi.json`, and at `/docs` of a running service, where every call can be "
        "tried. What is below `/v1` is stable: a field may be added, none is renamed or removed. What every call "
        "may answer besides is a [problem](problems.md).\n",
    ]
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            section = by_tag.setdefault(operation["tags"][0], [])
            section += [f"### `{method.upper()} {path}` {{ #{operation['operationId']} }}\n"]
            section += _operation(operation, objects)
    for tag, section in by_tag.items():
        lines += [f"## {tag.capitalize()}\n", *section]
    lines += ["## Objects\n"]
    for name, schema in objects.items():
        if "properties" in schema and kind_of(schema) is None:
            lines += [f"### {name}\n", schema.get("description", "") + "\n", "\n".join(members(schema, objects)) + "\n"]
        elif name in _whole(document["paths"]):
            choices = schema.get("anyOf", schema.get("oneOf", [schema]))
            linked = (
                f"[{one}](#{one.lower()})" for choice in choices if (one := choice.get("$ref", "").rpartition("/")[2])
            )
            lines += [f"### {name}\n", "One of these:\n", "\n".join(f"- {link}" for link in linked) + "\n"]
    return "\n".join(lines)


def _whole(paths: Schema) -> set[str]:
    """The names of the schemas of whole bodies and answers."""
    bodies = [
        body
        for path in paths.values()
        for operation in path.values()
        for body in (operation.get("requestBody", {}), *operation["responses"].values())
    ]
    contents = [content for body in bodies for content in body.get("content", {}).values()]
    return {content.get("schema", {}).get("$ref", "").rpartition("/")[2] for content in contents}


def _operation(operation: Schema, objects: Schema) -> Iterator[str]:
    yield operation["description"] + "\n"
    roles = [role for needed in operation["security"] for role in needed.get("key", ())]
    yield f"**Role**: {'`' + roles[0] + '`' if roles else 'none, it is open to everybody'}.\n"
    if operation.get("parameters"):
        as_object = {
            # What is said of a parameter stands beside its schema, and in it too where the framework wrote both.
            "properties": {
                one["name"]: {"description": one.get("description", ""), **one["schema"]}
                for one in operation["parameters"]
            },
            "required": [one["name"] for one in operation["parameters"] if one["required"]],
        }
        yield "**Parameters**:\n"
        yield "\n".join(members(as_object, objects)) + "\n"
    if "requestBody" in operation:
        yield "**Body**:\n"
        content = operation["requestBody"]["content"]
        yield "\n".join(_contents(content, objects)) + "\n"
        examples = content["application/json"]["examples"].values()
        yield f"**Examples** (in `openapi/examples/`): {'; '.join(one['summary'] for one in examples)}.\n"
    yield "**Answers**:\n"
    for status, answer in operation["responses"].items():
        if status != "default":
            told = "" if answer["description"] in _UNTOLD else f": {answer['description']}"
            yield f"- {status}{told}"
            yield from (f"    {line}" for line in _contents(answer.get("content", {}), objects))
    yield ""


def _contents(content: Schema, objects: Schema) -> Iterator[str]:
    for media_type, body in content.items():
        schema = body.get("schema", {})
        name = schema.get("$ref", "").rpartition("/")[2]
        choices = [schema] if name else schema.get("anyOf", schema.get("oneOf", [schema]))
        told = f": [{name}](#{name.lower()})" if name else ""
        yield f"- `{media_type}`{told}"
        for choice in [] if name else choices:
            described = one_line(choice.get("description", "")) or type_of(choice, objects)
            yield f"    - {described}"
            yield from members(choice, objects, depth=2)


if __name__ == "__main__":
    for path, page in pages().items():
        path.write_text(page)
