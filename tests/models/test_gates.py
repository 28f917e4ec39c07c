import torch
from torch import nn

from latentbit.models.gates import Gate


def test_a_gate_against_its_formula() -> None:
    torch.manual_seed(0)
    gate = Gate(16, 5, nn.Sigmoid(), bias=True).double()
    z = torch.randn(3, 16, 4, 5, dtype=torch.float64)
    first, second = gate.reduce, gate.expand
    inner = (z.mean((2, 3)) @ first.weight[:, :, 0, 0].T + first.bias).clamp(min=0)
    expected = 1 / (1 + torch.exp(-(inner @ second.weight[:, :, 0, 0].T + second.bias)))
    assert first.weight.shape[0] == 2  # an eighth
    torch.testing.assert_close(gate(z), expected[:, :, None, None])
    assert Gate(4, 4, nn.Sigmoid(), bias=False).reduce.weight.shape[0] == 1
