"""What every export target costs: bytes, RAM, instructions or milliseconds, and how far it is from the engine.

    .venv/bin/python bench/export.py                        # digits and compact CIFAR with random weights
    .venv/bin/python bench/export.py model.lbit             # or files of your own
    .venv/bin/python bench/export.py --write results/export/export.md

C is compiled with -O2 for emulated boards (make test-mcu says what to install) and counted by qemu -icount:
instructions, not cycles. Milliseconds are minima of interleaved calls, one thread, batch 1; of the page, the lower
quartile. What is not installed is left out, and said.
"""

import argparse
import functools
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from c_targets import TARGETS, run_c  # noqa: E402
from lbit_networks import compact_network  # noqa: E402

from latentbit import lbit  # noqa: E402
from latentbit.engine import Engine  # noqa: E402
from latentbit.export import ExportError, export  # noqa: E402
from latentbit.lbit import Network  # noqa: E402

Run = Callable[[np.ndarray], np.ndarray]
HEAD = ("network", "target", "bytes", "RAM", "instructions", "ms", "largest difference")
ROUNDS = 60


def images_of(network: Network, n: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, *network.input_shape)).astype(np.float32)


def far(found: np.ndarray, expected: np.ndarray) -> str:
    difference = float(np.abs(found - expected).max() / np.abs(expected).max())
    return f"{difference:.1e}" if difference else "0"


def microcontrollers(name: str, network: Network) -> list[tuple[str, ...]]:
    rows = []
    images = images_of(network, 2)
    expected = Engine(network, isa="scalar")(images)
    for target, board in TARGETS.items():
        if board.missing:
            print(f"{target}: {', '.join(board.missing)} not installed", file=sys.stderr)
            continue
        for real in ("32", "16"):
            with tempfile.TemporaryDirectory() as folder:
                title = f"C, {target}" if real == "32" else f"C, {target}, --real 16"
                try:
                    report = export(network, "c", Path(folder), real=real)
                except ExportError as error:
                    print(f"{name}, {title}: {error}", file=sys.stderr)
                    continue
                costs = (f"{report.data['flash']:,}", f"{report.data['ram']:,}")
                needs = report.data["ram"] + 2 * report.data["image_bytes"]
                if needs > board.ram[1] or report.data["flash"] > board.flash[1]:
                    rows.append((name, title, *costs, "does not fit", "", ""))
                    continue
                found = run_c(network, images, Path(folder), target, real=real)
                # With --real 16 that of the export, on more images than an emulator could run.
                moved = f"{report.data['difference']:.1e}" if real == "16" else far(found.logits, expected)
                rows.append((name, title, *costs, f"{min(found.instructions):,}", "", moved))
    return rows


def runtimes(network: Network, folder: Path) -> dict[str, tuple[int, Run]]:
    """Bytes of the files, and a function from one image to its logits."""
    found: dict[str, tuple[int, Run]] = {"engine (.lbit)": (len(lbit.to_bytes(network)), Engine(network))}
    try:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        for weights in ("bits", "float"):
            path = folder / f"{weights}.onnx"
            report = export(network, "onnx", path, weights=weights)
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            run = functools.partial(_ort, session)
            found[f"ONNX Runtime, {weights}"] = (report.data["bytes"], run)
    except ImportError:
        print("ONNX Runtime: not installed", file=sys.stderr)
    try:
        import openvino

        report = export(network, "openvino", folder / "m.xml")
        settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
        compiled = openvino.Core().compile_model(folder / "m.xml", "CPU", settings)
        found["OpenVINO IR"] = (report.data["bytes"], lambda image: compiled(image)[0])
    except ImportError:
        print("OpenVINO: not installed", file=sys.stderr)
    return found


def _ort(session: Any, image: np.ndarray) -> np.ndarray:
    return session.run(None, {"image": image})[0]


def timed(name: str, network: Network) -> list[tuple[str, ...]]:
    images = images_of(network, 8)
    expected = Engine(network)(images)
    with tempfile.TemporaryDirectory() as folder:
        found = runtimes(network, Path(folder))
        least = dict.fromkeys(found, float("inf"))
        for i in range(ROUNDS):
            for target, (_, run) in found.items():
                began = time.perf_counter()
                run(images[i % 8 : i % 8 + 1])
                least[target] = min(least[target], time.perf_counter() - began)
        rows = []
        for target, (n_bytes, run) in found.items():
            logits = np.concatenate([run(image[None]) for image in images])
            rows.append(
                (name, target, f"{n_bytes:,}", "", "", f"{1e3 * least[target]:.3f}", far(logits, expected))
            )
        rows += browser(name, network, Path(folder))
    return rows


RUN = """([images, n]) => {
  const { network, runNetwork } = latentbit, last = network.layers[network.layers.length - 1].name;
  const times = [], logits = [];
  const size = images.length / n;
  for (let i = 0; i < 200; i++) {
    const image = Float32Array.from(images.slice((i % n) * size, (i % n + 1) * size)), began = performance.now();
    const values = runNetwork(network, image);
    times.push(performance.now() - began);
    if (i < n) logits.push(...values.get(last).data);
  }
  times.sort((a, b) => a - b);
  return [times[times.length >> 2], logits];
}"""


def browser(name: str, network: Network, folder: Path) -> list[tuple[str, ...]]:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("the page: no chromium or no playwright", file=sys.stderr)
        return []
    report = export(network, "html", folder / "net.html")
    images = images_of(network, 2)
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]).new_page()
        page.goto(f"file://{folder}/net.html")
        last = images.transpose(0, 2, 3, 1).ravel().astype(float).tolist()
        ms, logits = page.evaluate(RUN, [last, len(images)])
    found = np.array(logits, np.float32).reshape(len(images), -1)
    difference = far(found, Engine(network, isa="scalar")(images))
    return [(name, "page, Chromium", f"{report.data['bytes']:,}", "", "", f"{ms:.1f}", difference)]


def table(rows: list[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in [HEAD, ("---", "---", *["---:"] * (len(HEAD) - 2)), *rows]]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "models", nargs="*", type=Path, help="packed networks instead of the two with random weights"
    )
    parser.add_argument("--write", type=Path, help="also write the table to this file")
    chosen = parser.parse_args()
    networks = {path.stem: lbit.read(path) for path in chosen.models} or {
        "digits": compact_network(),
        "compact CIFAR": compact_network((16, 16, 32, 64), n_in=3, side=32),
    }
    rows = []
    for name, network in networks.items():
        print(f"{name} ...", file=sys.stderr)
        rows += microcontrollers(name, network) + timed(name, network)
    text = table(rows)
    print(text)
    if chosen.write:
        chosen.write.parent.mkdir(parents=True, exist_ok=True)
        chosen.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
