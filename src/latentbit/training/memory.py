"""Freed memory stays with the process: a training step needs the same large buffers again at once.

glibc gives blocks of more than 128 kB back to the system when they are freed. A step then maps and clears its
buffers anew, about 28,000 page faults each time. `bench/train_step.py` measures what keeping them saves.
"""

import ctypes

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
MB = 1 << 20


def keep_freed_memory() -> bool:
    """Tell glibc to keep what is freed for later allocations; False where the C library is another one."""
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018, musl and others have no such function
        mallopt = libc.mallopt
    except (OSError, AttributeError, TypeError):
        return False
    settings = ((M_MMAP_THRESHOLD, 32 * MB), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 256 * MB))
    return all([mallopt(key, value) == 1 for key, value in settings])
