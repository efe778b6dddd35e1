"""Time and memory of the box discrepancy, and its value and gradient beside a plain NumPy version in one run.

Gaussian kernel, frequencies of its law, box of 1.2 length scales. The least of the repeats counts: what else runs on
the machine only adds. The plain version works point by point on arrays of s×d, a sine for every factor, the other
factors by products from both ends. Memory is the peak of a fresh process above what it held when everything was
imported and compiled.

Run: python -m benchmarks.box_discrepancy [--repeats 10]
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from app.core.discrepancy.box_discrepancy import BoxDiscrepancy
from app.core.kernels.gaussian import Gaussian
from benchmarks.timing import Peak, timed

Matrix = NDArray[np.float64]
KERNEL = Gaussian(kind="gaussian", length_scale=1.0)
SIZES = ((500, 21), (1000, 21), (2000, 21), (4000, 21), (2000, 42), (2000, 84), (2200, 119))
LEARNT, CENSUS = (500, 21), (2200, 119)


def example(s: int, d: int, threads: int) -> tuple[BoxDiscrepancy, Matrix]:
    """The measure and a frequency set."""
    frequencies = KERNEL.frequencies(np.random.default_rng(0).random((s, d)))
    return BoxDiscrepancy(KERNEL, np.full(d, 1.2), threads), frequencies


def seconds(work: Callable[[], object], repeats: int) -> float:
    """The shortest call, after one to warm up."""
    call = timed(work)
    return min([call() for _ in range(repeats + 1)][1:])


def plain(measure: BoxDiscrepancy, frequencies: Matrix) -> tuple[float, Matrix]:
    """N and its gradient for equal weights, in NumPy."""
    s, d = frequencies.shape
    box = measure.box
    means, slopes = measure.means_and_gradients(frequencies)
    value = np.exp(measure.log_energy) - 2 * means.mean()
    gradients = np.empty((s, d))
    for m in range(s):
        z = box * (frequencies[m] - frequencies)
        z[m] = 1.0
        factors = np.sin(z) / z
        derivatives = box * (np.cos(z) - factors) / z
        factors[m], derivatives[m] = 1.0, 0.0
        before, behind = np.ones((s, d)), np.ones((s, d))
        np.cumprod(factors[:, :-1], axis=1, out=before[:, 1:])
        np.cumprod(factors[:, :0:-1], axis=1, out=behind[:, -2::-1])
        value += factors.prod(axis=1).sum() / s**2
        gradients[m] = 2 / s * ((derivatives * before * behind).mean(axis=0) - slopes[m])
    return float(value), gradients


def cost_table(repeats: int, threads: int) -> None:
    """Print the time of the value by size, and by pair of points and coordinate."""
    print(f"| s | d | value, 1 thread (ms) | ns for each of s²d | value, {threads} threads (ms) |")
    print("|" + " --- |" * 5)
    for s, d in SIZES:
        (alone, frequencies), (together, _) = example(s, d, 1), example(s, d, threads)
        one = seconds(partial(alone.evaluate, frequencies), repeats)
        all_of_them = seconds(partial(together.evaluate, frequencies), repeats)
        print(f"| {s} | {d} | {1e3 * one:.1f} | {1e9 * one / s**2 / d:.2f} | {1e3 * all_of_them:.1f} |", flush=True)


def gradient_table(repeats: int, threads: int) -> None:
    """Print value and gradient, beside the plain version."""
    s, d = LEARNT
    measure, frequencies = example(s, d, threads)
    alone, _ = example(s, d, 1)
    theirs, theirs_gradients = plain(measure, frequencies)
    ours, ours_gradients = measure.value_and_gradient(frequencies)
    apart = np.abs(ours_gradients - theirs_gradients).max() / np.abs(theirs_gradients).max()
    pulls = alone.pulls_of(frequencies[1:], np.full(s - 1, 1 / s))
    rows = {
        f"value and gradient, {threads} threads": lambda: measure.value_and_gradient(frequencies),
        "value and gradient, 1 thread": lambda: alone.value_and_gradient(frequencies),
        "plain NumPy": lambda: plain(measure, frequencies),
        "one moving point, pull and mean with gradients": lambda: (
            pulls(frequencies[:1]),
            alone.means_and_gradients(frequencies[:1]),
        ),
    }
    print(f"| s = {s}, d = {d} | ms |\n| --- | --- |")
    for name, work in rows.items():
        print(f"| {name} | {1e3 * seconds(work, repeats):.2f} |", flush=True)
    print(f"\nValues differ by {abs(ours - theirs):.1e}, gradients by {apart:.1e} of the largest entry.")


def peak() -> None:
    """In a fresh process: print the most memory that a value takes, in MB."""
    example(40, 3, 1)[0].evaluate(example(40, 3, 1)[1])
    measure, frequencies = example(*CENSUS, 1)
    with Peak() as most:
        measure.evaluate(frequencies)
    print(f"{(most.bytes - most.before) / 1e6:.0f}")


def main() -> None:
    """All tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--peak", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        peak()
        return
    threads = os.cpu_count() or 1
    cost_table(options.repeats, threads)
    print()
    gradient_table(options.repeats, threads)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.box_discrepancy", "--peak"], capture_output=True, text=True, check=True
    )
    print(f"\nPeak of the value at s = {CENSUS[0]}, d = {CENSUS[1]}: {done.stdout.strip()} MB above the frequencies.")


if __name__ == "__main__":
    main()
