"""After the warm-up no request waits for a compiler."""

from itertools import product

from scipy.sparse import csr_array

from app.core import panels
from app.core.maps import opened
from app.core.maps.fourier import sine_cosine
from app.core.maps.fourier.fourier_map import FourierMap
from app.core.maps.terms import Dtype, Form
from app.services.warm_up import warm_up
from service_tests.core.combinations import rows
from service_tests.core.specs import spec

LOOPS = [
    sine_cosine.cosines_with_offsets,
    sine_cosine.cosines_and_sines,
    sine_cosine.exponentials,
    sine_cosine.scale_to_unit_norm,
    panels._multiply_dense,
    panels._multiply_sparse,
]


def compiled() -> list[int]:
    return [len(loop.signatures) for loop in LOOPS]  # type: ignore[attr-defined]


def test_features_of_any_map_and_rows_find_their_loops_compiled() -> None:
    warm_up()
    before = compiled()
    assert min(before) >= 2
    for form, dtype, normalize in product(Form, Dtype, (False, True)):
        of = spec(form=form.value, dtype=dtype.value, normalize=normalize, s=300)
        arrays = FourierMap.build(of).arrays
        for array in arrays.values():
            array.flags.writeable = False
        made = opened(of, arrays, 2)
        for n in (1, 2, 700):
            posted = rows(n, 1, of.input_dim, dtype=dtype.value)
            made.transform(posted)
            made.transform(csr_array(posted))
            posted.flags.writeable = False
            made.transform(posted)
        made.gram(rows(3, 1, of.input_dim, dtype=dtype.value), rows(1, 2, of.input_dim, dtype=dtype.value))
    assert compiled() == before
