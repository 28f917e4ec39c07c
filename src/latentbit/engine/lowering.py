"""From the steps of a plan to a native program: value numbers, arrays, epilogues."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentbit import _native
from latentbit.engine.plan import Chain, Step, plan
from latentbit.lbit import INPUT, Layer, Network
from latentbit.lbit.limits import MAX_BYTES

POINT = {"stride": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1)}
"""A linear layer is a convolution of one pixel."""
HARDTANH = {"low": -1.0, "high": 1.0}


def lower(network: Network, isa: str, threads: int) -> _native.Program:
    """The program that computes the network."""
    return _Lowering(network, isa, threads).program


class _Lowering:
    def __init__(self, network: Network, isa: str, threads: int) -> None:
        self.program = _native.Program(isa, threads, *network.input_shape, MAX_BYTES)
        n_channels = network.input_shape[0]
        self.program.set_pixels(
            list(network.mean or [0.0] * n_channels), list(network.std or [1.0] * n_channels)
        )
        self.shapes = {layer.name: layer.shape for layer in network.layers} | {INPUT: network.input_shape}
        self.values: dict[str, int] = {}
        for step in plan(network):
            getattr(self, f"_{step.layer.op}", self._elementwise)(step)
        self.program.set_output(self._planar(network.layers[-1]))

    def _new(self, name: str, bits: bool = False) -> int:
        channels, height, width = (*self.shapes[name], 1, 1)[:3]
        self.values[name] = self.program.value(bits, channels, height, width)
        return self.values[name]

    def _planar(self, layer: Layer) -> int:
        """The output: a map leaves as (C, H, W), in the order of a flattened one."""
        if len(layer.shape) == 1:
            return self.values[layer.name]
        flat = self.program.value(False, math.prod(layer.shape), 1, 1)
        self.program.flatten(layer.name, self.values[layer.name], flat)
        return flat

    def _read(self, name: str) -> int:
        """The value of that name; the input, which is planar, is copied for those who want channels last."""
        if name == INPUT and INPUT not in self.values:
            self._new(INPUT)
            self.program.channels_last(INPUT, self.values[INPUT])
        return self.values[name]

    def _finish(self, chain: Chain, extra: dict[str, Any], real: bool | None = None) -> _native.Finish:
        arrays: dict[str, Any] = dict(extra)
        if chain.affine is not None:
            arrays |= chain.affine.tensors
        if chain.residual is not None:
            arrays["residual"] = self._read(chain.residual)
            arrays["residual_channels"] = self.shapes[chain.residual][0]
        if chain.activation is not None:
            clamps = chain.activation.op in ("hardtanh", "clamp")
            arrays["activation"] = "clamp" if clamps else chain.activation.op
            arrays |= HARDTANH if chain.activation.op == "hardtanh" else chain.activation.attributes
            arrays |= chain.activation.tensors
        if chain.keep if real is None else real:
            arrays["real"] = self._new(chain.value)
        if chain.sign is not None:
            arrays["bits"] = self._new(chain.sign.name, bits=True)
            arrays |= chain.sign.tensors
        return _native.Finish(self.shapes[chain.value][0], **arrays)

    def _binary_conv(self, step: Step) -> None:
        layer = step.layer
        self._binary(step, layer.tensors["bits"], layer.attributes["groups"], layer.attributes)

    def _binary_linear(self, step: Step) -> None:
        self._binary(step, step.layer.tensors["bits"][:, None, None, :], 1, POINT)

    def _binary(self, step: Step, bits: NDArray[np.uint64], groups: int, attributes: Any) -> None:
        layer = step.layer
        if layer.bits:
            arrays: dict[str, Any] = {
                "dot_threshold": layer.tensors["threshold"],
                "flip": layer.tensors["flip"],
            }
            finish = _native.Finish(layer.shape[0], bits=self._new(layer.name, bits=True), **arrays)
        else:
            finish = self._finish(step.chain, {key: layer.tensors[key] for key in ("scale", "bias")})
        geometry = _geometry(attributes, bits.shape[1:3])
        self.program.binary(layer.name, self._read(layer.inputs[0]), bits, groups, geometry, finish)

    def _conv(self, step: Step) -> None:
        layer = step.layer
        self._real_conv(step, _real_weight(layer), layer.attributes["groups"], layer.attributes)

    def _linear(self, step: Step) -> None:
        self._real_conv(step, _real_weight(step.layer)[:, :, None, None], 1, POINT)

    def _real_conv(self, step: Step, weight: NDArray[np.float32], groups: int, attributes: Any) -> None:
        layer, pooled = step.layer, None
        source = 0 if layer.inputs[0] == INPUT else self._read(layer.inputs[0])
        one_pixel = self.shapes[layer.name][1:] in ((), (1, 1))
        finish = self._finish(
            step.chain, {}, False if step.pool is not None else step.chain.keep or one_pixel
        )
        if step.pool is not None:
            pooled = _native.Pooled(_pool_geometry(step.pool), self._finish(step.pool_chain, {}))
        geometry = _geometry(attributes, weight.shape[2:])
        in_bytes: dict[str, Any] = {}
        if "weight_scale" in layer.tensors and layer.op == "conv" and layer.inputs[0] == INPUT:
            in_bytes = {
                "byte_weights": layer.tensors["weight"],
                "byte_scale": layer.tensors["weight_scale"],
            }
        self.program.conv(
            layer.name, source, weight, layer.tensors["bias"], groups, geometry, finish, pooled, **in_bytes
        )

    def _max_pool(self, step: Step) -> None:
        layer, source = step.layer, self._read(step.layer.inputs[0])
        if layer.bits:
            out = self._new(layer.name, bits=True)
            self.program.bits_pool(layer.name, source, _pool_geometry(layer), out)
        else:
            finish = self._finish(step.chain, {})
            self.program.max_pool(layer.name, source, _pool_geometry(layer), finish)

    def _avg_pool(self, step: Step) -> None:
        layer, source = step.layer, self._read(step.layer.inputs[0])
        include = layer.attributes["count_include_pad"]
        finish = self._finish(step.chain, {})
        self.program.avg_pool(layer.name, source, _pool_geometry(layer), include, finish)

    def _global_avg_pool(self, step: Step) -> None:
        layer, source = step.layer, self._read(step.layer.inputs[0])
        _, height, width = self.shapes[layer.inputs[0]]
        geometry = _native.Geometry((height, width), (1, 1), (0, 0, 0, 0), (1, 1))
        self.program.avg_pool(layer.name, source, geometry, False, self._finish(step.chain, {}))

    def _adaptive_avg_pool(self, step: Step) -> None:
        layer, source = step.layer, self._read(step.layer.inputs[0])
        size = layer.attributes["size"]
        self.program.adaptive_avg_pool(layer.name, source, tuple(size), self._finish(step.chain, {}))

    def _conv_transpose(self, step: Step) -> None:
        """A 1x1 convolution gives what every tap makes of every pixel; then they are summed where they belong."""
        layer, a = step.layer, step.layer.attributes
        weight, groups = _real_weight(layer), a["groups"]
        n_out, n_in, *kernel = weight.shape
        per_group = weight.reshape(groups, n_out // groups, n_in, -1)
        taps = np.ascontiguousarray(per_group.transpose(0, 3, 1, 2)).reshape(-1, n_in, 1, 1)
        _, height, width = self.shapes[layer.inputs[0]]
        source = 0 if layer.inputs[0] == INPUT else self._read(layer.inputs[0])
        spread = self.program.value(False, len(taps), height, width)
        finish = _native.Finish(len(taps), real=spread)
        zeros = np.zeros(len(taps), np.float32)
        self.program.conv(layer.name, source, taps, zeros, groups, _geometry(POINT, (1, 1)), finish)
        geometry = _geometry({**a, "padding": (*a["padding"], 0, 0)}, tuple(kernel))
        bias = {"scale": np.ones(n_out, np.float32), "bias": layer.tensors["bias"]}
        finish = self._finish(step.chain, bias)
        self.program.sum_taps(layer.name, spread, groups, geometry, tuple(a["size"]), finish)

    def _resize(self, step: Step) -> None:
        layer, source = step.layer, self._read(step.layer.inputs[0])
        t, finish = layer.tensors, self._finish(step.chain, {})
        self.program.resize(
            layer.name, source, t["row"], t["row_share"], t["column"], t["column_share"], finish
        )

    def _curve(self, step: Step) -> None:
        layer, source = step.layer, self._read(step.layer.inputs[0])
        self.program.activation(layer.name, source, layer.op, self._finish(step.chain, {}))

    _sigmoid = _silu = _hard_sigmoid = _hard_swish = _curve

    def _multiply(self, step: Step) -> None:
        first, second = (self._read(name) for name in step.layer.inputs)
        self.program.multiply(step.layer.name, first, second, self._finish(step.chain, {}))

    def _reshape(self, step: Step) -> None:
        layer, source = step.layer, self._read(step.layer.inputs[0])
        self.program.reshape(layer.name, source, self._new(layer.name))

    def _permute(self, step: Step) -> None:
        layer, source = step.layer, self._read(step.layer.inputs[0])
        order = layer.attributes["order"]
        self.program.permute(layer.name, source, tuple(order), self._new(layer.name))

    def _concat(self, step: Step) -> None:
        inputs = [self._read(name) for name in step.layer.inputs]
        self.program.concat(step.layer.name, inputs, self._new(step.layer.name))

    def _flatten(self, step: Step) -> None:
        layer, source = step.layer, self._read(step.layer.inputs[0])
        self.program.flatten(layer.name, source, self._new(layer.name, bits=layer.bits))

    def _sign(self, step: Step) -> None:
        if step.layer.inputs[0] == INPUT:
            self.program.sign_input(step.layer.name, self._finish(step.chain, {}))
        else:
            self._elementwise(step)

    def _elementwise(self, step: Step) -> None:
        source = self._read(step.layer.inputs[0])
        self.program.finish(step.layer.name, source, self._finish(step.chain, {}))


def _geometry(attributes: Any, kernel: tuple[int, ...]) -> _native.Geometry:
    return _native.Geometry(
        (kernel[0], kernel[1]),
        tuple(attributes["stride"]),
        tuple(attributes["padding"]),
        tuple(attributes["dilation"]),
    )


def _pool_geometry(layer: Layer) -> _native.Geometry:
    return _geometry({**layer.attributes, "dilation": (1, 1)}, layer.attributes["kernel"])


def _real_weight(layer: Layer) -> NDArray[np.float32]:
    """float32 weights, whatever the file holds."""
    weight = layer.tensors["weight"].astype(np.float32)
    if "weight_scale" in layer.tensors:
        weight *= layer.tensors["weight_scale"].reshape(-1, *([1] * (weight.ndim - 1)))
    return weight
