"""Another runtime beside the engine, on the same noise."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from latentbit.engine import Engine
from latentbit.export.parts.report import Report
from latentbit.export.parts.target import ExportError
from latentbit.lbit import Network

IMAGES = 8
CLOSE = 1e-4
"""Of the largest logit. Runtimes add floats in another order; a sign that hangs on the last bit may then tip."""


def difference(
    network: Network, run: Callable[[NDArray[np.float32]], NDArray[np.float32]]
) -> NDArray[np.float32]:
    """Of each of a few random images: the largest difference of a logit, relative to the largest logit."""
    images = np.random.default_rng(0).normal(size=(IMAGES, *network.input_shape)).astype(np.float32)
    expected = Engine(network)(images)
    found = np.concatenate([run(image[None]) for image in images]).reshape(expected.shape)
    return np.abs(found - expected).reshape(IMAGES, -1).max(axis=1) / max(
        float(np.abs(expected).max()), 1e-30
    )


def check(
    report: Report, network: Network, runtime: str, run: Callable[[NDArray[np.float32]], NDArray[np.float32]]
) -> None:
    """Say how far the runtime is from the engine; ExportError if most images differ by more than rounding."""
    found = difference(network, run)
    if np.median(found) > CLOSE:
        raise ExportError(
            f"{runtime} computes something else from the exported file: logits differ by {np.median(found):.1e} of the "
            "largest. Nothing was written; please report it with the .lbit file"
        )
    report.add(
        "checked",
        f"in {runtime} on {IMAGES} random images: at most {found.max():.1e} of the largest logit from the engine",
        difference=float(found.max()),
    )
