"""The portable logarithm against sixty digits, and to the bit."""

import hashlib
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.hashing.parameter_stream import logarithms

Vector = NDArray[np.float64]

LARGEST = float(np.finfo(np.float64).max)
# Bits of x and of log x. Should one of them differ on some machine, codes made there would not be worth keeping.
GOLDEN = {
    "0x0.0000000000001p-1022": "-0x1.74385446d71c3p+9",
    "0x0.012688b70e62bp-1022": "-0x1.64e69394d9508p+9",
    "0x1.0000000000000p-1022": "-0x1.6232bdd7abcd2p+9",
    "0x1.12e0be826d695p-30": "-0x1.4b927f32bffb8p+4",
    "0x1.0000000000000p-1": "-0x1.62e42fefa39efp-1",
    "0x1.6a09e667f3bcdp-1": "-0x1.62e42fefa39eep-2",
    "0x1.fffffffffffffp-1": "-0x1.0000000000000p-53",
    "0x1.0000000000000p+0": "0x0.0p+0",
    "0x1.0000000000001p+0": "0x1.0000000000000p-52",
    "0x1.6a09e667f3bcdp+0": "0x1.62e42fefa39f0p-2",
    "0x1.8000000000000p+1": "0x1.193ea7aad030bp+0",
    "0x1.921fb54442d18p+1": "0x1.250d048e7a1bdp+0",
    "0x1.0f0cf064dd592p+73": "0x1.95414621954fep+5",
    "0x1.fffffffffffffp+1023": "0x1.62e42fefa39efp+9",
}

DIGEST = "71f5ccb49ed25c8c23357db4420f68fb29c624789ae59423f12c0dc6be6a3501"


def log(x: Vector) -> Vector:
    out = np.empty(x.shape[0])
    logarithms(x, out)
    return out


def units_off(x: float, value: float) -> float:
    """Distance from the true logarithm in units of its last place."""
    with localcontext() as context:
        context.prec = 60
        exact = Decimal(x).ln()
        return float(abs(Decimal(value) - exact) / Decimal(math.ulp(float(exact))))


def numbers(kind: str) -> Vector:
    rng = np.random.default_rng(3)
    match kind:
        case "near one":
            steps = np.arange(1, 200)
            return np.concatenate([1 + steps * 2.0**-52, 1 - steps * 2.0**-53, 1 + 2.0 ** -rng.uniform(1, 52, 500)])
        case "powers of two":
            return np.ldexp(1.0, np.arange(-1074, 1024))
        case "subnormal":
            return np.concatenate([np.arange(1, 200) * 5e-324, rng.random(500) * 2.0**-1022 + 5e-324])
        case "ends":
            return np.array([5e-324, 2.0**-1022, np.nextafter(2.0**-1022, 0), 1e-308, 1e308, LARGEST])
        case "about the roots of two":
            return np.concatenate([np.sqrt(half) * (1 + np.arange(-99, 100) * 2.0**-52) for half in (0.5, 2.0, 8.0)])
        case "uniform":
            return 1 - rng.random(1000)
    return np.exp(rng.uniform(-700, 700, 1000))


@pytest.mark.parametrize(
    "kind", ["near one", "powers of two", "subnormal", "ends", "about the roots of two", "uniform", "everywhere"]
)
def test_it_is_within_two_units_in_the_last_place(kind: str) -> None:
    x = numbers(kind)
    assert max(map(units_off, x.tolist(), log(x).tolist())) <= 2


def test_its_bits_never_change() -> None:
    x = np.array([float.fromhex(text) for text in GOLDEN])
    assert [float(value).hex() for value in log(x)] == list(GOLDEN.values())


def test_nor_do_those_of_a_hundred_thousand_numbers() -> None:
    # Of every size, and between √½ and √2, where the last term of the series tells. The same numbers everywhere.
    whole = np.arange(50_000)
    x = np.concatenate([np.ldexp((whole + 1) * 10_007.0, whole % 601 - 300), (whole + 50_000) / 70_000])
    assert hashlib.sha256(log(x).astype("<f8").tobytes()).hexdigest() == DIGEST
