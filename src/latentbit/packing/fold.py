"""Folding: fewer layers that compute the same.

    binary layer -> [BN, hardtanh, max pool ...] -> sign      an integer threshold (and a pool of bits)
    value        -> [BN, hardtanh, max pool ...] -> sign      a threshold per channel (and a pool of bits)
    binary or real layer -> BN                                a scale and a bias

Only where nobody else needs what lies between. A BN that remains becomes an `affine`.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from latentbit.lbit import INPUT, Layer, pack_signs
from latentbit.packing.thresholds import integer_threshold, real_threshold

BINARY = ("binary_conv", "binary_linear")
REAL = ("conv", "linear", "conv_transpose")
PER_CHANNEL = ("batch_norm", "affine", "prelu")
SAME_FOR_ALL = ("relu", "hardtanh", "clamp")


def fold(layers: Sequence[Layer], input_shape: tuple[int, ...]) -> list[Layer]:
    """Layers as trace gives them -> layers as a file holds them."""
    graph = Rewriter(layers, input_shape)
    graph.share_signs()
    for name in [layer.name for layer in layers if layer.op == "sign"]:
        if name in graph.layers:
            graph.fold_into_sign(name)
    graph.fold_scales()
    graph.name_global_pools()
    return [_lower(layer) for layer in graph.ordered()]


class Rewriter:
    """Layers by name, rewritten in place; order is restored at the end."""

    def __init__(self, layers: Sequence[Layer], input_shape: tuple[int, ...]) -> None:
        self.layers = {layer.name: layer for layer in layers}
        self.output = layers[-1].name
        self.input_shape = input_shape

    def users(self, name: str) -> list[str]:
        return [layer.name for layer in self.layers.values() if name in layer.inputs]

    def has_one_user(self, name: str) -> bool:
        return name != self.output and len(self.users(name)) == 1

    def shape(self, name: str) -> tuple[int, ...]:
        return self.input_shape if name == INPUT else self.layers[name].shape

    def redirect(self, old: str, new: str, but: str = "") -> None:
        """Whoever read `old` reads `new`."""
        for layer in list(self.layers.values()):
            if old in layer.inputs and layer.name != but:
                inputs = tuple(new if name == old else name for name in layer.inputs)
                self.layers[layer.name] = dataclasses.replace(layer, inputs=inputs)
        self.output = new if self.output == old else self.output

    def update(self, name: str, **changes: object) -> None:
        self.layers[name] = dataclasses.replace(self.layers[name], **changes)  # type: ignore[arg-type]

    def ordered(self) -> list[Layer]:
        """What the output needs, inputs before users."""
        done: dict[str, Layer] = {}
        stack = [self.output]
        while stack:
            layer = self.layers[stack[-1]]
            missing = [name for name in layer.inputs if name != INPUT and name not in done]
            if missing:
                stack.extend(reversed(missing))
            else:
                done.setdefault(stack.pop(), layer)
        return list(done.values())

    def share_signs(self) -> None:
        """Two binary layers that read one value with the same thresholds read one sign."""
        seen: dict[tuple[str, bytes, bytes], str] = {}
        for layer in list(self.layers.values()):
            if layer.op == "sign":
                threshold = layer.tensors.get("threshold", np.zeros(0, np.float32))
                flip = layer.tensors.get("flip", np.zeros(0, np.uint8))
                key = (layer.inputs[0], threshold.tobytes(), flip.tobytes())
                first = seen.setdefault(key, layer.name)
                if first != layer.name:
                    self.redirect(layer.name, first)
                    del self.layers[layer.name]

    def fold_into_sign(self, name: str) -> None:
        """Let a sign, or the binary layer before it, take over the monotone layers in front of it."""
        sign = self.layers[name]
        chain, head = self._chain(sign)
        movers = [layer for layer in chain if layer.op in ("max_pool", "flatten")]
        acting = [layer for layer in chain if layer not in movers]
        before = self.layers.get(head)
        to_integers = before is not None and before.op in BINARY and self.has_one_user(head)
        if not chain and not to_integers:
            return
        n_channels = self.shape(head)[0]
        flipped = self._falls_after_pool(chain, sign, n_channels)
        # Per-channel tensors fit where the sign now stands: after a flatten a uniform threshold had more entries.
        uniform = {role: np.resize(tensor, n_channels) for role, tensor in sign.tensors.items()}
        sign = dataclasses.replace(sign, shape=self.shape(head), tensors=uniform)
        for layer in chain:
            del self.layers[layer.name]
        if to_integers:
            assert before is not None
            tensors = integer_threshold(before, acting, sign)
            tensors["flip"] = tensors["flip"] ^ flipped
            self.update(head, tensors={"signs": before.tensors["signs"], **tensors})
            del self.layers[name]
            bits = head
        else:
            tensors = real_threshold(acting, sign, n_channels)
            tensors["flip"] = tensors["flip"] ^ flipped
            tensors = {role: array for role, array in tensors.items() if array.any()}
            self.layers[name] = dataclasses.replace(sign, inputs=(head,), tensors=tensors)
            bits = name
        last = bits
        for mover in movers:
            self.layers[mover.name] = dataclasses.replace(mover, inputs=(last,))
            last = mover.name
        # Its users read what comes last; the first mover goes on reading the bits.
        self.redirect(name, last, but=movers[0].name if movers else "")
        self.negate(last, np.repeat(flipped, self.shape(last)[0] // n_channels))

    def _chain(self, sign: Layer) -> tuple[list[Layer], str]:
        """Monotone layers that only this sign reads, in order, and the value in front of them."""
        chain: list[Layer] = []
        head = sign.inputs[0]
        while head in self.layers and self.has_one_user(head):
            layer = self.layers[head]
            ops = [found.op for found in chain]
            if layer.op == "prelu" and layer.tensors["slope"].min() < 0:
                break
            if layer.op == "max_pool" and "max_pool" in ops:
                break
            if layer.op == "flatten" and not self._moves_before_flatten(layer, sign, ops):
                break
            if layer.op not in (*PER_CHANNEL, *SAME_FOR_ALL, "max_pool", "flatten"):
                break
            chain.insert(0, layer)
            head = layer.inputs[0]
        return chain, head

    def _moves_before_flatten(self, flatten: Layer, sign: Layer, ops_after: list[str]) -> bool:
        """Features and channels are the same thing for one pixel, or when all features are treated alike."""
        source = self.shape(flatten.inputs[0])
        uniform = all(np.all(tensor == tensor[0]) for tensor in sign.tensors.values())
        return source[1:] == (1, 1) or (uniform and not set(ops_after) & set(PER_CHANNEL))

    @staticmethod
    def _falls_after_pool(chain: list[Layer], sign: Layer, n_channels: int) -> NDArray[np.bool_]:
        """Channels that fall as the output of the max pool rises.

        There sign(max) is the least of the signs. Negated signs turn that into the greatest, which is what a pool of
        bits computes; the layers that read them negate their weights of that channel in turn.
        """
        falls = np.zeros(n_channels, np.bool_)
        ops = [layer.op for layer in chain]
        if "max_pool" in ops:
            if "flip" in sign.tensors:
                falls ^= np.resize(sign.tensors["flip"], n_channels).astype(np.bool_)
            for layer in chain[ops.index("max_pool") :]:
                slope = layer.tensors.get("gamma", layer.tensors.get("scale"))
                if slope is not None:
                    falls ^= slope < 0
        return falls

    def negate(self, name: str, channels: NDArray[np.bool_]) -> None:
        """Make every reader of these bits expect the opposite in some channels."""
        if not channels.any():
            return
        for user in self.users(name):
            layer = self.layers[user]
            if layer.op == "flatten":
                self.negate(user, np.repeat(channels, math.prod(self.shape(name)[1:])))
                continue
            signs = layer.tensors["signs"].copy()
            groups = layer.attributes.get("groups", 1)
            for rows, part in zip(np.split(signs, groups), np.split(channels, groups), strict=True):
                rows[:, part] *= -1
            self.update(user, tensors={**layer.tensors, "signs": signs})

    def fold_scales(self) -> None:
        """BN (or another affine) into the layer in front of it, if that is its only reader."""
        for name in list(self.layers):
            layer = self.layers[name]
            if layer.op not in ("batch_norm", "affine"):
                continue
            scale, bias = scale_and_bias(layer)
            before = self.layers.get(layer.inputs[0])
            takes = before is not None and before.op in (*BINARY, *REAL, "affine", "batch_norm")
            if (
                before is None
                or not takes
                or "threshold" in before.tensors
                or not self.has_one_user(before.name)
            ):
                continue
            tensors = dict(before.tensors)
            if before.op in REAL:
                weight = tensors["weight"]
                tensors["weight"] = (weight * scale.reshape(-1, *[1] * (weight.ndim - 1))).astype(np.float32)
                old_bias = tensors["bias"].astype(np.float64)
            else:
                old_scale, old_bias = scale_and_bias(before)
                tensors = {role: array for role, array in tensors.items() if role == "signs"}
                tensors["scale"] = (old_scale * scale).astype(np.float32)
            tensors["bias"] = (old_bias * scale + bias).astype(np.float32)
            op = "affine" if before.op == "batch_norm" else before.op
            self.update(before.name, op=op, tensors=tensors)
            self.redirect(layer.name, before.name)
            del self.layers[layer.name]

    def name_global_pools(self) -> None:
        """An average over the whole map, then flattened, is one layer."""
        for layer in list(self.layers.values()):
            if layer.op != "flatten" or layer.inputs[0] == INPUT:
                continue
            pool = self.layers[layer.inputs[0]]
            if pool.op != "avg_pool" or not self.has_one_user(pool.name):
                continue
            whole = list(pool.attributes["kernel"]) == list(self.shape(pool.inputs[0])[1:])
            if whole and not any(pool.attributes["padding"]):
                self.layers[pool.name] = Layer("global_avg_pool", pool.name, pool.inputs, shape=layer.shape)
                self.redirect(layer.name, pool.name)
                del self.layers[layer.name]


def scale_and_bias(layer: Layer) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of a batch_norm, affine or binary layer: y = scale * x + bias per channel."""
    t = {role: array.astype(np.float64) for role, array in layer.tensors.items() if role != "signs"}
    if layer.op != "batch_norm":
        return t["scale"], t["bias"]
    scale = t["gamma"] / np.sqrt(t["var"] + layer.attributes["eps"])
    return scale, t["beta"] - t["mean"] * scale


def _lower(layer: Layer) -> Layer:
    """To the ops and tensors of the file format."""
    if layer.op in BINARY:
        signs = layer.tensors["signs"]
        # Channels last: a row of bits is what one kernel position reads.
        rows = signs.transpose(0, 2, 3, 1) if signs.ndim == 4 else signs
        others = {role: array for role, array in layer.tensors.items() if role != "signs"}
        return dataclasses.replace(layer, tensors={"bits": pack_signs(rows), **others})
    if layer.op == "batch_norm":
        scale, bias = scale_and_bias(layer)
        tensors = {"scale": scale.astype(np.float32), "bias": bias.astype(np.float32)}
        return dataclasses.replace(layer, op="affine", attributes={}, tensors=tensors)
    return layer
