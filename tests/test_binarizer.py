import pytest
import torch

from latentbit.binarizer import Binarizer, NotDeployable, mean_abs, per_output
from latentbit.layers import BinaryConv2d


def test_alpha_is_the_scale_nearest_to_w() -> None:
    w = torch.randn(4, 3, 3, 3, dtype=torch.float64)
    alpha = mean_abs(w)
    error = [((w - per_output(s * alpha, w) * w.sign()) ** 2).sum() for s in (0.99, 1.0, 1.01)]
    assert error[1] < error[0] and error[1] < error[2]


def test_a_method_that_does_not_say_what_it_keeps_is_not_packed() -> None:
    class Mine(Binarizer):
        def weight(self, w: torch.Tensor) -> torch.Tensor:
            return w.sign()

    layer = BinaryConv2d.from_float(torch.nn.Conv2d(2, 2, 1), Mine)
    with pytest.raises(NotDeployable, match="Mine"):
        layer.binarizer.deploy(layer.weight)
