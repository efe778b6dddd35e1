"""Compilation or loading of all compiled loops that requests can reach in a process, before its first request.

This module alone lists the calls that are needed for this. Loops that no earlier process has stored on disk are
compiled by separate processes, in parallel, and then loaded: a compiler leaves a hundred megabytes of memory behind.
"""

import ctypes
import gc
import logging
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import psutil
from filelock import FileLock
from numpy.typing import DTypeLike
from scipy.sparse import csr_array

from app.core.arrays import Floats
from app.core.compiled import NotKept, keep_in, kept_in, loading_only
from app.core.diagnostics.error_matrix import HermitianTiles
from app.core.discrepancy.box_discrepancy import BoxDiscrepancy
from app.core.hashing.encodings import Encoder, Encoding
from app.core.indexes import labels
from app.core.indexes.banding import Banding, Candidates, bucket_words, segment
from app.core.indexes.duplicates import duplicates
from app.core.indexes.hashed_rows import first_bands
from app.core.indexes.search import nearest
from app.core.json_text import check_names, spans
from app.core.length_scales import as_they_are
from app.core.maps import make_map
from app.core.maps.terms import Dtype, Form
from app.core.neighbours import distances_to_neighbour
from app.core.norms import unit_rows
from app.core.panels import orthonormal
from app.core.progress import no_pause
from app.core.spec import MapSpec
from app.own_process import command
from app.processors import available

logger = logging.getLogger(__name__)

_GAUSSIAN = '{"kind": "gaussian", "length_scale": 1}'
_FOURIER = f'{{"input_dim": 1, "s": 1, "kernel": {_GAUSSIAN}, "sampler": {{"kind": "monte_carlo"}}}}'
_STRUCTURED = f'{{"input_dim": 8, "s": 1, "kernel": {_GAUSSIAN}, "sampler": {{"kind": "structured_orthogonal"}}}}'
# In float64, so that rows are not rounded, and so copied, before they reach the loops.
_HASHING = '{"input_dim": 1, "s": 1, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "dtype": "float64"}'
_DARTS = _HASHING.replace("gcws", "dart_minhash")
_LANDMARKS = """{"input_dim": 1, "kernel": {"kind": "matern", "length_scale": 1, "nu": 1.5},
    "sampler": {"kind": "uploaded_landmarks", "landmarks": [[1], [-1]]}}"""
_SPARSE_LANDMARKS = """{"input_dim": 1, "kernel": {"kind": "matern", "length_scale": 1, "nu": 1.5},
    "sampler": {"kind": "uploaded_landmarks", "landmarks": [{"indices": [0], "values": [1]}]}}"""
_CHI_SQUARED = """{"input_dim": 1, "kernel": {"kind": "chi_squared"},
    "sampler": {"kind": "uploaded_landmarks", "landmarks": [[1]]}}"""
_CAUCHY = _CHI_SQUARED.replace('"chi_squared"', '"cauchy", "length_scale": 1')
_SUBSETS = """{"input_dim": 1, "s": 1, "kernel": {"kind": "anova", "length_scale": 1, "subsets": [[0]]},
    "sampler": {"kind": "monte_carlo"}}"""
# Maps of this many coordinates hash without tables.
_DRAWN_DIM = 1 << 31
_MADV_DONTNEED = 4
# Compiled loops take some 20 MB.
_LEAST_FREE = 64 << 20


def _row(dtype: DTypeLike, d: int = 1) -> Floats:
    """Return a row as read from a request body, read-only: loops compiled for it also accept writable rows."""
    row = np.ones((1, d), dtype)
    row.flags.writeable = False
    return row


def _features() -> None:
    """Run the loops of features: find a neighbour, make a direction, transform a row and compare it.

    A length scale finds neighbours, and maps are drawn from directions. The row is read-only, and is used in every form
    and dtype, with every projection. Landmark maps compare it with landmarks by products, computed by loops of the
    projections, and compare it again directly with the landmark that it equals.
    """
    fourier, structured, landmarks, sparse_landmarks = (
        MapSpec.model_validate_json(spec) for spec in (_FOURIER, _STRUCTURED, _LANDMARKS, _SPARSE_LANDMARKS)
    )
    for form, dtype in product(Form, Dtype):
        found = make_map(fourier.model_copy(update={"form": form, "dtype": dtype, "normalize": True}))
        for row in (_row(dtype), csr_array(_row(dtype))):
            found.transform(row)
            found.gram(row, row)
            unit_rows(row)
    for rows in (np.ones((1, 1)), csr_array(np.ones((1, 1)))):
        distances_to_neighbour(rows, rows, 0, "euclidean", as_they_are)
    orthonormal(np.ones((1, 1, 1)))
    for dtype in Dtype:
        rotated = make_map(structured.model_copy(update={"dtype": dtype}))
        rotated.transform(_row(dtype, structured.input_dim))
        rotated.codes(_row(dtype, structured.input_dim))
        for of in (landmarks, sparse_landmarks):
            make_map(of.model_copy(update={"dtype": dtype})).transform(_row(dtype))


