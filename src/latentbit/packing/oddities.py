"""What packs and is probably not as meant: a network without binary layers, a binary layer that sees one sign only."""

import re
import warnings
from collections.abc import Sequence

import numpy as np

from latentbit.errors import LatentbitWarning
from latentbit.lbit import Layer
from latentbit.packing.binary_layers import has_signs

PASS_ON = (
    "max_pool", "avg_pool", "global_avg_pool", "adaptive_avg_pool", "flatten", "add", "concat",
    "multiply", "resize", "reshape", "permute",
)  # fmt: skip


def warn_of_oddities(layers: Sequence[Layer], name: str) -> None:
    """Of layers as trace gives them; `name` is that of the model."""
    if not any(layer.op in ("binary_conv", "binary_linear") or has_signs(layer.name) for layer in layers):
        warnings.warn(
            f"{name} has no binary layer: every weight is packed as a real number. Call latentbit.binarize_(model) "
            "before training it, if it was meant to be binary",
            LatentbitWarning,
            stacklevel=3,
        )
    blind = sees_one_sign(layers)
    if blind:
        which = (
            f"binary layer {blind[0]} sees" if len(blind) == 1 else f"binary layers {', '.join(blind)} see"
        )
        warnings.warn(
            f"{which} only what a ReLU lets through, which is +1 everywhere: the output hardly depends on the image. "
            'Train it anew with nn.PReLU there, or with binarize_(activation="prelu")',
            LatentbitWarning,
            stacklevel=3,
        )


def _never_negative(layer: Layer) -> bool:
    return layer.op in ("relu", "sigmoid", "hard_sigmoid") or (
        layer.op == "clamp" and layer.attributes["low"] >= 0
    )


def sees_one_sign(layers: Sequence[Layer]) -> list[str]:
    """Binary layers that read the sign of a value that is never below its threshold."""
    never_negative: set[str] = set()
    # Methods with several bits per value have several signs of it, and some of them may be constant.
    blind: dict[tuple[str, str], bool] = {}
    for layer in layers:
        sources_are = bool(layer.inputs) and all(source in never_negative for source in layer.inputs)
        if _never_negative(layer) or (layer.op in PASS_ON and sources_are):
            never_negative.add(layer.name)
        elif layer.op == "sign":
            threshold = layer.tensors.get("threshold", np.zeros(1, np.float32))
            key = re.sub(r"\.sign(@\d+)?$", "", layer.name), layer.inputs[0]
            blind[key] = blind.get(key, True) and sources_are and bool((threshold <= 0).all())
    return [name for (name, _), is_blind in blind.items() if is_blind]
