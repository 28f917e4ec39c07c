"""How fast packed networks run, beside what a user would pick instead.

    python bench/engine.py                      # everything that is installed; make bench-peers installs the rest
    python bench/engine.py --subjects conv128 --peers latentbit openvino-binary --json out.json

Every engine runs in a process of its own; calls are interleaved in short turns in random order, so that all meet
the same machine. Minima are compared; medians tell how quiet the machine was. Batch 1, float32 in and out.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from latentbit import _native
from latentbit.lbit import Layer, Network, checked, pack_signs, write

HERE = Path(__file__).parent
HOME = Path(os.environ.get("LATENTBIT_PEERS", Path.home() / ".cache" / "latentbit" / "peers"))
PEERS = {
    "latentbit": ("", "run_latentbit.py", "binary"),
    "openvino-binary": ("openvino", "run_openvino.py", "binary"),
    "openvino-int8": ("openvino", "run_openvino.py", "int8"),
    "onnxruntime-fp32": ("onnxruntime", "run_onnxruntime.py", "fp32"),
    "onnxruntime-int8": ("onnxruntime", "run_onnxruntime.py", "int8"),
    "torch-fp32": ("", "run_torch.py", "fp32"),
    "larq": ("larq", "run_larq.py", "indirect"),
}
"""name -> (environment, program, variant); no environment means ours."""
SAME_WEIGHTS = ("latentbit", "openvino-binary")
"""Those that compute the very same function, so that outputs can be compared."""
CONVS = {"conv64": (64, 56), "conv128": (128, 28), "conv256": (256, 14), "conv512": (512, 7)}


def conv_network(channels: int, side: int) -> Network:
    """One 3x3 binary convolution, float32 in and out."""
    rng = np.random.default_rng(channels)
    tensors = {
        "bits": pack_signs(rng.normal(size=(channels, 3, 3, channels))),
        "scale": np.ones(channels, np.float32),
        "bias": np.zeros(channels, np.float32),
    }
    window = {"stride": [1, 1], "padding": [1, 1, 1, 1], "dilation": [1, 1], "groups": 1}
    layers = (
        Layer("sign", "sign", ("input",)),
        Layer("binary_conv", "conv", ("sign",), window | {"in_channels": channels}, tensors),
        Layer("flatten", "flat", ("conv",)),
    )
    return checked(Network((channels, side, side), layers))


def model_network(name: str, shape: tuple[int, int, int], classes: int) -> Network:
    """A reference model with random weights and BatchNorm statistics like those of a trained one."""
    import torch

    from latentbit import models
    from latentbit.binarize import binarize_
    from latentbit.packing import pack

    torch.manual_seed(0)
    model = models.create(name, num_classes=classes, in_channels=3)
    binarize_(model)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.normal_(module.bias, std=0.1)
    return pack(model.eval(), torch.zeros(1, *shape))


def networks() -> dict[str, Any]:
    """Subjects by name; built when asked for."""
    made: dict[str, Any] = {
        "resnet18": lambda: model_network("resnet18", (3, 224, 224), 1000),
        "compact": lambda: model_network("resnet18_compact", (3, 32, 32), 10),
    }
    for name, (channels, side) in CONVS.items():
        made[name] = lambda channels=channels, side=side: conv_network(channels, side)
    return made


def save_subject(name: str, network: Network, folder: Path) -> Path:
    """The subject as files that peers without latentbit can read."""
    folder = folder / name
    folder.mkdir()
    write(network, folder / "network.lbit")
    affine = name not in CONVS
    layers = [
        {"op": x.op, "name": x.name, "inputs": list(x.inputs), "shape": list(x.shape), "affine": affine}
        | dict(x.attributes)
        for x in network.layers
    ]
    (folder / "network.json").write_text(json.dumps({"name": name, "layers": layers}))
    np.savez(
        folder / "tensors.npz", **{f"{x.name}.{r}": t for x in network.layers for r, t in x.tensors.items()}
    )
    image = np.random.default_rng(0).normal(size=(1, *network.input_shape)).astype(np.float32)
    np.save(folder / "input.npy", image)
    return folder


class Peer:
    """One engine on one subject, in its own process."""

    def __init__(self, name: str, folder: Path, threads: int) -> None:
        environment, program, variant = PEERS[name]
        python = HOME / environment / "bin" / "python" if environment else Path(sys.executable)
        if not python.exists() or not (HERE / "peers" / program).exists():
            raise FileNotFoundError(f"{name} is not installed (make bench-peers)")
        self.name = name
        command = [str(python), str(HERE / "peers" / program), str(folder), variant, str(threads)]
        quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=quiet,
        )
        self.times: list[int] = []
        if not self._answer().get("ready"):
            raise FileNotFoundError(f"{name} does not start: {' '.join(command)}")

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):  # some peers chat on stdout
                return json.loads(line)
        return {}

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)


def measure(name: str, folder: Path, threads: int, peers: list[str], rounds: int) -> dict[str, Any]:
    """Milliseconds of every peer on one subject: least, median, the bare convolution, agreement with ours."""
    running = []
    for peer in peers:
        try:
            running.append(Peer(peer, folder, threads))
        except (FileNotFoundError, BrokenPipeError) as error:
            print(f"  skipped: {error}", file=sys.stderr)
    calls = {
        peer.name: max(1, min(50, int(2e7 / max(peer.ask(do="run", calls=3)["ns"])))) for peer in running
    }
    for _ in range(rounds):
        random.shuffle(running)
        for peer in running:
            peer.times += peer.ask(do="run", calls=calls[peer.name])["ns"]
    rows: dict[str, Any] = {}
    for peer in sorted(running, key=lambda p: peers.index(p.name)):
        rows[peer.name] = {"min": min(peer.times) / 1e6, "median": statistics.median(peer.times) / 1e6}
        if name in CONVS:
            node = peer.ask(do="node").get("ns")
            rows[peer.name]["bare"] = node / 1e6 if node else None
        if peer.name in SAME_WEIGHTS:
            peer.ask(do="output", to=str(folder / f"{peer.name}.npy"))
            ours = folder / "latentbit.npy"
            if ours.exists() and peer.name != "latentbit":
                a, b = np.load(ours), np.load(folder / f"{peer.name}.npy")
                rows[peer.name]["correlation"] = float(np.corrcoef(a, b)[0, 1])
        peer.close()
    return rows


def show(name: str, threads: int, rows: dict[str, Any], peak: float) -> None:
    print(f"\n{name}, {threads} thread{'s' * (threads > 1)}")
    ours = rows.get("latentbit")
    for peer, row in rows.items():
        ratio = f"{row['min'] / ours['min']:6.2f}x" if ours else ""
        line = f"  {peer:18} min {row['min']:8.3f} ms  median {row['median']:8.3f}  {ratio}"
        if row.get("bare"):
            line += f"  bare {row['bare']:.3f}"
            if ours and ours.get("bare"):
                line += f" ({row['bare'] / ours['bare']:.2f}x)"
        if peer == "latentbit" and name in CONVS and threads == 1:
            channels, side = CONVS[name]
            reached = 9 * channels**2 * side**2 / (row["bare"] * 1e6)
            line += f"  {reached:.0f} MAC/ns = {reached / peak:.0%} of peak"
        if "correlation" in row:
            line += f"  correlation with ours {row['correlation']:.6f}"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made = networks()
    parser.add_argument("--subjects", nargs="+", choices=made, default=list(made))
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", type=Path, help="write the numbers to this file too")
    options = parser.parse_args()

    isa = _native.available()[0]
    peak = max(_native.peak(isa) for _ in range(5))
    print(f"{platform.machine()}, {os.cpu_count()} cores, kernels {isa}: inner loop {peak:.0f} binary MAC/ns")
    results: dict[str, Any] = {"isa": isa, "peak_mac_per_ns": peak, "subjects": {}}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.subjects:
            subject = save_subject(name, made[name](), Path(folder))
            for threads in options.threads:
                rows = measure(name, subject, threads, options.peers, options.rounds)
                results["subjects"].setdefault(name, {})[str(threads)] = rows
                show(name, threads, rows, peak)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
