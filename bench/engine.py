"""How fast packed networks run, beside what a user would pick instead.

    python bench/engine.py                      # everything that is installed; make bench-peers installs the rest
    python bench/engine.py --subjects conv128 --peers latentbit openvino-binary --json out.json
    python bench/engine.py --out results/engine/zen4-avx512     # writes engine.json and engine.txt there

Every engine runs in a process of its own; calls are interleaved in short turns in random order, so that all meet
the same machine. Minima are compared; medians tell how quiet the machine was. Float32 in and out, batch 1; and
images per second of larger batches. latentbit-bytes takes the pixels as bytes, its stem stored in 8 bits. A peer
that dies is reported with its last words, and tried again with fewer instructions, which the table then says.
"""

import argparse
import json
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from latentbit import _native
from latentbit.engine import chosen_isa
from latentbit.lbit import INPUT, Layer, Network, checked, pack_signs, write

HERE = Path(__file__).parent
HOME = Path(os.environ.get("LATENTBIT_PEERS", Path.home() / ".cache" / "latentbit" / "peers"))
PEERS = {
    "latentbit": ("", "run_latentbit.py", "binary"),
    "latentbit-bytes": ("", "run_latentbit.py", "bytes"),
    "openvino-binary": ("openvino", "run_openvino.py", "binary"),
    "openvino-streams": ("openvino", "run_openvino.py", "streams"),
    "openvino-int8": ("openvino", "run_openvino.py", "int8"),
    "onnxruntime-fp32": ("onnxruntime", "run_onnxruntime.py", "fp32"),
    "onnxruntime-int8": ("onnxruntime", "run_onnxruntime.py", "int8"),
    "torch-fp32": ("", "run_torch.py", "fp32"),
    "larq": ("larq", "run_larq.py", "indirect"),
}
"""name -> (environment, program, variant); no environment means ours."""
OURS = ("latentbit", "latentbit-bytes")
BATCHES_ONLY = ("openvino-streams",)
"""One image per stream and as many streams as threads: OpenVINO's own advice for throughput."""
LATENCY_ONLY = ("larq",)
SLOW = 6
"""Peers so many times slower than the fastest at batch 1 are left out of batches, which would take minutes."""
FEWER = {
    "openvino": [{"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}, {"ONEDNN_MAX_CPU_ISA": "AVX2"}],
    "onnxruntime": [],
    "larq": [],
    "": [],
}
"""environment -> what makes a peer run that dies with an illegal instruction, best first."""
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
    # BatchNorm only behind convolutions, as in the networks that people bring and in every figure recorded so far.
    model = models.create(name, num_classes=classes, in_channels=3, norm="after")
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
    if name not in CONVS:
        write(in_bytes(network), folder / "bytes.lbit")
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
    return folder


def save_images(folder: Path, shape: tuple[int, int, int], batch: int) -> None:
    """What every peer is given, as floats and as bytes."""
    rng = np.random.default_rng(0)
    np.save(folder / "input.npy", rng.normal(size=(batch, *shape)).astype(np.float32))
    np.save(folder / "pixels.npy", rng.integers(0, 256, (batch, *shape)).astype(np.uint8))


def in_bytes(network: Network) -> Network:
    """The same network with its stem in 8 bits, for pixels normalised as those of ImageNet."""
    from latentbit.packing import shrink

    layers = tuple(shrink(x, 8) if INPUT in x.inputs else x for x in network.layers)
    return checked(
        Network(network.input_shape, layers, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    )


class Died(Exception):
    """A peer that is not installed, or ended."""


class Peer:
    """One engine on one subject, in its own process."""

    def __init__(self, name: str, folder: Path, threads: int, fewer: dict[str, str]) -> None:
        environment, program, variant = PEERS[name]
        python = HOME / environment / "bin" / "python" if environment else Path(sys.executable)
        if not python.exists() or not (HERE / "peers" / program).exists():
            raise Died(f"{name} is not installed (make bench-peers)")
        self.name, self.limit = name, " ".join(f"{key}={value}" for key, value in fewer.items())
        command = [str(python), str(HERE / "peers" / program), str(folder), variant, str(threads)]
        quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": str(threads), **fewer}
        self.words = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.words,
            text=True,
            env=quiet,
        )
        self.times: list[int] = []
        self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):  # some peers chat on stdout
                return json.loads(line)
        raise Died(f"{self.name} {self._last_words()}")

    def _last_words(self) -> str:
        code = self.process.wait()
        self.words.seek(0)
        lines = self.words.read().decode(errors="replace").strip().splitlines() or ["no message"]
        how = f"died with {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"{how}: {lines[-1]}"

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Died(f"{self.name} {self._last_words()}") from None
        return self._answer()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)


