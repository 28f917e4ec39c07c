"""Run a packed network: numpy in, numpy out, XNOR and popcount between, no torch.

    net = latentbit.engine.load("model.lbit", threads=2)
    logits = net(images)        # float32 (N, C, H, W), normalised as in training -> float32 (N, classes)
    logits = net(pixels)        # or uint8 (N, C, H, W) or (N, H, W, C), as image files have them
    net.classify("photo.png")   # or an image file

The kernels are the best this CPU and its OS allow; LATENTBIT_ISA or `isa=` forces others (see `available`).
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from latentbit import _native
from latentbit.errors import LatentbitError
from latentbit.lbit import Network, core, open_native

if TYPE_CHECKING:
    from latentbit.engine.classify import Answer

ISA_VARIABLE = "LATENTBIT_ISA"
MAX_BATCH = core.LIMITS["batch"]
MAX_THREADS = core.LIMITS["threads"]
NOT_FINITE = "scales in the file are too large for float32: train and pack the network again"
"""Where logits that are not finite come from if the images are."""


class EngineError(LatentbitError):
    """The engine cannot run this network, with these kernels or on these images."""


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


def load(
    path: str | os.PathLike[str], *, threads: int = 1, isa: str | None = None, check_finite: bool = False
) -> "Engine":
    """Read a .lbit file, or zoo:NAME (`latentbit zoo list`), and make it ready to run.

    With `check_finite`, images or logits that hold NaN or infinity are an EngineError.
    """
    return Engine(open_native(path), threads=threads, isa=isa, check_finite=check_finite)


class Engine:
    """A packed network ready to run. Calls share buffers: those from several Python threads take turns."""

    def __init__(
        self,
        network: Network | _native.Network,
        *,
        threads: int = 1,
        isa: str | None = None,
        check_finite: bool = False,
    ) -> None:
        if not 1 <= threads <= MAX_THREADS:
            raise EngineError(f"threads={threads}: choose 1 to {MAX_THREADS}")
        self.check_finite = check_finite
        native = core.of(network) if isinstance(network, Network) else network
        self.network = network if isinstance(network, Network) else core.back(network)
        try:
            self._program = _native.Program(native, chosen_isa(isa), threads)
        except (ValueError, MemoryError) as error:
            raise EngineError(f"this network cannot run here: {error or 'not enough memory'}") from None
        except RuntimeError as error:  # of the system, when it has no more threads to give
            raise EngineError(f"threads={threads} cannot be had ({error}): choose fewer") from None

    def __call__(self, images: NDArray[Any], layout: str | None = None) -> NDArray[np.float32]:
        """Logits (N, classes) of images, or (N, classes, H, W) where the output is a map. Images are float32
        (N, C, H, W), normalised as in training; or the pixels, uint8 (N, C, H, W) or (N, H, W, C), which the engine
        normalises itself. `layout` is "nchw" or "nhwc"; without it the shape decides.
        """
        return self._run(images, layout, timed=False)[0]

    def classify(self, path: str | os.PathLike[str], top: int = 5) -> "list[Answer]":
        """What is in an image file, or in each image of a folder: the `top` classes with their probabilities. Where
        the folders inside name the classes, the accuracy. See `latentbit.engine.classify`.
        """
        from latentbit.engine.classify import classify
        from latentbit.images import ImageError

        if not Path(path).exists():
            raise ImageError(f"{os.fspath(path)}: there is no such image or folder")
        return list(classify(self, Path(path), top))

    def profile(
        self, images: NDArray[Any], repeats: int = 20, layout: str | None = None
    ) -> list[tuple[str, str, float]]:
        """(name, op, least microseconds) of every step."""
        times = np.min([self._run(images, layout, timed=True)[1] for _ in range(repeats)], axis=0) / 1e3
        return [(name, op, float(t)) for (name, op, _), t in zip(self._program.steps, times, strict=True)]

    def _run(
        self, images: NDArray[Any], layout: str | None, timed: bool
    ) -> tuple[NDArray[np.float32], list[float]]:
        channels_last = self._checked(images, layout)
        images = np.ascontiguousarray(images)
        if self.check_finite:
            _check_finite(images, "images: image {} holds NaN or infinity")
        out = np.empty((len(images), *self.network.output_shape), np.float32)
        if images.dtype == np.uint8:
            times = self._program.run_bytes(images, channels_last, out, timed)
        else:
            times = self._program.run(images, out, timed)
        if self.check_finite:
            _check_finite(out, f"the logits of image {{}} are not finite; {NOT_FINITE}")
        return out, times

    @property
    def integer_stem(self) -> bool:
        """Whether pixels given as bytes enter the first convolution as they are: the file stores it in 8 bits, and
        the kernels can multiply bytes faster than floats.
        """
        return self._program.takes_bytes

    @property
    def n_bytes(self) -> dict[str, int]:
        """Memory that the engine holds: weights as the kernels want them, scratch of all threads, values so far."""
        program = self._program
        return {
            "weights": program.weight_bytes,
            "scratch": program.scratch_bytes,
            "values": program.arena_bytes,
        }

    @property
    def isa(self) -> str:
        """Name of the kernels that run."""
        return self._program.isa

    @property
    def step_kernels(self) -> list[str]:
        """Name of the kernels of every step: a layer may suit another set than the best."""
        return [isa for _, _, isa in self._program.steps]

    @property
    def threads(self) -> int:
        return self._program.threads

    def _checked(self, images: Any, layout: str | None) -> bool:
        """Whether the channels come last; EngineError for what is not a batch of images for this network."""
        channels, height, width = self.network.input_shape
        shapes = {"nchw": (channels, height, width), "nhwc": (height, width, channels)}
        is_bytes = isinstance(images, np.ndarray) and images.dtype == np.uint8
        if layout not in (None, *shapes) or (layout == "nhwc" and not is_bytes):
            raise EngineError(f"layout={layout}: choose nchw, or nhwc for images of uint8")
        allowed = [layout] if layout else ["nchw", "nhwc"] if is_bytes else ["nchw"]
        fitting = [
            name
            for name in allowed
            if isinstance(images, np.ndarray) and images.ndim == 4 and images.shape[1:] == shapes[name]
        ]
        if not fitting:
            given = getattr(images, "shape", type(images).__name__)
            expected = " or ".join(f"(N, {', '.join(map(str, shapes[name]))})" for name in allowed)
            raise EngineError(f"images: expected an array {expected}, got {given}")
        if not is_bytes and images.dtype != np.float32:
            raise EngineError(f"images: expected float32 or uint8, got {images.dtype}")
        if len(fitting) > 1 and shapes["nchw"] == shapes["nhwc"] and channels > 1:
            raise EngineError(
                f"images of shape {images.shape} can be read in two ways: pass layout= nchw or nhwc"
            )
        if not 1 <= len(images) <= MAX_BATCH:
            raise EngineError(f"images: a batch of {len(images)}, not 1 to {MAX_BATCH}")
        return fitting[0] == "nhwc"


def _check_finite(array: NDArray[Any], message: str) -> None:
    """EngineError with the number of the first image, from 0, that is not finite throughout."""
    odd = np.flatnonzero(~np.isfinite(array).reshape(len(array), -1).all(axis=1))
    if len(odd):
        raise EngineError(message.format(odd[0]))