def _hashes() -> None:
    """Run the loops of hashing: hash a row in every way, compare it with itself, by codes and by exact kernels.

    Also run those of indexes: find codes among codes, near duplicates, an id among ids, and the first band in which
    codes agree.
    """
    rows = _row(np.float64)
    hashing = MapSpec.model_validate_json(_HASHING)
    tables, drawn = (make_map(hashing.model_copy(update={"input_dim": d})) for d in (1, _DRAWN_DIM))
    tables.codes(rows)
    drawn.codes(csr_array(([1.0], [0], [0, 1]), shape=(1, _DRAWN_DIM)))
    make_map(MapSpec.model_validate_json(_DARTS)).codes(rows)
    tables.gram(rows, rows)
    tables.chances(rows, rows, Encoder(Encoding.zero_bit))
    codes = tables.codes(rows, Encoder(Encoding.packed, 8))
    nearest(codes, codes, 1, 8, 1)
    bands = Banding(1, 1)
    labels.at(b"\1\0a", labels.count(b"\1\0a") - 1)
    candidates = Candidates((segment(codes, 1, 8, bands),), 1)
    candidates.of(candidates.buckets(bucket_words(codes, 1, 8, bands)[:, 0].copy()))
    first_bands(codes, codes[None], codes, 1, no_pause)
    duplicates(np.array([[0, 0], [0, 1]], np.uint8), 2, 8, 1)
    others = (make_map(MapSpec.model_validate_json(spec)) for spec in (_CHI_SQUARED, _CAUCHY, _SUBSETS))
    for its_map in (tables, *others):
        for exact in (rows, csr_array(rows)):
            its_map.exact_gram(exact, exact)
            its_map.exact_pairs(exact, exact)


def _measures() -> None:
    """Run the loops of measures: one frequency on a box, products of real and complex matrices, and lists in JSON."""
    discrepancy = BoxDiscrepancy(MapSpec.model_validate_json(_FOURIER).kernel, np.ones(1))
    discrepancy.evaluate(np.ones((1, 1)))
    discrepancy.value_and_gradient(np.ones((1, 1)))
    for is_complex in (False, True):
        tiles = HermitianTiles(1, is_complex)
        tiles.add(np.ones((1, 1)))
        tiles.product(np.ones(1))
    list(spans(b"[]", 1))
    check_names(b"{}")


PARTS: dict[str, Callable[[], None]] = {"features": _features, "hashes": _hashes, "measures": _measures}
"""Loops that one process compiles together. The first part takes as long as all others, so two run at once."""


cold = [*PARTS]
"""Parts that are not ready in this process yet."""


def get_ready() -> None:
    """Warm up at the end of a start, and then turn on garbage collection, which is off during the start.

    There is little garbage during the start, and its collection would take a seventh of the time. Objects from the
    start are excluded from later collections: they stay, and to examine them would block everything for a tenth of a
    second each time.
    """
    try:
        warm_up()
    finally:
        gc.freeze()
        gc.enable()


def warm_up() -> None:
    """Make every loop of `PARTS` ready in this process, and release the memory that only the start needs."""
    missing = [part for part in PARTS if not _loads(part)]
    if missing:
        gc.enable()  # compiling creates much garbage
        _compile(missing)
    release_programs()


def _loads(part: str) -> bool:
    """Load the loops of a part from disk; return whether all of them were there."""
    try:
        with loading_only():
            _run(part)
    except NotKept:
        return False
    return True


def _compile(missing: list[str]) -> None:
    """Compile parts in separate processes, and load them; or in this process, if no directory is writable.

    Where the disk is full, compiled loops are kept in a temporary directory.
    """
    with ExitStack() as stack:
        place, told = kept_in(), []
        if place is None or shutil.disk_usage(place).free < _LEAST_FREE:
            try:
                told = [stack.enter_context(TemporaryDirectory())]
            except OSError:
                for part in missing:
                    _run(part)
                return
            keep_in(told[0])
            place = Path(told[0])
        turns = threading.Semaphore(available())
        # A service that is told to end while loops are compiled does not wait for such threads.
        each = ((part, place, told, turns) for part in missing)
        threads = [threading.Thread(target=_compile_elsewhere, args=args, daemon=True) for args in each]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _compile_elsewhere(part: str, place: Path, told: list[str], turns: threading.Semaphore) -> None:
    # Services and workers that start at the same time do not compile the same part twice.
    with turns, FileLock(place / f"{part}.lock"):
        if not _loads(part):
            logger.info("compiling %s, part %d of %d, once", part, [*PARTS].index(part) + 1, len(PARTS))
            line = command("app.services.warm_up", part, *told)
            code = subprocess.run(line, stdin=subprocess.DEVNULL, check=False).returncode  # noqa: S603
            if code:
                logger.warning("the process that compiles %s ended with code %d", part, code)
            _run(part)


def _run(part: str) -> None:
    PARTS[part]()
    if part in cold:
        cold.remove(part)


def release_programs() -> None:
    """Release the memory of program files, 70 MB of which belong to the compiler; used pages are loaded again at once.

    The system keeps the files in its cache while there is room. Nothing is lost: a page of a file that nobody has
    written to, neither in memory nor in swap, is the same in the file. Programs stay mapped until the process ends, so
    no other thread can put anything else at their addresses meanwhile.
    """
    if sys.platform != "linux":
        return
    advise = ctypes.CDLL(None).madvise
    with suppress(OSError, psutil.Error):  # if the system does not list the mappings, the memory is not released
        parts = psutil.Process().memory_maps(grouped=False)
        programs = {part.path for part in parts if part.path.startswith("/") and "x" in part.perms}
        for part in parts:
            if part.path in programs and "w" not in part.perms and not (part.anonymous or part.swap):
                start, end = (int(address, 16) for address in part.addr.split("-"))
                advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _MADV_DONTNEED)


def main(part: str | None = None, directory: str | None = None) -> None:
    """Compile one part, or all, in this process, and store the compiled loops in `directory` if it is given."""
    if directory is not None:
        keep_in(directory)
    for wanted in PARTS if part is None else [part]:
        PARTS[wanted]()


if __name__ == "__main__":
    main(*sys.argv[1:])
