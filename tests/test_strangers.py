"""Networks of strangers, untrained: what binarize_ and pack say, and that the engine gives what PyTorch gives.

Trained ones are in results/strangers, by bench/strangers.py.
"""

import pytest
import torch
from packing_models import scramble_
from strangers_networks import NETWORKS, logits

import latentbit
from latentbit.engine import Engine
from latentbit.packing import CannotPack
from latentbit.packing.pack_run import compare

BLIND = {  # binary layers whose input is never negative, by name
    "ReLU CNN": 2,
    "LeNet, F.relu": 3,
    "MobileNet, ReLU6": 7,
    "MobileNetV3, SE, hardswish": 3,
    "U-Net": 8,
    "nn.TransformerEncoder": 2,
    "ResNet as in timm": 8,
    "RegNetY as in timm": 10,
    "DenseNet": 13,
    "VGG with BatchNorm": 6,
}
REFUSED = {
    "tiny ViT": r"blocks.0.norm1: aten.layer_norm .*run transformers in PyTorch. Nor have .*attention",
    "nn.TransformerEncoder": r"aten.scaled_dot_product_attention has no counterpart.* Nor have .*layer_norm",
}


@pytest.mark.filterwarnings("ignore::latentbit.errors.LatentbitWarning")
@pytest.mark.parametrize("name", NETWORKS)
def test_strangers_are_warned_packed_or_refused_by_name(name: str) -> None:
    try:
        model = NETWORKS[name]()
    except ImportError as error:
        pytest.skip(str(error))
    swapped = latentbit.binarize_(model)
    assert len(swapped.blocked) == BLIND.get(name, 0)
    traced = name not in ("ResNet of transformers", "tiny ViT")
    assert swapped.traced is traced and ("cannot be traced" in str(swapped)) is not traced
    images = torch.randn(4, 1, 8, 8)
    if name in REFUSED:
        with pytest.raises(CannotPack, match=REFUSED[name]):
            latentbit.pack(model.eval(), images)
        return
    # With PReLU in front of its binary layers, so that what they see matters.
    model = NETWORKS[name]()
    latentbit.binarize_(model, activation="prelu")
    network = latentbit.pack(scramble_(model), images)
    with torch.no_grad():
        agreement = compare(logits(model(images)).numpy(), Engine(network)(images.numpy()))
    assert agreement.n_close == 4, str(agreement)
