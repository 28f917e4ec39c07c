"""An analysis on disk: analysis.json holds every number, arrays.safetensors the pictures and maps."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from latentbit.atomic import atomic_write
from latentbit.errors import LatentbitError
from latentbit.views.numbers import W

FORMAT = "latentbit-analysis-2"
FOLDER = "analysis"


class AnalysisError(LatentbitError):
    """A stored analysis that cannot be read."""


@dataclass(frozen=True)
class Analysis:
    """Plain data: `numbers` is what JSON can say, `arrays` what a picture is drawn from."""

    numbers: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @property
    def name(self) -> str:
        return self.numbers["run"]

    @property
    def has_latent(self) -> bool:
        return W.key in self.numbers["accuracy"]


def save_analysis(analysis: Analysis, folder: Path) -> None:
    """Write both files, each whole or not at all; the JSON last, since its presence says that all is there."""
    arrays = {key: np.ascontiguousarray(value) for key, value in analysis.arrays.items()}
    with atomic_write(folder / "arrays.safetensors") as file:
        file.write(save(arrays))
    with atomic_write(folder / "analysis.json") as file:
        file.write(dumps(analysis.numbers).encode())


def load_analysis(folder: Path) -> Analysis | None:
    """What save_analysis wrote; None where there is nothing, or something of another version."""
    try:
        numbers = json.loads((folder / "analysis.json").read_text(encoding="utf-8"))
        if numbers.get("format") != FORMAT:
            return None
        return Analysis(numbers, load_file(folder / "arrays.safetensors"))
    except FileNotFoundError:
        return None
    except (json.JSONDecodeError, SafetensorError) as error:
        raise AnalysisError(
            f"{folder} is damaged ({error}): recompute it with `latentbit analyze --again`"
        ) from None


def dumps(numbers: dict[str, Any]) -> str:
    """JSON that any reader takes: a value that is not finite becomes null."""
    return json.dumps(_finite(numbers), indent=1, ensure_ascii=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
