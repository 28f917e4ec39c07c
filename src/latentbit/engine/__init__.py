"""Run a packed network: numpy in, numpy out, XNOR and popcount between, no torch.

    net = latentbit.engine.load("model.lbit", threads=2)
    logits = net(images)        # float32 (N, C, H, W), normalised as in training -> float32 (N, classes)

The kernels are the best this CPU and its OS allow; LATENTBIT_ISA or `isa=` forces others (see `available`).
"""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentbit import _native
from latentbit.engine.lowering import lower
from latentbit.errors import LatentbitError
from latentbit.lbit import Network, read

ISA_VARIABLE = "LATENTBIT_ISA"
MAX_BATCH = 1 << 16


class EngineError(LatentbitError):
    """The engine can not run this network, with these kernels or on these images."""


def available() -> list[str]:
    """Kernels that can run on this machine, best first."""
    return _native.available()


def chosen_isa(isa: str | None = None) -> str:
    """The kernels to use: the argument, else LATENTBIT_ISA, else the best."""
    name = isa or os.environ.get(ISA_VARIABLE) or available()[0]
    if name not in available():
        source = "isa" if isa else ISA_VARIABLE
        raise EngineError(f"{source}={name}: this machine can run {', '.join(available())}")
    return name


def load(path: str | os.PathLike[str], *, threads: int = 1, isa: str | None = None) -> "Engine":
    """Read a .lbit file and make it ready to run."""
    return Engine(read(path), threads=threads, isa=isa)


class Engine:
    """A packed network ready to run. Calls share buffers: those from several Python threads take turns."""

    def __init__(self, network: Network, *, threads: int = 1, isa: str | None = None) -> None:
        if not 1 <= threads <= 1024:
            raise EngineError(f"threads={threads}: choose 1 to 1024")
        self.network = network
        chosen = chosen_isa(isa)
        try:
            self._program = lower(network, chosen, threads)
        except (ValueError, MemoryError) as error:
            raise EngineError(f"this network can not run here: {error or 'not enough memory'}") from None
        self._n_outputs = network.n_outputs

    def __call__(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        """Logits (N, outputs) of float32 images (N, C, H, W)."""
        images = self._checked(images)
        out = np.empty((len(images), self._n_outputs), np.float32)
        self._program.run(images, out)
        return out

    def profile(self, images: NDArray[np.float32], repeats: int = 20) -> list[tuple[str, str, float]]:
        """(name, op, least microseconds) of every step."""
        images = self._checked(images)
        out = np.empty((len(images), self._n_outputs), np.float32)
        times = np.min([self._program.run_timed(images, out) for _ in range(repeats)], axis=0) / 1e3
        return [(name, op, float(t)) for (name, op), t in zip(self._program.steps, times, strict=True)]

    @property
    def isa(self) -> str:
        """Name of the kernels that run."""
        return self._program.isa

    @property
    def threads(self) -> int:
        return self._program.threads

    def _checked(self, images: Any) -> NDArray[np.float32]:
        shape = self.network.input_shape
        if not isinstance(images, np.ndarray) or images.ndim != 4 or images.shape[1:] != shape:
            given = getattr(images, "shape", type(images).__name__)
            raise EngineError(f"images: expected an array (N, {', '.join(map(str, shape))}), got {given}")
        if images.dtype != np.float32:
            raise EngineError(f"images: expected float32, got {images.dtype}")
        if not 1 <= len(images) <= MAX_BATCH:
            raise EngineError(f"images: a batch of {len(images)}, not 1 to {MAX_BATCH}")
        return np.ascontiguousarray(images)
