"""What other kinds of processors build and compute, imitated by processes that leave newer instructions alone."""

import os
import platform
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from subprocess import run
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.hashing.signed_codes import SIGNED
from app.core.maps import FeatureMap, family_of, open_map
from app.core.maps.base import PAIRS
from app.core.maps.terms import Dtype, Form, Gives
from app.core.spec import MapSpec
from service_tests.core.combinations import (
    COUNTED,
    Fields,
    dimensions,
    goes_together,
    named,
    pairs,
    rows,
    size_of,
    with_rows,
)
from service_tests.core.specs import spec

IMITATED = sys.platform == "linux" and platform.machine() == "x86_64"
"""Whether other processors can be imitated: only here are libraries told which instructions to leave alone."""

_NO_AVX_512 = "X86_V4 AVX512_ICL AVX512_SPR"
_LOOPS = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma"}
PROCESSORS: dict[str, dict[str, str]] = {
    "AVX-512": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "AVX2": {
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": _NO_AVX_512,
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL",
        **_LOOPS,
    },
    "SSE4.2": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": f"X86_V3 {_NO_AVX_512}",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-FMA,-FMA4",
        **_LOOPS,  # without fused multiply-add they take minutes; test_vector_widths.py has such
    },
}
"""Kinds of processors, and what tells NumPy, OpenBLAS, the C library and the compiler of loops to be on one.

From 2017 on, from 2013 on, and older ones. A machine imitates those it could be.
"""


LONG = 10
"""Entries of vectors that are tried in one dtype, where all samplers are."""


class Case(NamedTuple):
    """A combination, as it is built."""

    kernel: Fields
    sampler: Fields
    spec: MapSpec

    def named(self) -> str:
        """What tells it apart."""
        scale = self.kernel.get("length_scale")
        words = [named(self.kernel), named(self.sampler), self.spec.form, self.spec.dtype, self.spec.input_dim]
        return " ".join(map(str, [*words, "ard" if isinstance(scale, list) else ""])).strip()


class Key(NamedTuple):
    """What is compared, of all maps of a kernel and a sampler."""

    kernel: str
    sampler: str
    is_array: bool
    what: str


def parts(name: str) -> Key:
    """What stands under a name of `elsewhere`."""
    case, place, what = name.split("/")
    kernel, sampler = (kind.partition("-")[0] for kind in case.split(" ")[:2])
    return Key(kernel, sampler, place == "array", what.partition(",")[0])


def differing(found: dict[str, Any], other: dict[str, Any]) -> set[Key]:
    """What differs in some bit."""
    if found.keys() != other.keys():
        raise AssertionError(f"{found.keys() ^ other.keys()} is in one only")
    return {parts(name) for name, array in found.items() if array.tobytes() != other[name].tobytes()}


def here() -> list[str]:
    """The kinds that this machine can be."""
    with Path("/proc/cpuinfo").open() as info:
        flags = next(line for line in info if line.startswith("flags")).split()
    needs = {"AVX-512": "avx512vl", "AVX2": "avx2", "SSE4.2": "sse4_2"}
    return [kind for kind in PROCESSORS if needs[kind] in flags]


def cases(d: int, samplers: str = "") -> Iterator[Case]:
    """Every combination that has a map, in one form after the other; of some samplers, if named.

    Each in both dtypes; of all samplers with long vectors in either, one after the other, as short ones have seen both.
    """
    count = Counter[tuple[str, str]]()
    for number, (kernel, sampler) in enumerate(pair for pair in pairs(d) if goes_together(*pair)):
        if samplers and sampler["kind"] not in samplers.split():
            continue
        if sampler["kind"] == "uploaded":  # what clients upload is the same everywhere: more digits hang on the kernel
            sampler = sampler | {"frequencies": np.round(sampler["frequencies"], 6).tolist()}
        own_d = dimensions(sampler, d)
        size = None if sampler["kind"] in COUNTED else size_of(sampler)
        met = (kernel["kind"], sampler["kind"])
        count[met] += 1
        for dtype in [list(Dtype)[count[met] % 2]] if d >= LONG and not samplers else Dtype:
            for form in (list(Form)[number % len(Form)], Form.cos_sin):
                members = {"kernel": kernel, "sampler": sampler, "s": size, "input_dim": own_d, "form": form.value}
                try:
                    yield Case(kernel, sampler, spec(dtype=dtype.value, **members))
                except InvalidInput:  # a form that it has not, or fewer coordinates than the kernel
                    continue
                break


def built(case: Case, threads: int) -> dict[str, Any]:
    """The frozen arrays."""
    around = with_rows(case.spec.input_dim, its_kernel=case.kernel["kind"])
    return dict(family_of(case.spec.sampler).build(case.spec, Building(threads, rows=around.rows)).arrays)


def answers(case: Case, found: FeatureMap) -> Iterator[tuple[str, Any]]:
    """What a map answers for rows, by name."""
    x = rows(40, 3, case.spec.input_dim, case.spec.dtype.value, size=3.0, its_kernel=case.kernel["kind"])
    x[:, 1] = np.abs(x[:, 1]) + 0.25  # no row is all zero
    of_sparse: Any = np.where((x > 0) | (np.arange(x.shape[1]) == 1), x, 0).astype(x.dtype)
    for kind, some in (("dense", x), ("sparse", sparse.csr_array(of_sparse))):
        if Gives.features in found.gives:
            yield f"features, {kind}", found.transform(some)
            if Gives.codes in found.capabilities(found.spec):
                yield f"signed codes, {kind}", found.codes(some, SIGNED)
        else:
            yield f"codes, {kind}", found.codes(some, PAIRS)
        yield f"Gram block, {kind}", found.gram(some, some[:13])
        yield f"exact kernel, {kind}", found.exact_gram(some, some[:13])


def elsewhere(
    kind: str, out: Path, frozen: Path, d: int, threads: int = 1, samplers: str = "", loops: Path | None = None
) -> dict[str, Any]:
    """Everything that is built, and computed from frozen arrays, on a kind of processor, by name.

    The arrays to compute from are those of the first kind that is asked: they are written to the file `frozen` if there
    is none. Loops are compiled for that processor and kept in `loops`; without such a place they are those of here.
    """
    own = PROCESSORS[kind] | {"OPENBLAS_NUM_THREADS": "1"}
    if loops is None:
        own = {name: value for name, value in own.items() if name not in _LOOPS}
    elif "NUMBA_CPU_NAME" in own:
        own["NUMBA_CACHE_DIR"] = str(loops)
    command = [sys.executable, "-m", __name__, str(out), str(frozen), str(d), str(threads), samplers]
    run(command, env=os.environ | own, check=True)
    with np.load(out) as found:
        return dict(found)


def main(out: str, frozen: str, d: str, threads: str, samplers: str = "") -> None:
    """Write what is built and computed here, for vectors of d entries; `samplers` are the kinds to take, "" for all."""
    given = dict(np.load(frozen)) if Path(frozen).exists() else {}
    found: dict[str, Any] = {}
    for case in cases(int(d), samplers):
        try:
            arrays = built(case, int(threads))
        except InvalidInput:  # as a rule with negative weights in the form phase
            continue
        at = f"{case.named()}/array/"
        found |= {at + name: array for name, array in arrays.items()}
        # Landmarks may be dense here, and sparse there.
        there = {key.removeprefix(at): array for key, array in given.items() if key.startswith(at)}
        for name, answer in answers(case, open_map(case.spec, there or arrays, int(threads))):
            found[f"{case.named()}/answer/{name}"] = answer
    np.savez(out, **found)
    if not given:
        np.savez(frozen, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
