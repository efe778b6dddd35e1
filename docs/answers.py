"""The recorded answers of the OpenAPI document.

`python -m docs.answers --url http://localhost:8000 --key KEY` makes the calls of `docs/calls.py` to a new service, with
the key of an administrator (`bochner keys create NAME --role admin` makes one), and writes what it answers into
`openapi/answers/`. Long texts, and the catalogue, are cut; pictures and arrays of bytes are left out.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import httpx

from docs.calls import JSON, Call, calls, prepared

FOLDER = Path(__file__).parent.parent / "openapi" / "answers"
DOCUMENT = Path(__file__).parent.parent / "openapi" / "openapi.json"
_MOST_LINES = 12


def sent(http: httpx.Client, call: Call) -> httpx.Response:
    """Make a call."""
    document = json.loads(DOCUMENT.read_text())
    method, path = next(
        (method, path)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if operation["operationId"] == call.operation
    )
    content: dict[str, Any] = {}
    if call.content:
        content = {"content": call.content, "headers": {"Content-Type": "application/x-npy"}}
    elif call.body is not None:
        content = {"json": call.body}
    headers = {**call.asked, **content.pop("headers", {})}
    answer = http.request(method, path.format(**call.path), params=call.query, headers=headers, **content)
    if answer.status_code != call.status:
        raise RuntimeError(f"{call.operation} {call.title}: {answer.status_code} {answer.text[:500]}")
    return answer


def answer_file(call: Call, answer: httpx.Response) -> dict[str, str]:
    """What is recorded of an answer, by the name of its file; nothing of pictures, arrays and empty answers."""
    media_type = answer.headers.get("Content-Type", "").partition(";")[0]
    name = f"{call.operation}.{call.status}.{call.title}"
    if media_type == JSON and answer.content:
        return {f"{name}.json": json.dumps(_cut(call, answer.json()), indent=2, ensure_ascii=False) + "\n"}
    if media_type.startswith("text/"):
        return {f"{name}.txt": "\n".join(answer.text.splitlines()[:_MOST_LINES]) + "\n"}
    return {}


def _cut(call: Call, answer: Any) -> Any:
    """An answer short enough to read: of the catalogue one kind of each family; never the secret of a key."""
    if call.operation == "catalog":
        # One that refers to nothing: readers of the document look for what is referred to, in examples too.
        plain = (
            (family, (kind for kind in kinds.items() if "$ref" not in str(kind))) for family, kinds in answer.items()
        )
        return {family: dict(list(kinds)[:1]) for family, kinds in plain}
    if call.operation == "create_key":
        return {**answer, "key": "bochner_" + "x" * 24}
    return answer


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://localhost:8000", help="of a new service")
    parser.add_argument("--key", required=True, help="of an administrator")
    options = parser.parse_args()
    headers = {"Authorization": f"Bearer {options.key}"}
    with httpx.Client(base_url=options.url, headers=headers, timeout=150) as http:
        files: dict[str, str] = {}
        for call in calls(prepared(http)):
            files |= answer_file(call, sent(http, call))
    FOLDER.mkdir(exist_ok=True)
    for file in FOLDER.iterdir():
        file.unlink()
    for name, text in files.items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
