"""The pictures of the documentation, as a running service draws them.

`python -m docs.pictures [--url http://localhost:8000]` asks a service for each of them, about the letters of
`examples/`, and writes them into `docs/pictures/`. The maps and the dataset are deleted again.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "pictures"
LETTERS = "letters"
_GAUSSIAN = {"kind": "gaussian", "length_scale": 5.0}
MAPS: Mapping[str, Mapping[str, Any]] = {
    LETTERS: {"input_dim": 16, "s": 512, "seed": 7, "kernel": _GAUSSIAN, "sampler": {"kind": "halton"}},
    "letters-gmm": {"input_dim": 16, "s": 512, "seed": 7, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}},
}


class Picture(NamedTuple):
    """What is asked for a picture."""

    path: str
    body: Mapping[str, Any]


PICTURES: Mapping[str, Picture] = {
    "gram": Picture(f"/v1/maps/{LETTERS}/diagnostics/gram", {"dataset": LETTERS, "rows": 1000}),
    "box-discrepancy": Picture(
        f"/v1/maps/{LETTERS}/diagnostics/box-discrepancy",
        {"dataset": LETTERS, "box_scales": [1, 0.5, 0.25, 0.125, 0.0625]},
    ),
    "collisions": Picture(
        "/v1/maps/letters-gmm/diagnostics/collisions", {"dataset": LETTERS, "rows": 500, "bits": 4, "gamma": 2}
    ),
    "variance": Picture(
        "/v1/maps/letters-gmm/diagnostics/variance", {"correlations": [i / 20 for i in range(20)], "gamma": 2}
    ),
    "recommendations": Picture(
        "/v1/recommendations", {"dataset": LETTERS, "rows": 500, "kernel": _GAUSSIAN, "budget": 512, "seeds": 3}
    ),
    "advice": Picture("/v1/indexes/advice", {"map": "letters-gmm", "dataset": LETTERS}),
}


def drawn(http: httpx.Client) -> dict[str, str]:
    """The pictures as the service draws them, by name, with what they are of put before and deleted after."""
    letters = (ROOT / "examples" / "letters.npy").read_bytes()
    put: dict[str, dict[str, Any]] = {
        f"/v1/datasets/{LETTERS}": {"content": letters, "headers": {"Content-Type": "application/x-npy"}}
    }
    put |= {f"/v1/maps/{name}": {"json": spec} for name, spec in MAPS.items()}
    try:
        for path, body in put.items():
            http.put(path, **body).raise_for_status()
        return {name: _drawn(http, asked) for name, asked in PICTURES.items()}
    finally:
        for path in put:
            http.delete(path)


def _drawn(http: httpx.Client, asked: Picture) -> str:
    headers = {"Accept": "image/svg+xml", "Prefer": "wait=120"}
    answer = http.post(asked.path, json=dict(asked.body), headers=headers)
    if answer.status_code != httpx.codes.OK:
        raise RuntimeError(f"{asked.path}: {answer.status_code} {answer.text[:500]}")
    return answer.text


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://localhost:8000", help="of a running service")
    with httpx.Client(base_url=parser.parse_args().url, timeout=150) as http:
        FOLDER.mkdir(exist_ok=True)
        for name, picture in drawn(http).items():
            (FOLDER / f"{name}.svg").write_text(picture)


if __name__ == "__main__":
    main()
