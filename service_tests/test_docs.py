"""What the README and the pages of docs/ say is there, and the pages that are made from the code say everything."""

import json
import re
from pathlib import Path

from app.api.problem_kinds import KINDS
from app.metrics.declared import ASKED, COUNTED, LABELS
from app.services.catalog import catalog
from app.settings import ClientSettings, Settings
from docs.generate import pages
from docs.schemas import one_line

ROOT = Path(__file__).parent.parent
WRITTEN = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
}
GENERATED = pages()
SOURCE = "\n".join(path.read_text() for top in ("app", "service_tests") for path in (ROOT / top).rglob("*.py"))
HOW_TO_ADD = WRITTEN["docs/how-to/add-a-kind.md"]
PROSE, CODE = (
    "".join(part for part in HOW_TO_ADD.split("```") if part.startswith("python\n") == is_code)
    for is_code in (False, True)
)
IN_THE_SOURCE = WRITTEN["docs/reference/source.md"]
NOT_YET_THERE = re.compile(r"yours|diagonal")


def test_the_readme_is_short() -> None:
    assert len(WRITTEN["README.md"].splitlines()) <= 130


def test_the_tree_names_every_package() -> None:
    named = {line.split()[0] for line in IN_THE_SOURCE.split("```")[1].splitlines() if line}
    packages = {f"{path.parent.relative_to(ROOT).as_posix()}/" for path in (ROOT / "app").glob("**/__init__.py")}
    inside_a_family = {package for package in packages if package.startswith("app/core/maps/")} - {"app/core/maps/"}
    assert packages - inside_a_family - {"app/"} <= named
    assert all((ROOT / one).exists() for one in named), named


def test_every_file_setting_and_metric_that_a_page_names_is_there() -> None:
    top = "app|docs|openapi|service_tests|benchmarks|examples|docker|deploy|client"
    settings = {Settings.variable(field) for field in (*Settings.model_fields, *ClientSettings.model_fields)}
    ends = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count", "")}
    metrics = {one.name + end for one in (*COUNTED, *ASKED) for end in ends[one.kind]} | {"bochner_client"}
    for page, text in WRITTEN.items():
        files = {path for path in re.findall(rf"`((?:{top})/[\w./-]*)`", text) if not NOT_YET_THERE.search(path)}
        assert not [path for path in files if not (ROOT / path).exists()], page
        assert set(re.findall(r"\bBOCHNER_[A-Z_]+\b", text)) <= settings, page
        assert set(re.findall(r"\bbochner_[a-z_]+\b", text)) <= metrics, page


def test_every_name_that_the_pages_for_developers_use_is_in_the_source_or_in_their_code() -> None:
    words = set(re.findall(r"\w+", SOURCE + CODE))
    assert set(re.findall(r"`([A-Za-z_]+)(?:\([^`]*\))?`", PROSE + IN_THE_SOURCE)) <= words


def test_every_link_at_the_top_leads_to_a_file() -> None:
    """Links between the pages are checked by the build of the documentation."""
    for page in ("README.md", "CONTRIBUTING.md"):
        links = re.findall(r"\]\(([^)#]+)", WRITTEN[page])
        assert len(links) >= 4
        assert all((ROOT / link).exists() for link in links if not link.startswith("https://"))


def test_every_kind_that_the_readme_lists_is_there() -> None:
    table = WRITTEN["README.md"].split("## What there is")[1].split("##")[0]
    described = catalog().model_dump()
    for row in ("kernels", "point sets", "quadrature rules", "learned sets", "forms", "diagnostics"):
        named = set(re.findall(r"`([\w-]+)`", re.search(rf"^\| {row} \|(.*)$", table, re.MULTILINE)[1]))  # type: ignore[index]
        family = row if row in described else "samplers"
        assert named
        assert named - {"learn", "normalize"} <= set(described[family]), row


def test_every_setting_is_in_the_reference() -> None:
    lines = GENERATED["reference/settings.md"].splitlines()
    for name, field in Settings.model_fields.items():
        (row,) = (line for line in lines if f"`{Settings.variable(name)}`" in line)
        assert f"`--{name.replace('_', '-')}`" in row
        assert str(field.description) in row


def test_every_metric_is_in_the_reference_with_its_labels() -> None:
    page = GENERATED["reference/metrics.md"]
    rows = {line.split("`")[1].removesuffix("_total"): line for line in page.splitlines() if line.startswith("| `")}
    for one in (*COUNTED, *ASKED):
        assert f" {one.kind} " in rows[one.name]
        assert one.told in rows[one.name]
        assert all(f"`{label}`" in rows[one.name] and LABELS[label] in page for label in one.labels), one.name


def test_every_problem_is_in_the_reference() -> None:
    for slug, kind in KINDS.items():
        assert (
            f"## {slug}\n\n{kind.title}. Status {kind.status}.\n\n{kind.page}\n" in GENERATED["reference/problems.md"]
        )


def test_every_kind_is_in_the_reference_with_its_fields() -> None:
    page = GENERATED["reference/catalogue.md"]
    for family, kinds in catalog().model_dump().items():
        for kind, schema in kinds.items():
            section = page.split(f"{{ #{family}-{kind} }}\n")[1].partition("\n### ")[0]
            assert schema["choose_when"] in section
            assert schema["source"] in section
            for field in set(schema.get("properties", {})) - {"kind"}:
                assert f"\n- `{field}` (" in section, (kind, field)


def test_every_operation_is_in_the_reference_with_its_parameters() -> None:
    document = json.loads((ROOT / "openapi" / "openapi.json").read_text())
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            title = f"### `{method.upper()} {path}` {{ #{operation['operationId']} }}\n"
            section = GENERATED["reference/http.md"].split(title)[1].partition("\n### ")[0]
            assert operation["description"] in section
            for parameter in operation.get("parameters", []):
                assert f"- `{parameter['name']}` (" in section, (title, parameter)
                assert one_line(parameter.get("description", "")) in section, (title, parameter)
            for status in set(operation["responses"]) - {"default"}:
                assert f"\n- {status}" in section, (title, status)


def test_asterisks_of_formulas_make_nothing_slanted() -> None:
    assert one_line("pairs (i*, t*),\nor `*/*` of i*") == r"pairs (i\*, t\*), or `*/*` of i\*"
    assert r"(i\*, t\*)" in GENERATED["reference/http.md"]


def test_bodies_that_a_page_sends_by_curl_name_their_media_type() -> None:
    """Else curl says that they are a form."""
    for page, text in WRITTEN.items():
        blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        commands = [command for block in blocks for command in re.split(r"^(?=curl )", block, flags=re.MULTILINE)]
        sending = [command for command in commands if re.search(r"curl.* (-d|--data\S*) ", command, re.DOTALL)]
        assert not [command for command in sending if "Content-Type" not in command], page
