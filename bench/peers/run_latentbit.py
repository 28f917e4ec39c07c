"""Ours, through the public interface: the .lbit file of the subject, on floats or on bytes with an 8-bit stem."""

import numpy as np
from protocol import serve, subject

from latentbit import engine

this = subject()
in_bytes = this.variant == "bytes"
net = engine.load(this.folder / ("bytes.lbit" if in_bytes else "network.lbit"), threads=this.threads)
images = np.load(this.folder / "pixels.npy") if in_bytes else this.image


def node() -> float | None:
    """The binary convolution of a subject that has one."""
    times = [us for _, op, us in net.profile(images, repeats=200) if op == "binary_conv"]
    return min(times) * 1e3 if len(times) == 1 else None


serve(lambda: net(images), node)
