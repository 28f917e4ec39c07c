import os
import subprocess
import sys

import pytest

from latentbit.training.memory import keep_freed_memory

FAULTS = """
import resource, sys, torch
from latentbit.training.memory import keep_freed_memory
if sys.argv[1] == "kept":
    assert keep_freed_memory()
def touch():
    maps = [torch.ones(2 << 20) for _ in range(12)]  # 8 MB each, as a step keeps them for its backward
    maps.clear()
for _ in range(10):
    touch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    touch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not keep_freed_memory(), reason="the C library is not glibc")
def test_freed_buffers_are_used_again_without_page_faults() -> None:
    def faults(how: str) -> int:
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", FAULTS, how]
        return int(subprocess.run(command, capture_output=True, check=True, env=environment).stdout)

    assert faults("kept") < 100 < faults("given back")
