import subprocess
import sys

import pytest

from latentbit.training.memory import keep_freed_memory

HEAP = """
import ctypes, sys, torch
from latentbit.training.memory import keep_freed_memory

class Info(ctypes.Structure):  # struct mallinfo2
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Info
if sys.argv[1] == "kept":
    assert keep_freed_memory()
before = mallinfo()
maps = [torch.ones(4 << 20) for _ in range(4)]  # 16 MB each
during = mallinfo()
maps.clear()
after = mallinfo()
print(during.hblkhd - before.hblkhd, after.arena - before.arena)
"""


@pytest.mark.skipif(not keep_freed_memory(), reason="the C library is not glibc")
def test_large_buffers_come_from_a_heap_that_is_kept() -> None:
    def sizes(how: str) -> tuple[int, int]:
        """Bytes that were mapped one by one for the buffers, and growth of the heap once they are freed."""
        done = subprocess.run([sys.executable, "-c", HEAP, how], capture_output=True, check=True, text=True)
        mapped, heap = done.stdout.split()
        return int(mapped), int(heap)

    assert sizes("given back")[0] >= 64 << 20
    mapped, heap = sizes("kept")
    assert mapped == 0 and heap >= 64 << 20
