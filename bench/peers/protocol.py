"""What bench/engine.py and its peers say to each other: one JSON object per line, over stdin and stdout.

    {"do": "run", "calls": 20}     ->  {"ns": [...]}          one number per call
    {"do": "output", "to": path}   ->  {}                     the result on input.npy, as .npy
    {"do": "node"}                 ->  {"ns": number | null}  the binary convolution alone, where the peer can tell

A peer is started with the folder of its subject (network.json, tensors.npz, input.npy), a variant and a thread count.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Subject(NamedTuple):
    """What to run: layers in order, their tensors by "name.role", and one image."""

    folder: Path
    layers: list[dict[str, Any]]
    tensors: Any
    image: Any
    variant: str
    threads: int

    def tensor(self, layer: dict[str, Any], role: str) -> Any:
        """A tensor of a layer, or None."""
        key = f"{layer['name']}.{role}"
        return self.tensors[key] if key in self.tensors else None

    def signs(self, layer: dict[str, Any]) -> Any:
        """Binary weights as +1 and -1, [O, I, kh, kw]."""
        words = np.ascontiguousarray(self.tensor(layer, "bits"))
        bits = np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little")
        n = layer["in_channels"] // layer["groups"]
        return np.ascontiguousarray((1 - 2 * bits[..., :n].astype(np.float32)).transpose(0, 3, 1, 2))


def subject() -> Subject:
    """The subject named on the command line."""
    folder, variant, threads = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    network = json.loads((folder / "network.json").read_text())
    tensors = dict(np.load(folder / "tensors.npz"))
    return Subject(folder, network["layers"], tensors, np.load(folder / "input.npy"), variant, threads)


def serve(call: Callable[[], Any], node: Callable[[], float | None] = lambda: None) -> None:
    """Answer until stdin closes. `call` runs the network once and returns its output."""
    call()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        if request["do"] == "run":
            times = []
            for _ in range(request["calls"]):
                start = time.perf_counter_ns()
                call()
                times.append(time.perf_counter_ns() - start)
            answer = {"ns": times}
        elif request["do"] == "output":
            np.save(request["to"], np.asarray(call()).reshape(-1))
        elif request["do"] == "node":
            answer = {"ns": node()}
        print(json.dumps(answer), flush=True)
