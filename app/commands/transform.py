"""`bochner transform`: files of rows into files of features, computed here."""

from typing import Any

from app.commands import bulk
from app.commands.options import AddParser


def add(add_parser: AddParser) -> None:
    """Add the command."""
    parser = add_parser("transform", help="turn files of rows into files of features, by a map of a running service")
    bulk.add_files(parser)
    parser.add_argument("--dtype", metavar="DTYPE", help="float16, float32 or float64. [the map's own]")
    parser.set_defaults(run=run)


def run(dtype: str | None, **options: Any) -> None:
    """Compute features, as `/transform` does."""
    bulk.run(called={"features": dtype}, encoding=None, dtype=dtype, **options)
