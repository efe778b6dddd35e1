"""What encodings can be asked for, and what cannot."""

import pytest

from app.core.errors import InvalidOption
from app.core.hashing.encodings import BitsOf, Encoding, encoder
from service_tests.cases import each


@each(
    ("encoding", "bits", "bits_of", "marked", "option", "says"),
    [
        ("pairs", 8, None, False, "bits", "encoding pairs keeps whole numbers"),
        ("zero_bit", 1, None, False, "bits", "encoding zero_bit keeps whole numbers"),
        ("fingerprint", 16, None, False, "bits", "bits is 16; a fingerprint has 32 or 64"),
        ("b_bit", 0, None, False, "bits", "bits is 0; encoding b_bit takes 1 to 16"),
        ("packed", 17, None, False, "bits", "bits is 17; encoding packed takes 1 to 16"),
        ("one_hot", -1, None, False, "bits", "bits is -1; encoding one_hot takes 1 to 16"),
        ("pairs", None, "pair", False, "bits_of", "bits_of is for b_bit, packed and one_hot, not for pairs"),
        ("zero_bit", None, "index", False, "bits_of", "bits_of is for b_bit, packed and one_hot"),
        ("fingerprint", None, "pair", False, "bits_of", "bits_of is for b_bit, packed and one_hot"),
        ("packed", 8, None, True, "on_zero", "packed of 8 bits cannot mark rows"),
        ("fingerprint", None, None, True, "on_zero", "fingerprint of 64 bits cannot mark rows"),
    ],
)
def test_an_option_without_a_meaning_is_refused_by_name(
    encoding: str, bits: int | None, bits_of: str | None, marked: bool, option: str, says: str
) -> None:
    with pytest.raises(InvalidOption, match=says) as caught:
        encoder(Encoding(encoding), bits, BitsOf(bits_of) if bits_of else None, marked)
    assert caught.value.option == option
