import os
import subprocess
import sys

import pytest

from latentbit.training.memory import keep_freed_memory

STEPS = """
import resource, sys, torch
from latentbit import recipes
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training.memory import keep_freed_memory
from latentbit.training.state import TrainingState
if sys.argv[1] == "kept":
    assert keep_freed_memory()
facts = DatasetFacts("noise", tuple("0123456789"), 3, 32, (0.0,) * 3, (1.0,) * 3, 640, 64, "")
state = TrainingState(recipes.load("cifar10_resnet18_compact_baseline"), facts, torch.device("cpu"), 10)
state.begin_epoch()
images, labels = torch.randn(64, 3, 32, 32), torch.randint(10, (64,))
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    state.step(images, labels)
before = faults()
for _ in range(6):
    state.step(images, labels)
print(faults() - before)
"""


@pytest.mark.skipif(not keep_freed_memory(), reason="the C library is not glibc")
def test_steps_use_freed_buffers_again_without_page_faults() -> None:
    def faults(how: str) -> int:
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", STEPS, how]
        return int(subprocess.run(command, capture_output=True, check=True, env=environment).stdout)

    assert faults("kept") < faults("given back") / 4
