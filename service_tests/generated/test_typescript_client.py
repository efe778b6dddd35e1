"""Types that openapi-typescript makes of the document, and openapi-fetch with them, call every operation.

The calls are written as TypeScript with their bodies in full, so that the compiler compares each with the document.
"""

import base64
import io
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from docs.calls import JSON, Call
from service_tests.api.operations import DOCUMENT, OPERATIONS
from service_tests.generated.conftest import Target

OPENAPI = Path(__file__).parents[2] / "openapi" / "openapi.json"
TOOLS = Path(__file__).parent / "typescript" / "node_modules"
CONFIGURATION = """{"files": ["calls.ts"], "compilerOptions": {
  "strict": true, "noUncheckedIndexedAccess": true, "noEmitOnError": true, "target": "es2022", "types": ["node"],
  "lib": ["es2022", "dom"], "module": "nodenext", "moduleResolution": "nodenext", "outDir": "made"
}}"""
HEAD = """\
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const [url, key] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url!, headers: { Authorization: `Bearer ${key}` } });
const asItIs = (body: unknown) => body as BodyInit;
const bytes = (text: string) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
function told(operation: string, response: Response, error: unknown, data: unknown): void {
  if (error !== undefined) throw new Error(`${operation}: ${response.status} ${JSON.stringify(error)}`);
  const shown = data instanceof ArrayBuffer ? Buffer.from(data).toString("base64") : (data ?? null);
  console.log(JSON.stringify([operation, response.status, shown]));
}
"""
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed"),
    pytest.mark.skipif(not TOOLS.is_dir(), reason="npm install --prefix service_tests/generated/typescript"),
]


def test_every_operation_is_called_with_bodies_and_answers_of_the_types_of_the_document(
    tmp_path: Path, target: Target
) -> None:
    (tmp_path / "node_modules").symlink_to(TOOLS)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(CONFIGURATION)
    # What has a default may be left out of a body.
    types = (str(TOOLS / ".bin" / "openapi-typescript"), str(OPENAPI), "-o", "api.ts")
    run(tmp_path, *types, "--default-non-nullable=false")
    (tmp_path / "calls.ts").write_text(HEAD + "\n".join(map(written, target.calls)))
    run(tmp_path, str(TOOLS / ".bin" / "tsc"))
    said = run(tmp_path, "node", str(tmp_path / "made" / "calls.js"), target.url, target.key)
    answers = [json.loads(line) for line in said.splitlines()]
    assert [tuple(one[:2]) for one in answers] == [(call.operation, call.status) for call in target.calls]
    by_title = {(call.operation, call.title): told for call, (*_, told) in zip(target.calls, answers, strict=True)}
    array = np.load(io.BytesIO(base64.b64decode(by_title["transform", "npy_both_ways"])))
    assert array == pytest.approx(np.array(by_title["transform", "dense"]["features"]), rel=1e-6)


def run(folder: Path, *command: str) -> str:
    """Run a tool; its words."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def written(call: Call) -> str:
    """A call as TypeScript: the types of its answer, of its parameters and of its body are those of the document."""
    method, path = OPERATIONS[call.operation]
    parameters = {"path": dict(call.path), "query": dict(call.query)}
    said: dict[str, Any] = {"params": {name: of for name, of in parameters.items() if of}}
    more = ""
    headers = call.asked
    if call.content:
        headers["Content-Type"] = "application/x-npy"
        # Bytes are strings to these types, and openapi-fetch is told to send them as they are.
        text = json.dumps(base64.b64encode(call.content).decode())
        more = f"body: bytes({text}) as unknown as string, bodySerializer: asItIs,"
    elif call.body is not None:
        said["body"] = call.body
    if call.accept != JSON:
        more += f' parseAs: "{"text" if call.accept.startswith(("text/", "image/")) else "arrayBuffer"}",'
    options = json.dumps({**said, "headers": headers}, ensure_ascii=False)[1:-1]
    sent = f"await client.{method}({json.dumps(path)}, {{ {options}, {more} }})"
    described = type_of(call)
    # Other formats than JSON are strings to these types.
    narrowed = 'if (typeof data === "string") throw new Error(data);' if described != "unknown" else ""
    answer = f"const answer: {described} = data; told({json.dumps(call.operation)}, response, error, answer);"
    return f"{{ const {{ data, error, response }} = {sent}; {narrowed} {answer} }}"


def type_of(call: Call) -> str:
    """The type of an answer: its schema among the components, where it is JSON of one."""
    method, path = OPERATIONS[call.operation]
    kinds = {
        one.get("content", {}).get(JSON, {}).get("schema", {}).get("$ref", "")
        for status, one in DOCUMENT["paths"][path][method.lower()]["responses"].items()
        if status.startswith("2")
    }
    if call.accept != JSON or call.content or len(kinds) != 1 or kinds == {""}:
        return "unknown"
    return f'components["schemas"]["{re.sub(".*/", "", kinds.pop())}"] | undefined'
