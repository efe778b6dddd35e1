"""Has every compiled loop that a request can reach in this process before the first request comes.

Here, and only here, stands what has to be called for that. What no earlier process has left on disk is compiled by
processes of their own, side by side, and loaded: a compiler that has worked leaves a hundred megabytes behind.
"""

import ctypes
import gc
import logging
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
# In float64, for rows not to be rounded, and so copied, on their way to the loops.
_HASHING = '{"input_dim": 1, "s": 1, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "dtype": "float64"}'
_DARTS = _HASHING.replace("gcws", "dart_minhash")
_LANDMARKS = """{"input_dim": 1, "kernel": {"kind": "matern", "length_scale": 1, "nu": 1.5},
    "sampler": {"kind": "uploaded_landmarks", "landmarks": [[1], [-1]]}}"""
_SPARSE_LANDMARKS = """{"input_dim": 1, "kernel": {"kind": "matern", "length_scale": 1, "nu": 1.5},
    "sampler": {"kind": "uploaded_landmarks", "landmarks": [{"indices": [0], "values": [1]}]}}"""
_CHI_SQUARED = """{"input_dim": 1, "kernel": {"kind": "chi_squared"},
    "sampler": {"kind": "uploaded_landmarks", "landmarks": [[1]]}}"""
_SUBSETS = """{"input_dim": 1, "s": 1, "kernel": {"kind": "anova", "length_scale": 1, "subsets": [[0]]},
    "sampler": {"kind": "monte_carlo"}}"""
# Maps of so many coordinates hash without tables.
_DRAWN_DIM = 1 << 31
_MADV_DONTNEED = 4


def _row(dtype: DTypeLike, d: int = 1) -> Floats:
    """A row as the bodies of requests have them: what is compiled for it serves rows that can be written to as well."""
    row = np.ones((1, d), dtype)
    row.flags.writeable = False
    return row


def _features() -> None:
    """Seek a neighbour, as length scales do, and make a direction, as maps are drawn from; then transform and compare.

    That is done with a row that nobody may write to, in every form and dtype, by every projection. It is compared with
    landmarks by products, which are made by loops of the former, and anew with the one it equals.
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
    """Hash one row in each way that has a loop, compare it with itself, and exactly by all kernels that have loops.

    And find its codes among codes, much the same codes, an id among ids, and the first band in which codes agree.
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
    candidates = Candidates((segment(codes, 8, bands),), 1)
    candidates.of(candidates.buckets(bucket_words(codes, 8, bands)[:, 0].copy()))
    first_bands(codes, codes[None], codes, 1, no_pause)
    duplicates(np.array([[0, 0], [0, 1]], np.uint8), 2, 8, 1)
    for its_map in (tables, *(make_map(MapSpec.model_validate_json(spec)) for spec in (_CHI_SQUARED, _SUBSETS))):
        for exact in (rows, csr_array(rows)):
            its_map.exact_gram(exact, exact)
            its_map.exact_pairs(exact, exact)


def _measures() -> None:
    """Measure one frequency on a box, multiply a matrix of either kind, and look for lists in JSON."""
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
"""What one process compiles together. The first takes as long as the others together, so that two are done at once."""


cold = [*PARTS]
"""The parts that are not ready in this process yet."""


def get_ready() -> None:
    """Warm up at the end of a start, in which no garbage was sought: there is little, and the search takes a seventh.

    From now on it is sought, though not among what the start has made: that stays, and to go through it would hold up
    everything for a tenth of a second each time.
    """
    try:
        warm_up()
    finally:
        gc.freeze()
        gc.enable()


def warm_up() -> None:
    """Have every loop of `PARTS` ready in this process, and give back the memory that only the start needs."""
    missing = [part for part in PARTS if not _loads(part)]
    if missing:
        gc.enable()  # compiling makes much
        _compile(missing)
    release_programs()


def _loads(part: str) -> bool:
    """Whether all loops of a part were on disk; they are loaded then."""
    try:
        with loading_only():
            _run(part)
    except NotKept:
        return False
    return True


def _compile(missing: list[str]) -> None:
    """Compile parts in processes of their own, and load them; in this one, if nothing can be written anywhere."""
    with ExitStack() as stack:
        place, told = kept_in(), []
        if place is None:
            try:
                told = [stack.enter_context(TemporaryDirectory())]
            except OSError:
                for part in missing:
                    _run(part)
                return
            keep_in(told[0])
            place = Path(told[0])
        with ThreadPoolExecutor(available()) as pool:
            for _ in pool.map(lambda part: _compile_elsewhere(part, place, told), missing):
                pass


def _compile_elsewhere(part: str, place: Path, told: list[str]) -> None:
    # Services and workers that start at the same time do not compile the same.
    with FileLock(place / f"{part}.lock"):
        if not _loads(part):
            logger.info("compiling %s; the next start finds them, if they can be kept", part)
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
    """Give back the memory of program files, of which the compiler alone has 70 MB; what is used comes back at once.

    The system keeps the files in its cache while there is room. Nothing is lost: a part of a file that nobody has
    written to, neither in memory nor in swap, is the same in the file. Programs stay where they are until the process
    ends. So no other thread can put anything else at their addresses meanwhile.
    """
    if sys.platform != "linux":
        return
    advise = ctypes.CDLL(None).madvise
    with suppress(OSError, psutil.Error):  # where the system does not say what there is, it stays
        parts = psutil.Process().memory_maps(grouped=False)
        programs = {part.path for part in parts if part.path.startswith("/") and "x" in part.perms}
        for part in parts:
            if part.path in programs and "w" not in part.perms and not (part.anonymous or part.swap):
                start, end = (int(address, 16) for address in part.addr.split("-"))
                advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _MADV_DONTNEED)


def main(part: str | None = None, directory: str | None = None) -> None:
    """Compile a part, or all, in this process, and keep what is compiled in the directory, if one is named."""
    if directory is not None:
        keep_in(directory)
    for wanted in PARTS if part is None else [part]:
        PARTS[wanted]()


if __name__ == "__main__":
    main(*sys.argv[1:])
