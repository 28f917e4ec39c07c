"""PyTorch eager in float32: the same topology, signs left out, BatchNorm folded."""

from typing import Any

import torch
from protocol import Subject, serve, subject
from torch.nn import functional


def weights(this: Subject) -> dict[str, Any]:
    """Tensors of every layer, binary convolutions as float ones."""
    found = {key: torch.from_numpy(value) for key, value in this.tensors.items() if value.dtype.kind == "f"}
    for layer in this.layers:
        if layer["op"] == "binary_conv":
            signs = this.signs(layer) * this.tensor(layer, "scale").reshape(-1, 1, 1, 1)
            found[f"{layer['name']}.weight"] = torch.from_numpy(signs)
    return found


def run(this: Subject, tensors: dict[str, Any], image: Any) -> Any:
    values = {"input": image}
    for layer in this.layers:
        name, kind = layer["name"], layer["op"]
        x = values[layer["inputs"][0]]
        if kind in ("conv", "binary_conv"):
            weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
            padding = layer["padding"][:2]
            y = functional.conv2d(
                x, weight, bias, layer["stride"], padding, layer["dilation"], layer["groups"]
            )
        elif kind == "linear":
            y = functional.linear(x, tensors[f"{name}.weight"], tensors[f"{name}.bias"])
        elif kind == "max_pool":
            y = functional.max_pool2d(x, layer["kernel"], layer["stride"], layer["padding"][:2])
        elif kind == "global_avg_pool":
            y = x.mean((2, 3))
        elif kind == "prelu":
            y = functional.prelu(x, tensors[f"{name}.slope"])
        elif kind == "add":
            y = x + values[layer["inputs"][1]]
        elif kind == "concat":
            y = torch.cat([values[i] for i in layer["inputs"]], 1)
        elif kind in ("sign", "flatten"):
            y = x
        else:
            raise SystemExit(f"no torch counterpart of {kind}")
        values[name] = y
    return values[this.layers[-1]["name"]]


this = subject()
torch.set_num_threads(this.threads)
tensors, image = weights(this), torch.from_numpy(this.image)
with torch.inference_mode():
    serve(lambda: run(this, tensors, image))
