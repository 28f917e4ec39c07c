import numpy as np
import pytest
from oracle.rules import tail_is_clear

from latentbit.lbit.bits import n_words, pack_signs, unpack_signs


@pytest.mark.parametrize("n", [1, 3, 63, 64, 65, 127, 128, 130])
def test_pack_and_unpack_are_inverse(n: int) -> None:
    signs = np.random.default_rng(n).choice([-1, 1], size=(4, 3, n))
    words = pack_signs(signs)
    assert words.shape == (4, 3, n_words(n)) and words.dtype == np.uint64
    assert np.array_equal(unpack_signs(words, n), signs)
    assert tail_is_clear(words, n)


def test_bit_c_mod_64_of_word_c_div_64_is_set_for_minus_one() -> None:
    for c in (0, 1, 63, 64, 129):
        signs = np.ones(130)
        signs[c] = -1
        expected = [0, 0, 0]
        expected[c // 64] = 1 << (c % 64)
        assert pack_signs(signs).tolist() == expected


def test_zero_minus_zero_and_nan_count_as_plus_one() -> None:
    assert pack_signs(np.array([0.0, -0.0, np.nan, -1e-45])).tolist() == [0b1000]


@pytest.mark.parametrize("n", [1, 64, 100])
def test_dot_is_n_minus_twice_the_popcount_of_xor(n: int) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.choice([-1, 1], size=(2, n))
    differ = sum(int(w).bit_count() for w in pack_signs(a) ^ pack_signs(b))
    assert a @ b == n - 2 * differ


def test_tail_bits_are_noticed() -> None:
    words = pack_signs(np.ones((2, 65)))
    words[1, 1] |= np.uint64(2)
    assert not tail_is_clear(words, 65)
    assert tail_is_clear(words, 66) and tail_is_clear(words, 128)
