"""Whole networks: every reference model and every method packs, and computes what PyTorch computes."""

import copy
import json

import lbit_oracle
import numpy as np
import pytest
import torch
from packing_models import binary, same_as_torch
from torch import nn

import latentbit
from latentbit import lbit, methods, models
from latentbit.data import digits
from latentbit.engine import Engine, available
from latentbit.layers import BINARY_LAYERS
from latentbit.lbit.sizes import weigh
from latentbit.packing import CannotPack

PACKED = [name for name in models.names() if name != "resnet18_expert"]  # which says that it does not
LARGE = {
    *("resnet34", "resnet34_standard", "reactnet_a", "pokebnn"),  # small ones are packed in tests/models/
    *("bnext_tiny", "bnext_small", "bnext_middle", "bnext_large"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else []) for name in PACKED]
)
def test_every_reference_model(name: str) -> None:
    model = binary(models.create(name, num_classes=10))
    images = torch.randn(2, 3, 32, 32)
    network = same_as_torch(model, images)
    assert network.n_outputs == 10
    n_binary = sum(isinstance(module, latentbit.BinaryConv2d) for module in model.modules())
    assert sum(layer.op == "binary_conv" for layer in network.layers) == n_binary


@pytest.mark.parametrize("method", methods.names())
def test_every_method(method: str) -> None:
    model = models.create("resnet18_compact", in_channels=1, widths=(4, 8))
    latentbit.binarize_(model, method)
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    model.eval()
    images = torch.randn(4, 1, 8, 8)
    try:
        network = latentbit.pack(model, images)
    except CannotPack as error:
        # A method may refuse, if it says which layer and why.
        assert str(error).startswith("stages.0.0.conv: ")
        return
    same_as_torch(model, images, network)


def test_resnet18_fits_its_budget() -> None:
    model = models.create("resnet18")
    latentbit.binarize_(model)
    network = latentbit.pack(model.eval(), torch.randn(1, 3, 224, 224))
    sizes = weigh(network)
    assert sizes.file_bytes * 8 <= 28.3e6
    assert sizes.binary_weights == sum(
        layer.weight.numel() for layer in model.modules() if isinstance(layer, latentbit.BinaryConv2d)
    )


def test_bases_of_one_layer_are_one_real_layer() -> None:
    sizes = []
    for method in ("sign", "group_net"):
        model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Conv2d(4, 8, 3), nn.Flatten(), nn.Linear(128, 10))
        latentbit.binarize_(model, method)
        sizes.append(weigh(latentbit.pack(model.eval(), torch.zeros(1, 1, 8, 8))))
    assert sizes[0].fp32_bytes == sizes[1].fp32_bytes
    assert 5 * sizes[0].binary_weights == sizes[1].binary_weights


def _classifier() -> nn.Module:
    return binary(
        nn.Sequential(
            nn.Conv2d(3, 16, 3),
            nn.BatchNorm2d(16),
            nn.PReLU(16),
            nn.Conv2d(16, 16, 3),
            nn.Flatten(),
            nn.Linear(256, 10),
        )
    )


@pytest.mark.parametrize(("float_bits", "dtype", "close"), [(16, np.float16, 1e-2), (8, np.int8, 0.1)])
def test_real_weights_in_fewer_bits(float_bits: int, dtype: type, close: float) -> None:
    model, images = _classifier(), torch.randn(16, 3, 8, 8)
    whole, small = (latentbit.pack(model, images, float_bits=bits) for bits in (32, float_bits))
    assert {layer.tensors["weight"].dtype for layer in small.layers if layer.op in ("conv", "linear")} == {
        np.dtype(dtype)
    }
    assert len(lbit.to_bytes(small)) < len(lbit.to_bytes(whole))
    before, after = (lbit_oracle.run(network, images.numpy()) for network in (whole, small))
    assert 0 < np.abs(after - before).max() < close * np.abs(before).max()


def test_int8_rounds_each_channel_to_its_own_scale() -> None:
    model, images = _classifier(), torch.randn(1, 3, 8, 8)
    exact = latentbit.pack(model, images)["5"].tensors["weight"]
    layer = latentbit.pack(model, images, float_bits=8)["5"]
    rounded = layer.tensors["weight"] * layer.tensors["weight_scale"][:, None]
    assert (np.abs(rounded - exact) <= np.abs(exact).max(axis=1, keepdims=True) / 254 * 1.001).all()


def test_a_stem_in_8_bits_alone_runs_on_pixels_as_torch_does_with_the_same_weights() -> None:
    model = _classifier().eval()
    images = torch.randint(0, 256, (40, 3, 8, 8), dtype=torch.uint8)
    mean, std = (0.48, 0.45, 0.4), (0.23, 0.22, 0.21)
    network = latentbit.pack(model, images[:1].float(), stem_bits=8, mean=mean, std=std)
    stem, last = network["0"].tensors, network.layers[-1].tensors
    assert (stem["weight"].dtype, last["weight"].dtype) == (np.dtype(np.int8), np.dtype(np.float32))

    twin = copy.deepcopy(model)
    twin[1] = nn.Identity()  # BatchNorm is part of the packed weights
    twin[0].weight.data = torch.from_numpy(stem["weight"] * stem["weight_scale"][:, None, None, None])
    twin[0].bias = nn.Parameter(torch.from_numpy(stem["bias"].copy()))
    normalised = (images / 255 - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]
    with torch.no_grad():
        expected = twin(normalised).numpy()
    for isa in available():
        found = Engine(network, isa=isa)(images.numpy())
        # A value within rounding of 0 may change its sign in one image or other; the rest agree closely.
        close = np.abs(found - expected).max(1) <= 1e-4 * np.abs(expected).max()
        assert close.mean() >= 0.9


