"""QONNX, for FINN: the ONNX export with signs and binary weights as BipolarQuant (x >= 0 -> +1, as ours).

Weights are float32 +1 and -1 in the file, since BipolarQuant takes floats. Checked in the package qonnx where that is
installed.
"""

from pathlib import Path
from typing import Any

import numpy as np

from latentbit.atomic import atomic_write
from latentbit.export.onnx import Onnx
from latentbit.export.parts.checking import check
from latentbit.export.parts.report import Report
from latentbit.lbit import Layer

DOMAIN = "qonnx.custom_op.general"


class Qonnx(Onnx):
    title = "QONNX with BipolarQuant, for FINN"
    batch = 1  # an accelerator has one image at a time, and qonnx infers no shapes from a name

    def write(self, out: Path) -> Report:  # type: ignore[override]  # it has no options
        """Write one .onnx file."""
        self.weights = "bits"
        content = self.model()
        report = Report([out])
        try:
            import onnx
            from qonnx.core.modelwrapper import ModelWrapper
            from qonnx.core.onnx_exec import execute_onnx
            from qonnx.transformation.infer_shapes import InferShapes
        except ImportError:
            report.add("checked", "not in qonnx, which is not installed: pip install qonnx onnxruntime")
        else:
            model = ModelWrapper(onnx.load_from_string(content)).transform(InferShapes())
            check(
                report, self.network, "qonnx", lambda images: execute_onnx(model, {"image": images})["logits"]
            )
        with atomic_write(out) as file:
            file.write(content)
        report.add("written", f"{out} ({len(content):,} bytes)", bytes=len(content))
        return report

    def _bipolar(self, name: str, x: str) -> str:
        self.graph.domains[DOMAIN] = 1
        one = self.graph.constant(f"{name}.scale", np.float32(1))
        return self.graph.node("BipolarQuant", name, [x, one], domain=DOMAIN)

    def _signs(self, layer: Layer, x: str, threshold: Any, flip: Any) -> str:
        # x - t >= 0 says the same as x >= t: float32 has no difference of two numbers that rounds to 0.
        if np.any(threshold):
            x = self.graph.node("Sub", f"{layer.name}.less", [x, self._vector(layer, "threshold", threshold)])
        if not np.any(flip):
            return self._bipolar(layer.name, x)
        signs = self._bipolar(f"{layer.name}.signs", x)
        turned = np.where(flip, -1, 1).astype(np.float32)
        return self.graph.node("Mul", layer.name, [signs, self._vector(layer, "flip", turned)])

    def _binary_weight(self, layer: Layer, signs: Any) -> str:
        stored = self.graph.constant(f"{layer.name}.signs", signs.astype(np.float32))
        return self._bipolar(f"{layer.name}.weight", stored)
