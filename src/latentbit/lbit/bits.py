"""Signs as bits: bit 1 means -1, value i of a row is bit i % 64 of word i // 64, tail bits are 0.

With that, dot(a, b) = n - 2 * popcount(a xor b), and the tail cancels without a mask.
"""

import numpy as np
from numpy.typing import NDArray


def n_words(n_bits: int) -> int:
    """How many 64-bit words hold a row of `n_bits` signs."""
    return -(-n_bits // 64)


def pack_signs(signs: NDArray[np.generic]) -> NDArray[np.uint64]:
    """(..., n) numbers -> (..., words): a set bit where the number is below zero."""
    n = signs.shape[-1]
    padded = np.zeros((*signs.shape[:-1], n_words(n) * 64), np.bool_)
    np.less(signs, 0, out=padded[..., :n])
    return np.packbits(padded, axis=-1, bitorder="little").view("<u8").astype(np.uint64, copy=False)


def unpack_signs(words: NDArray[np.uint64], n_bits: int) -> NDArray[np.int8]:
    """(..., words) -> (..., n_bits) of +1 and -1: the inverse of pack_signs."""
    octets = np.ascontiguousarray(words, dtype="<u8").view(np.uint8)
    bits = np.unpackbits(octets, axis=-1, count=n_bits, bitorder="little")
    return 1 - 2 * bits.astype(np.int8)