def test_what_describes_the_network_is_kept() -> None:
    network = latentbit.pack(
        _classifier(),
        torch.randn(1, 3, 8, 8),
        classes=[str(i) for i in range(10)],
        mean=np.array([0.5, 0.4, 0.3]),
        std=(1, 1, 1),
        source={"method": "sign"},
    )
    again = lbit.from_bytes(lbit.to_bytes(network))
    assert again.classes == tuple("0123456789") and again.mean == (0.5, 0.4, 0.3) and again.std == (1, 1, 1)
    assert again.source == {"packed_by": f"latentbit {latentbit.__version__}", "method": "sign"}
    json.dumps(weigh(again).as_dict())


def test_bad_arguments() -> None:
    with pytest.raises(CannotPack, match="float_bits=4"):
        latentbit.pack(_classifier(), torch.randn(1, 3, 8, 8), float_bits=4)
    with pytest.raises(CannotPack, match="stem_bits=7"):
        latentbit.pack(_classifier(), torch.randn(1, 3, 8, 8), stem_bits=7)
    model = _classifier()
    model[0].weight.data *= 1e6  # type: ignore[index, union-attr, operator]
    with pytest.raises(CannotPack, match="0: weights too large for 16 bits"):
        latentbit.pack(model, torch.randn(1, 3, 8, 8), float_bits=16)


def test_packing_twice_gives_the_same_bytes() -> None:
    model, images = _classifier(), torch.randn(1, 3, 8, 8)
    first, second = (lbit.to_bytes(latentbit.pack(model, images)) for _ in range(2))
    assert first == second


@torch.no_grad()
def _logits_and_nearest_to_0(model: nn.Module, images: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Of each image: PyTorch's logits, and the smallest size of all values that it takes the sign of."""
    smallest: list[torch.Tensor] = []
    hooks = [
        layer.register_forward_pre_hook(lambda _, args: smallest.append(args[0].abs().flatten(1).amin(1)))
        for layer in model.modules()
        if isinstance(layer, BINARY_LAYERS)
    ]
    logits = model(images)
    for hook in hooks:
        hook.remove()
    return logits.numpy(), torch.stack(smallest).amin(0).numpy()


@pytest.mark.parametrize("name", ["resnet18_compact", pytest.param("vgg_small", marks=pytest.mark.slow)])
def test_a_trained_network_gives_the_same_classes_packed(name: str) -> None:
    """All 1797 digits and 1000 images of noise: the same logits, and so the class, wherever rounding decides no bit."""
    options = {"widths": (8, 16)} if name == "resnet18_compact" else {"final_map": 1}
    model = models.create(name, in_channels=1, **options)
    latentbit.binarize_(model)
    pixels, answers = digits.arrays()
    images, labels = (
        torch.from_numpy(pixels / np.float32(255)) * 2 - 1,
        torch.from_numpy(answers.astype(np.int64)),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(30):
        batch = torch.arange(step * 32, (step + 1) * 32)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
        optimizer.step()
    engine = Engine(latentbit.pack(model.eval(), images[:1]), threads=2)
    for inputs in (images, torch.randn(1000, 1, 8, 8)):
        expected, nearest_to_0 = _logits_and_nearest_to_0(model, inputs)
        found = engine(inputs.numpy())
        far = np.abs(found - expected).max(1) > 1e-4 * np.abs(expected).max()
        # PyTorch and the engine round real layers differently, so a value that is 0 but for rounding may get either
        # bit. How many there are depends on the network, and so on the CPU that trained it.
        assert (nearest_to_0[far] < 1e-5).all()
        assert far.mean() < 0.01
        assert np.array_equal(found[~far].argmax(1), expected[~far].argmax(1))
    with torch.no_grad():
        assert (model(images).argmax(1) == labels).float().mean() > 0.2


class Bottleneck(nn.Module):
    """The block that everybody copies: in-place ReLU, +=, a convolution in the shortcut where shapes change."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, groups=2, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 2 * width, 1, bias=False), nn.BatchNorm2d(2 * width)
        self.relu = nn.ReLU(inplace=True)
        self.act = nn.Hardtanh(inplace=True)
        self.downsample = None
        if stride != 1 or before != 2 * width:
            shortcut = nn.Conv2d(before, 2 * width, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(2 * width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.act(self.bn1(self.conv1(x)))
        out = self.act(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += identity
        return self.relu(out) - 0.5


def test_a_network_as_users_write_it() -> None:
    stem = [
        nn.Conv2d(3, 16, 7, 2, 3, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    blocks = [Bottleneck(16, 8, 1), Bottleneck(16, 16, 2), Bottleneck(32, 16, 1)]
    head = [nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Dropout(0.2), nn.Linear(32, 7)]
    model = binary(nn.Sequential(*stem, *blocks, *head))
    network = same_as_torch(model, torch.randn(3, 3, 33, 33))
    binary_layers = [layer for layer in network.layers if layer.op == "binary_conv"]
    # Two of three convolutions in each block feed only a sign; the third and the shortcut are numbers.
    assert sum(layer.bits for layer in binary_layers) == 6
    assert "5.downsample.0" in {layer.name for layer in network.layers}
