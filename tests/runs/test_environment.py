import torch

from latentbit import __version__
from latentbit.runs.environment import environment


def test_what_a_number_depends_on_is_written_down() -> None:
    found = environment()
    assert found["latentbit"] == __version__ and found["torch"] == torch.__version__
    assert found["threads"] == torch.get_num_threads() and found["cpu"] and found["cores"] >= 1
