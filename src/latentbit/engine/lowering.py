"""From the steps of a plan to a native program: value numbers, arrays, epilogues."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentbit import _native
from latentbit.engine.plan import Chain, Step, plan
from latentbit.lbit import INPUT, Layer, Network
from latentbit.lbit.limits import MAX_BYTES

POINT = {"stride": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1)}
"""A linear layer is a convolution of one pixel."""


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
        self.program.set_output(self.values[network.layers[-1].name])

    def _new(self, name: str, bits: bool = False) -> int:
        channels, height, width = (*self.shapes[name], 1, 1)[:3]
        self.values[name] = self.program.value(bits, channels, height, width)
        return self.values[name]

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
            arrays["activation"] = chain.activation.op
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
