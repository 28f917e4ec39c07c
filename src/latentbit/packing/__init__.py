"""pack: a trained module becomes a Network of true bits, which `latentbit.lbit.write` puts in a .lbit file.

trace.py turns the module into layers, fold.py folds what can be folded, report.py says what it all weighs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn

from latentbit import __version__
from latentbit.lbit import INPUT, Layer, Network, checked
from latentbit.packing.binary_layers import has_signs, is_exact
from latentbit.packing.fold import REAL, fold
from latentbit.packing.oddities import warn_of_oddities
from latentbit.packing.operators import CannotPack
from latentbit.packing.trace import input_map, trace, with_tensors
from latentbit.views import TwoView

__all__ = ["CannotPack", "pack"]


def pack(
    model: nn.Module,
    example: Tensor,
    *,
    float_bits: int = 32,
    stem_bits: int | None = None,
    classes: Sequence[str] | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    source: Mapping[str, Any] | None = None,
) -> Network:
    """The binary view of `model` in eval mode as a packed Network; CannotPack names what does not fit.

    `example` is one input batch (N, C, H, W), (N, C, L) or (N, features); only its shape matters. The engine takes
    the second as (N, C, 1, L), the third as (N, features, 1, 1). `float_bits` is 32, 16 or 8:
    how weights of the layers that stay real are stored; `stem_bits` the same for the layers that read the input, if
    they are to differ (8 lets the engine run them in integers on images of bytes). `mean` and `std` tell what was
    done to pixels in [0, 1].
    """
    stem_bits = stem_bits or float_bits
    for name, bits in (("float_bits", float_bits), ("stem_bits", stem_bits)):
        if bits not in (8, 16, 32):
            raise CannotPack(f"{name}={bits}: choose 32, 16 or 8")
    if example.dim() not in (2, 3, 4) or len(example) == 0:
        raise CannotPack(
            f"example has shape {list(example.shape)}: pass a batch (N, C, H, W), (N, C, L) or (N, features)"
        )
    if isinstance(model, TwoView):
        model = model.binary
    input_shape = input_map(tuple(example.shape[1:]))
    traced = trace(model, example)
    warn_of_oddities(traced, type(model).__name__)
    layers = fold(traced, input_shape)
    return checked(
        Network(
            input_shape,
            tuple(shrink(layer, stem_bits if INPUT in layer.inputs else float_bits) for layer in layers),
            tuple(classes) if classes is not None else None,
            tuple(float(v) for v in mean) if mean is not None else None,
            tuple(float(v) for v in std) if std is not None else None,
            {"packed_by": f"latentbit {__version__}", **(source or {})},
        )
    )


def shrink(layer: Layer, float_bits: int) -> Layer:
    """Weights of a real layer in 16 bits, or in 8 with one scale per output channel; signs in 8 at any rate."""
    if layer.op in REAL and has_signs(layer.name):
        weight = layer.tensors["weight"]
        sizes = np.abs(weight.reshape(len(weight), -1))
        if (sizes == sizes[:, :1]).all():  # else a module of the user's happens to have such a name
            return with_tensors(
                layer, weight=np.sign(weight).astype(np.int8), weight_scale=sizes[:, 0].copy()
            )
    if layer.op not in REAL or float_bits == 32 or is_exact(layer.name):
        return layer
    weight = layer.tensors["weight"]
    if float_bits == 16:
        if np.abs(weight).max() > np.finfo(np.float16).max:
            raise CannotPack(f"{layer.name}: weights too large for 16 bits, use float_bits=32 or 8")
        return with_tensors(layer, weight=weight.astype(np.float16))
    largest = np.abs(weight.reshape(len(weight), -1)).max(axis=1)
    scale = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    steps = np.rint(weight / scale.reshape(-1, *[1] * (weight.ndim - 1)))
    return with_tensors(layer, weight=np.clip(steps, -127, 127).astype(np.int8), weight_scale=scale)
