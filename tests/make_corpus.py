"""The corpus of the fuzzer: small .lbit files that once did harm, or stand at the edge of what is allowed.

python tests/make_corpus.py    writes tests/corpus/accepted/*.lbit and tests/corpus/refused/*.lbit again
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lbit_examples
import lbit_networks
import numpy as np

from latentbit import lbit
from latentbit.lbit import Layer, Network, n_words, pack_signs

FOLDER = Path(__file__).parent / "corpus"
ONE = {"stride": [1, 1], "padding": [0, 0, 0, 0], "dilation": [1, 1], "groups": 1}
POOL = Layer("global_avg_pool", "g", ("c",))


def _conv(weight: np.ndarray, **changes: Any) -> Layer:
    tensors = {"weight": weight, "bias": np.zeros(len(weight), np.float32)}
    tensors |= changes.pop("tensors", {})
    return Layer("conv", "c", ("input",), ONE | changes, tensors)


def _signs(n_out: int, side: int, n_in: int) -> np.ndarray:
    return pack_signs(np.sign(np.random.default_rng(0).normal(size=(n_out, side, side, n_in))))


def _binary(n_in: int, side: int, **changes: Any) -> tuple[Layer, ...]:
    tensors = {
        "bits": _signs(3, side, n_in),
        "scale": np.ones(3, np.float32),
        "bias": np.zeros(3, np.float32),
    }
    layer = Layer("binary_conv", "c", ("s",), ONE | {"in_channels": n_in} | changes, tensors)
    return Layer("sign", "s", ("input",)), layer, POOL


def _one(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def accepted() -> dict[str, bytes]:
    eighths = np.array([[[[127]]], [[[-128]]]], np.int8)
    edge = np.array([2.67e36, 2.65e36], np.float32)  # 128 of them are just below the largest float32
    networks = {
        "tall_1x1": Network((1, 200_000, 1), (_conv(_one(1, 1, 1, 1)), POOL)),
        "tall_140000": Network((2, 140_000, 1), (_conv(_one(3, 2, 1, 1)), POOL)),
        "wide_binary": Network((3, 1, 70_000), _binary(3, 1)),
        "stride_2_20": Network((1, 40, 40), (_conv(_one(1, 1, 1, 1), stride=[1 << 20, 1 << 20]), POOL)),
        "dilation_1000": Network(
            (1, 1001, 3), (_conv(_one(1, 1, 2, 2), dilation=[1000, 1], padding=[0, 1, 0, 0]), POOL)
        ),
        "stride_binary": Network((65, 9, 9), _binary(65, 3, stride=[1 << 20, 2], padding=[1, 3, 3, 0])),
        "int8_edge": Network((1, 2, 2), (_conv(eighths, tensors={"weight_scale": edge}), POOL)),
        "long_vector": Network((1, 257, 255), (Layer("flatten", "f", ("input",)),)),
        "tiny": lbit_examples.tiny(),
        "every_op": lbit_examples.every_op(),
        "version_2": lbit_examples.version_2(),
        "residual_block": lbit_networks.block_network(stem_pool=True),
    }
    return {name: lbit.to_bytes(lbit.checked(network)) for name, network in networks.items()}


def refused() -> dict[str, bytes]:
    tiny = lbit.to_bytes(lbit_examples.tiny())
    tall = accepted()["tall_1x1"]
    int8 = accepted()["int8_edge"]
    largest = np.float32(2.65e36).tobytes()
    return {
        "digits_4300": _with_text(tiny, '"in_features": 2', '"in_features": ' + "2" * 4300),
        "digits_5000": _with_text(tiny, '"in_features": 2', '"in_features": ' + "2" * 5000),
        "depth_10000": _with_text(tiny, '"in_features": 2', '"in_features": ' + "[" * 10**4 + "]" * 10**4),
        "key_twice": _with_text(tiny, '"in_features": 2', '"in_features": 2, "in_features": 2'),
        "name_twice": _with_text(tiny, '"name": "fc.sign"', '"name": "flatten"'),
        "height_2_31": _with_text(tall, "200000", str(2**31)),
        "height_2_28_times_64": _with_text(tall, "[1, 200000, 1]", f"[64, {2**28}, 1]"),
        "stride_2_31": _with_text(tall, '"stride": [1, 1]', f'"stride": [{2**31}, 1]'),
        "groups_0": _with_text(tall, '"groups": 1', '"groups": 0'),
        "int8_infinite": int8.replace(largest, np.float32(3e38).tobytes()),
        "words_of_another_size": _with_text(
            tiny, '"in_features": 2', f'"in_features": {2 + 64 * n_words(2)}'
        ),
        "empty": b"",
        "length_2_63": (2**63).to_bytes(8, "little") + tiny[8:],
    }


def _with_text(content: bytes, old: str, new: str) -> bytes:
    """A file with another text in the description of its network."""
    end = 8 + int.from_bytes(content[:8], "little")
    document = json.loads(content[8:end])
    text = json.dumps(json.loads(document["__metadata__"]["network"]))
    assert old in text, (old, text)
    document["__metadata__"]["network"] = text.replace(old, new, 1)
    header = json.dumps(document).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + content[end:]


KINDS: dict[str, Callable[[], dict[str, bytes]]] = {"accepted": accepted, "refused": refused}


def main() -> None:
    for kind, make in KINDS.items():
        (FOLDER / kind).mkdir(parents=True, exist_ok=True)
        for name, content in make().items():
            (FOLDER / kind / f"{name}.lbit").write_bytes(content)
            print(f"{len(content):8} {kind}/{name}")


if __name__ == "__main__":
    main()