def started(name: str, folder: Path, threads: int) -> Peer | None:
    """The peer, with fewer instructions if it dies with all of them; None, with a notice, if it never runs."""
    for fewer in [{}, *FEWER[PEERS[name][0]]]:
        try:
            peer = Peer(name, folder, threads, fewer)
            peer.ask(do="run", calls=1)
            return peer
        except Died as error:
            print(f"  {error}{f' (with {fewer})' if fewer else ''}", flush=True)
            if "not installed" in str(error):
                break
    return None


def measure(
    name: str, folder: Path, threads: int, peers: list[str], rounds: int, turn: float = 2e7
) -> dict[str, Any]:
    """Milliseconds of every peer on one subject: least, median, the bare convolution, agreement with ours."""
    running = [peer for peer in (started(name, folder, threads) for name in peers) if peer is not None]
    calls = {
        peer.name: max(1, min(50, int(turn / max(peer.ask(do="run", calls=3)["ns"])))) for peer in running
    }
    for _ in range(rounds):
        random.shuffle(running)
        for peer in list(running):
            try:
                peer.times += peer.ask(do="run", calls=calls[peer.name])["ns"]
            except Died as error:
                print(f"  {error}", flush=True)
                running.remove(peer)
    rows: dict[str, Any] = {}
    for peer in sorted(running, key=lambda p: peers.index(p.name)):
        rows[peer.name] = {"min": min(peer.times) / 1e6, "median": statistics.median(peer.times) / 1e6}
        if peer.limit:
            rows[peer.name]["limit"] = peer.limit
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


def show(name: str, threads: int, batch: int, rows: dict[str, Any], peak: float) -> None:
    of = f", batch {batch}" if batch > 1 else ""
    say(f"\n{name}, {threads} thread{'s' * (threads > 1)}{of}")
    ours = rows.get("latentbit")
    for peer, row in rows.items():
        ratio = f"{row['min'] / ours['min']:6.2f}x" if ours else ""
        line = f"  {peer:18} min {row['min']:8.3f} ms  median {row['median']:8.3f}  {ratio}"
        if batch > 1:
            line += f"  {1e3 * batch / row['min']:7.0f} images/s"
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
        if "limit" in row:
            line += f"  limited: {row['limit']}"
        say(line)


said: list[str] = []


def say(line: str) -> None:
    said.append(line)
    print(line, flush=True)


def cpu_name() -> str:
    """As the OS tells it, with family and model, because clouds hide the rest."""
    facts = {}
    if Path("/proc/cpuinfo").exists():
        for line in Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines():
            key, _, value = line.partition(":")
            facts[key.strip()] = value.strip()
    name = facts.get("model name", platform.processor() or "unknown CPU")
    return f"{name} (family {facts['cpu family']}, model {facts['model']})" if "cpu family" in facts else name


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made = networks()
    parser.add_argument("--subjects", nargs="+", choices=made, default=list(made))
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--batches", nargs="*", type=int, default=[8, 32, 128], help="for images per second")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", type=Path, help="write the numbers to this file too")
    parser.add_argument("--out", type=Path, help="folder for engine.json and engine.txt")
    options = parser.parse_args()

    isa = chosen_isa()
    peak = max(_native.peak(isa) for _ in range(5))
    say(f"{cpu_name()}, {os.cpu_count()} cores, kernels {isa}: inner loop {peak:.0f} binary MAC/ns")
    results: dict[str, Any] = {"cpu": cpu_name(), "isa": isa, "peak_mac_per_ns": peak}
    results |= {"subjects": {}, "batches": {}}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.subjects:
            network = made[name]()
            subject = save_subject(name, network, Path(folder))
            save_images(subject, network.input_shape, 1)
            peers = [peer for peer in options.peers if peer not in BATCHES_ONLY]
            if name in CONVS:
                peers = [peer for peer in peers if peer != "latentbit-bytes"]
            fast = set(BATCHES_ONLY)
            for threads in options.threads:
                rows = measure(name, subject, threads, peers, options.rounds)
                results["subjects"].setdefault(name, {})[str(threads)] = rows
                show(name, threads, 1, rows, peak)
                least = min((row["min"] for row in rows.values()), default=0)
                fast |= {peer for peer, row in rows.items() if row["min"] <= SLOW * least}
            for batch in options.batches if name not in CONVS else []:
                save_images(subject, network.input_shape, batch)
                peers = [peer for peer in options.peers if peer in fast and peer not in LATENCY_ONLY]
                for threads in options.threads:
                    rows = measure(name, subject, threads, peers, max(3, options.rounds // 4))
                    found = results["batches"].setdefault(name, {}).setdefault(str(batch), {})
                    found[str(threads)] = rows
                    show(name, threads, batch, rows, peak)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "engine.txt").write_text("\n".join(said) + "\n")
    for path in (options.json, options.out and options.out / "engine.json"):
        if path:
            path.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
