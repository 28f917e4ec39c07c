"""ABC-Net: M binary filters that add up to W, and N bits per activation; M x N binary convolutions.

    B_m = sign(W - mean + u_m std), mean and std of the layer, u_m = -1 + 2 (m - 1) / (M - 1)
    alpha = least squares of |W - sum alpha_m B_m|^2 over the layer;  dL/dW = sum alpha_m g,  g = dL/d(sum alpha_m B_m)
    A_n = 2 [clip(x + v_n, 0, 1) >= 1/2] - 1,  dA_n/dx = 1[0 <= x + v_n <= 1],  y = sum beta_n alpha_m (B_m conv A_n)

Source: Lin et al., "Towards Accurate Binary Convolutional Neural Network", 2017: its formulas as a re-implementation
    gives them (layog/Accurate-Binary-Convolution-Network); no release was found. Confidence: high on the formulas,
    medium on the start of v and beta.
Exact: bases, least squares in every forward, both gradients, v and beta learned per layer. M = N = 5 as in its tables.
Differs: the u_m stay as they are (the paper may train them). The thresholds 1/2 - v_n start spread over [-1, 1], as the
    u_m, and beta at 1/N: where the paper starts them was not found, and equal v_n would stay equal. Published from a
    trained real network. Its latent view is W with sum beta_n (2 clip(x + v_n, 0, 1) - 1).
Packs: yes, as M x N binary layers whose results are added; every one stores its bits, so files grow by M x N.
"""

from contextlib import nullcontext
from typing import Annotated

import torch
from torch import Tensor, nn

from latentbit import ops
from latentbit.fields import Range
from latentbit.methods.parts.binarizer import Binarizer, BinaryLayer, Deployed, deploy_sum


def spread(n: int) -> Tensor:
    """n numbers from -1 to 1, one alone in the middle."""
    return torch.linspace(-1, 1, n) if n > 1 else torch.zeros(1)


class ABCNet(Binarizer):
    weight_bases: Annotated[int, Range(1, 16)] = 5
    """M: binary filters that stand for one real filter."""
    input_bases: Annotated[int, Range(1, 16)] = 5
    """N: bits that stand for one activation."""

    def setup(self, layer: BinaryLayer) -> None:
        self.shifts = nn.Buffer(spread(self.weight_bases), persistent=False)
        self.thresholds = nn.Parameter(spread(self.input_bases))
        self.beta = nn.Parameter(torch.full((self.input_bases,), 1 / self.input_bases))

    def bases(self, w: Tensor) -> tuple[Tensor, Tensor]:
        """B (M, shape of W) and alpha (M), without gradient."""
        w = w.detach()
        std, mean = torch.std_mean(w, correction=0)
        b = ops.sign(w - mean + self.shifts.view(-1, *[1] * w.dim()) * std)
        rows = b.flatten(1)
        # Counts of signs need all their digits. Meta tensors, on which costs are counted, have no autocast.
        with nullcontext() if w.is_meta else torch.autocast(w.device.type, enabled=False):
            # Bases that are the same share their part: the pseudo-inverse takes the least of all solutions.
            alpha = torch.linalg.pinv(rows @ rows.T, hermitian=True) @ (rows @ w.flatten())
        return b, alpha

    def weight(self, w: Tensor) -> Tensor:
        b, alpha = self.bases(w)
        return ops.straight_through(torch.tensordot(alpha, b, 1), alpha.sum() * w)

    def input(self, x: Tensor) -> Tensor:
        bits = torch.zeros_like(x)
        for threshold, beta in zip(self.thresholds, self.beta, strict=True):
            u = x - threshold  # of 0 where x + v = 1/2
            bits = bits + beta * ops.straight_through(ops.sign(u.detach()), u.clamp(-0.5, 0.5))
        return bits

    def latent_input(self, x: Tensor) -> Tensor:
        steps = x.unsqueeze(-1) - self.thresholds
        return (2 * steps.clamp(-0.5, 0.5)) @ self.beta

    def deploy(self, w: Tensor) -> Deployed:
        bases, alpha = self.bases(w)
        return deploy_sum(
            [
                Deployed(b, (a * beta).expand(len(w)), threshold.reshape(1))
                for threshold, beta in zip(self.thresholds, self.beta, strict=True)
                for b, a in zip(bases, alpha, strict=True)
            ]
        )
