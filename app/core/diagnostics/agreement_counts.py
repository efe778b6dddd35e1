"""How many codes of pairs of rows agree, beside the exact kernels; counted some hashes at a time."""

from functools import partial

import numpy as np

from app.core.arrays import Array, Rows, row_blocks
from app.core.diagnostics.random_pairs import Whole
from app.core.hashing.encodings import Encoder, Encoding, Samples
from app.core.hashing.estimates import collisions, odd_codes
from app.core.maps import FeatureMap
from app.core.progress import Pause, Progress, packed, unpacked

# Codes compared at a time, and entries of rows.
_CODES_PER_BLOCK = _ENTRIES_PER_BLOCK = 1 << 20
# Samples held at a time, if that makes no fewer hashes.
_SAMPLES_PER_BLOCK, _LEAST_HASHES = 1 << 22, 64
# A sample and its code.
_BYTES_PER_SAMPLE = 32
# Both rows of as many pairs as are compared at a time.
_BLOCK_BYTES = 64 * _ENTRIES_PER_BLOCK


def block_bytes(n: int, s: int) -> int:
    """Memory for what is counted at a time of n rows with s hashes each."""
    return _BYTES_PER_SAMPLE * n * min(s, _hashes_per_block(n)) + _BLOCK_BYTES


def agreement_counts(
    feature_map: FeatureMap,
    vectors: Rows,
    pairs: tuple[Whole, Whole],
    by: Encoder,
    gamma: float | None,
    progress: Progress,
) -> dict[str, Array]:
    """Exact kernels and counts of agreeing codes, pair by pair, by the names that `_zeros` explains."""
    n, s, (i, j) = vectors.shape[0], feature_map.n_output, pairs
    found = _zeros(n, len(i), gamma)
    kept = unpacked(progress.restored())
    if kept.keys() == found.keys():  # an older version kept less
        found = kept
    kernels = [*row_blocks(len(i), _ENTRIES_PER_BLOCK * n // max(n, int(vectors.size)))]
    hashes = [*row_blocks(s, _hashes_per_block(n))]
    of = len(kernels) + len(hashes)

    def pause() -> None:
        progress.report(int(found["done"]), of)
        progress.checkpoint(partial(packed, **found))

    for block in kernels[found["done"] :]:
        x, y = vectors[i[block]], vectors[j[block]]
        found["exact"][block] = feature_map.exact_pairs(x, y)
        found["zero_bit_chance"][block] = feature_map.chances(x, y, Encoder(Encoding.zero_bit))
        all_kept = by.shows_sign and 2 * feature_map.spec.input_dim <= 1 << by.bits
        of_codes = found["zero_bit_chance"][block] if all_kept else feature_map.chances(x, y, by)
        found["b_bit_chance"][block] = of_codes
        if gamma is not None:
            found["rbf"][block] = feature_map.rbf_pairs(x, y, gamma)
        found["done"] += 1
        pause()
    for block in hashes[found["done"] - len(kernels) :]:
        # What a block adds is added at its end, for what is kept before must not hold a part of it.
        added = _agreements(feature_map.samples(vectors, block, pause), by, block.start, pairs, pause)
        for name, counts in added.items():
            found[name] += counts
        found["done"] += 1
        pause()
    return found


def _zeros(n: int, pairs: int, gamma: float | None) -> dict[str, Array]:
    """Zeros for what is to be computed of n rows and some pairs of them, by name.

    `exact` and, with a gamma, `rbf`: the kernels of each pair. `zero_bit_chance` and `b_bit_chance`: how often i*, and
    codes, of different samples are equal. `full`, `zero_bit` and `b_bit`: how many of its samples, their i*, and its
    codes agree. `odd`: how many codes of each row are odd. `done`: how many blocks are.
    """
    return {
        "exact": np.zeros(pairs),
        "rbf": np.zeros(0 if gamma is None else pairs),
        **{name: np.zeros(pairs) for name in ("zero_bit_chance", "b_bit_chance")},
        **{name: np.zeros(pairs, np.int64) for name in ("full", "zero_bit", "b_bit")},
        "odd": np.zeros(n, np.int64),
        "done": np.array(0),
    }


def _agreements(
    samples: Samples, by: Encoder, first_hash: int, pairs: tuple[Whole, Whole], pause: Pause
) -> dict[str, Whole]:
    """The counts `full`, `zero_bit`, `b_bit` and `odd` for samples (n, hashes, 2) from `first_hash` on."""
    i, j = pairs
    codes = by.encode(samples, first_hash)
    written = {"full": samples, "zero_bit": samples[..., 0], "b_bit": codes}
    added = {name: np.empty(len(i), np.int64) for name in written}
    for block in row_blocks(len(i), _CODES_PER_BLOCK // samples.shape[1]):
        for name, of_rows in written.items():
            added[name][block] = collisions(of_rows[i[block]], of_rows[j[block]])
        pause()
    return added | {"odd": odd_codes(by, codes)}


def _hashes_per_block(n: int) -> int:
    """How many hashes of n rows are held at a time; with fewer, the entries of the rows would be read too often."""
    return max(_LEAST_HASHES, _SAMPLES_PER_BLOCK // n)
