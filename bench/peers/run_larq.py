"""Larq Compute Engine with its fastest settings on x86: indirect BGEMM (single-threaded) and XNNPACK.

Binary convolutions pad with +1, the cheap way there; sums at the border differ from ours, the work does not.
"""

from typing import Any

import larq
import larq_compute_engine as lce
import numpy as np
import tensorflow as tf
from larq_compute_engine.tflite.python.interpreter import Interpreter
from protocol import Subject, serve, subject


def scaled(this: Subject, layer: dict[str, Any], x: Any) -> Any:
    """Scale and bias as the BatchNorm that Larq's converter fuses."""
    scale, bias = this.tensor(layer, "scale"), this.tensor(layer, "bias")
    norm = tf.keras.layers.BatchNormalization(epsilon=1e-7)
    y = norm(x)
    n = len(scale)
    norm.set_weights([scale, bias, np.zeros(n, np.float32), np.ones(n, np.float32)])
    return y


def build(this: Subject) -> Any:
    _, channels, height, width = this.image.shape
    start = tf.keras.Input((height, width, channels))
    values: dict[str, Any] = {"input": start}
    for layer in this.layers:
        x, kind = values[layer["inputs"][0]], layer["op"]
        if kind == "binary_conv":
            signs = this.signs(layer).transpose(2, 3, 1, 0)
            padded = tf.keras.layers.ZeroPadding2D(1)(x) if max(layer["stride"]) > 1 else x
            conv = larq.layers.QuantConv2D(
                signs.shape[-1],
                signs.shape[:2],
                strides=layer["stride"],
                padding="valid" if max(layer["stride"]) > 1 else "same",
                pad_values=1.0,
                input_quantizer="ste_sign",
                kernel_quantizer="ste_sign",
                use_bias=False,
            )
            y = conv(padded)
            conv.set_weights([signs])
            if layer["affine"]:
                y = scaled(this, layer, y)
        elif kind == "conv":
            weight = this.tensor(layer, "weight").transpose(2, 3, 1, 0)
            top, left, bottom, right = layer["padding"]
            padded = tf.keras.layers.ZeroPadding2D(((top, bottom), (left, right)))(x)
            conv = tf.keras.layers.Conv2D(weight.shape[-1], weight.shape[:2], layer["stride"])
            y = conv(padded)
            conv.set_weights([weight, this.tensor(layer, "bias")])
        elif kind == "linear":
            dense = tf.keras.layers.Dense(layer["shape"][0])
            y = dense(x)
            dense.set_weights([this.tensor(layer, "weight").T, this.tensor(layer, "bias")])
        elif kind == "max_pool":
            same = "same" if max(layer["padding"]) else "valid"
            y = tf.keras.layers.MaxPool2D(layer["kernel"], layer["stride"], same)(x)
        elif kind == "global_avg_pool":
            y = tf.keras.layers.GlobalAvgPool2D()(x)
        elif kind == "prelu":
            prelu = tf.keras.layers.PReLU(shared_axes=[1, 2])
            y = prelu(x)
            prelu.set_weights([this.tensor(layer, "slope").reshape(1, 1, -1)])
        elif kind == "add":
            y = tf.keras.layers.Add()([x, values[layer["inputs"][1]]])
        elif kind == "concat":
            y = tf.keras.layers.Concatenate()([values[i] for i in layer["inputs"]])
        elif kind in ("sign", "flatten"):
            y = x
        else:
            raise SystemExit(f"no Larq counterpart of {kind}")
        values[layer["name"]] = y
    return tf.keras.Model(start, values[this.layers[-1]["name"]])


this = subject()
flatbuffer = lce.convert_keras_model(build(this))
interpreter = Interpreter(
    flatbuffer, num_threads=this.threads, use_reference_bconv=False, use_indirect_bgemm=True, use_xnnpack=True
)
image = np.ascontiguousarray(this.image.transpose(0, 2, 3, 1))
serve(lambda: interpreter.predict(image))
