import numpy as np
import pytest
import tiny_runs
import torch
from torch import Tensor, nn

from latentbit.analyze.reconstruction import errors, execution_order
from latentbit.analyze.trained import open_run
from latentbit.binarize import binarize_
from latentbit.layers import BinaryConv2d
from latentbit.models.activations import RPReLU
from latentbit.views import TwoView


def test_agrees_with_hooks_on_both_networks() -> None:
    trained = open_run(tiny_runs.baseline(), device="cpu")
    assert trained.views is not None
    found = errors(trained.views, trained.sample(150))  # batches of different sizes

    outputs: dict[str, dict[str, list[Tensor]]] = {"binary": {}, "latent": {}}
    for side, tree in (("binary", trained.views.binary), ("latent", trained.views.latent)):
        for name, module in tree.named_modules():
            if isinstance(module, BinaryConv2d):
                kept = outputs[side].setdefault(name, [])
                module.register_forward_hook(lambda m, args, out, kept=kept: kept.append(out.detach()))
    with torch.no_grad():
        for images, _ in trained.sample(150):
            trained.views.binary(images)
            trained.views.latent(images)
    assert list(found) == list(outputs["binary"])
    for name, error in found.items():
        binary, latent = torch.cat(outputs["binary"][name]), torch.cat(outputs["latent"][name])
        direct = ((latent - binary).double() ** 2).sum() / binary.numel()
        assert error.absolute == pytest.approx(float(direct), rel=1e-5)
        y, x = binary.double().flatten().numpy(), latent.double().flatten().numpy()
        _, (residue,), *_ = np.linalg.lstsq(x[:, None], y, rcond=None)
        assert error.unexplained == pytest.approx(residue / (y @ y), rel=1e-4)
        assert error.absolute > 0


def test_behind_batchnorm_and_activation_it_is_the_output_of_the_block() -> None:
    trained = open_run(tiny_runs.baseline(), device="cpu")
    assert trained.views is not None
    images = torch.cat([images for images, _ in trained.sample(40)])
    found = errors(trained.views, [(images[:30], None), (images[30:], None)])  # type: ignore[list-item]
    with torch.no_grad():
        y, w = trained.views.binary.stem(images), trained.views.latent.stem(images)
        blocks = zip(
            (block for stage in trained.views.binary.stages for block in stage),
            (block for stage in trained.views.latent.stages for block in stage),
            strict=True,
        )
        for error, (binary, latent) in zip(found.values(), blocks, strict=True):
            y, w = binary(y), latent(w)
            assert error.activated == pytest.approx(float((w - y).square().mean()), rel=1e-5)


class Plain(nn.Module):
    def __init__(self, *behind: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(2, 2, 1), *behind, nn.Flatten(), nn.Linear(32, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


@pytest.mark.parametrize(
    ("behind", "known"),
    [((), False), ((nn.BatchNorm2d(2),), True), ((nn.BatchNorm2d(2), RPReLU(2)), True)],
)
def test_without_activation_batchnorm_counts_and_without_both_nothing(
    behind: tuple[nn.Module, ...], known: bool
) -> None:
    model = Plain(*behind)
    binarize_(model, keep=[f"layers.{len(behind) + 2}"])
    torch.manual_seed(0)
    views = TwoView(model, collect_layers=True)
    images = torch.randn(5, 2, 4, 4)
    (error,) = errors(views, [(images, None)]).values()  # type: ignore[list-item]
    if not known:
        assert error.activated is None
        return
    with torch.no_grad():
        cut = 1 + len(behind)
        y, w = (tree.layers[:cut](images) for tree in (views.binary, views.latent))
    assert error.activated == pytest.approx(float((w - y).square().mean()), rel=1e-5)


def test_layers_are_named_in_the_order_they_run() -> None:
    class Crossed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.late, self.early = nn.Conv2d(2, 2, 1), nn.Conv2d(2, 2, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.late(self.early(self.late(x)))

    model = Crossed()
    binarize_(model, keep=[])
    assert execution_order(model, torch.zeros(3, 2, 4, 4)) == ["late", "early", "late#2"]
