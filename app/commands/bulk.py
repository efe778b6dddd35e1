"""`bochner transform` and `bochner hash`: turn files of rows into files of features or codes, computed locally."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from app.commands.options import AddParser, add_settings
from app.settings import ClientSettings

if TYPE_CHECKING:  # the client takes long to load, and most commands need none
    from bochner.bulk.runs import Runner
    from bochner_client import Client

_THIS_MACHINE = "local"
_ENCODINGS = ("zero_bit", "b_bit", "packed", "one_hot", "pairs", "fingerprint")


def add(add_parser: AddParser) -> None:
    """Add the commands."""
    parser = add_parser("transform", help="turn files of rows into files of features, by a map of a running service")
    _add_files(parser)
    parser.add_argument("--dtype", metavar="DTYPE", help="float16, float32 or float64. [the map's own]")
    parser.set_defaults(run=run_transform)
    parser = add_parser("hash", help="turn files of rows into files of codes, by a map of a running service")
    _add_files(parser)
    parser.add_argument(
        "--encoding", choices=_ENCODINGS, help="As of `/codes`. [zero_bit of kernel gmm, packed of Fourier maps]"
    )
    parser.add_argument("--bits", type=int, help="Bits of a code, where the encoding has some.")
    parser.add_argument("--bits-of", choices=("index", "mixed_index", "pair"), help="What they are taken from.")
    parser.add_argument("--rows-per-band", type=int, help="Signed codes of a fingerprint, of Fourier maps. [16]")
    parser.add_argument(
        "--on-zero", choices=("refuse", "mark"), default="refuse", help="Mark rows that are all zero by codes of -1."
    )
    parser.set_defaults(run=run_hash)


def _add_files(parser: argparse.ArgumentParser) -> None:
    """Add arguments for input and output, and for what is read and written there."""
    parser.add_argument("source", metavar="IN", help="File or folder: a path, or an address that fsspec knows.")
    parser.add_argument("out", metavar="OUT", help="Folder; or, where IN is a file, a file.")
    parser.add_argument("--map", required=True, metavar="NAME", dest="name", help="Name of the map.")
    parser.add_argument("--columns", metavar="A,B,…", help="Columns of the vector. [all but that of the ids]")
    parser.add_argument(
        "--id", metavar="COLUMN", dest="ids", help="Column that is kept beside the results. [id, without --columns]"
    )
    parser.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="Whether a CSV begins with a line of names. [it does, and a line of numbers is refused]",
    )
    parser.add_argument("--format", dest="file_format", choices=("parquet", "csv", "npy"), help="Of new files. [as IN]")
    parser.add_argument("--rows-per-file", type=_positive, metavar="N", help="At most. [as many as make 256 MiB]")
    parser.add_argument(
        "--ray",
        nargs="?",
        const=_THIS_MACHINE,
        metavar="ADDRESS",
        help="Have the cluster of Ray at this address do the work, or one of this machine; written last.",
    )
    add_settings(parser, of=ClientSettings)


def run_transform(dtype: str | None, **options: Any) -> None:
    """Compute features, as `/transform` does."""
    _run(called={"features": dtype}, encoding=None, dtype=dtype, **options)


def run_hash(**options: Any) -> None:
    """Compute codes, as `/codes` does."""
    codes = {name: options.pop(name) for name in ("encoding", "bits", "bits_of", "rows_per_band", "on_zero")}
    _run(called={"codes": codes}, encoding=codes, dtype=None, **options)


def _run(
    source: str,
    out: str,
    name: str,
    columns: str | None,
    ids: str | None,
    header: bool | None,
    file_format: str | None,
    rows_per_file: int | None,
    ray: str | None,
    called: dict[str, Any],
    encoding: dict[str, Any] | None,
    dtype: str | None,
    **options: Any,
) -> None:
    """Compute with the map as it is now, and print a report; exit with status 1 if some results are missing."""
    _require_bulk_extra("bulk", "pyarrow", "fsspec")
    runner = _runner(ray)
    from bochner import bulk

    with _service(options) as client:
        frozen = client.export_map(name, "npz")
    computing = bulk.Computing(frozen, encoding, dtype)
    names = None if columns is None else columns.split(",")
    of_vectors = bulk.Columns(computing.input_dim, None if names is None else tuple(names), ids, header)
    note = {"map": computing.digest, "results": called, "columns": names, "id": ids, "header": header}
    try:
        sizes: dict[str, Any] = {"file_format": file_format, "rows_per_file": rows_per_file}
        report = bulk.run(source, out, computing, of_vectors, note, **sizes, runner=runner)
    except KeyboardInterrupt:
        sys.exit("Stopped. The same command goes on from here.")
    except bulk.Unwritable as error:
        sys.exit(f"{error}. The same command goes on from here.")
    for line in (*report.warnings, *report.complaints):
        sys.stderr.write(line + "\n")
    sys.stdout.write(f"{report}\n")
    if report.complaints:
        sys.exit(1)


@contextmanager
def _service(options: dict[str, Any]) -> Iterator["Client"]:
    """Yield a client of the service that the options name; exit with a one-line message if a request fails."""
    from bochner_client import BochnerError, Client

    settings = ClientSettings(**options)
    try:
        # No retries, as the address may be wrong.
        with Client(settings.url, settings.read_key(), patience=0) as client:
            yield client
    except BochnerError as error:
        sys.exit(str(error))


def _runner(ray: str | None) -> "Runner | None":
    if ray is None:
        return None
    _require_bulk_extra("ray", "ray")
    from bochner.bulk.on_ray import on_ray

    return on_ray(None if ray == _THIS_MACHINE else ray)


def _require_bulk_extra(extra: str, *packages: str) -> None:
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise ValueError(f"{' and '.join(missing)} is not installed: pip install '.[{extra}]' in a checkout")


def _positive(text: str) -> int:
    if (found := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {found}")
    return found
