import pytest
import torch

from latentbit.distributed.device import NoSuchDevice, choose_device


def test_a_device_that_is_not_there_is_refused() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    for name, there in (("cuda", torch.cuda.is_available()), ("mps", torch.backends.mps.is_available())):
        if not there:
            with pytest.raises(NoSuchDevice, match=f"device={name}, .* take device=cpu"):
                choose_device(name)
