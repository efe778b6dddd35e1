"""`bochner hash`: files of rows into files of codes, computed here."""

from typing import Any

from app.commands import bulk
from app.commands.options import AddParser

_ENCODINGS = ("zero_bit", "b_bit", "packed", "one_hot", "pairs", "fingerprint")


def add(add_parser: AddParser) -> None:
    """Add the command."""
    parser = add_parser("hash", help="turn files of rows into files of codes, by a map of a running service")
    bulk.add_files(parser)
    parser.add_argument(
        "--encoding", choices=_ENCODINGS, help="As of `/codes`. [zero_bit of kernel gmm, packed of Fourier maps]"
    )
    parser.add_argument("--bits", type=int, help="Bits of a code, where the encoding has some.")
    parser.add_argument("--bits-of", choices=("index", "mixed_index", "pair"), help="What they are taken from.")
    parser.add_argument("--rows-per-band", type=int, help="Signed codes of a fingerprint, of Fourier maps. [16]")
    parser.add_argument(
        "--on-zero", choices=("refuse", "mark"), default="refuse", help="Mark rows that are all zero by codes of -1."
    )
    parser.set_defaults(run=run)


def run(
    encoding: str | None,
    bits: int | None,
    bits_of: str | None,
    rows_per_band: int | None,
    on_zero: str,
    **options: Any,
) -> None:
    """Compute codes, as `/codes` does."""
    codes = {
        "encoding": encoding,
        "bits": bits,
        "bits_of": bits_of,
        "rows_per_band": rows_per_band,
        "on_zero": on_zero,
    }
    bulk.run(called={"codes": codes}, encoding=codes, dtype=None, **options)
