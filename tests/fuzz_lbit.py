"""Mutates valid .lbit files: each must read as a valid network or raise PackedFileError, and run without a crash.

make fuzz                                          five minutes, seed by the clock
python tests/fuzz_lbit.py --seconds 60 --seed 7  again exactly what seed 7 did
"""

import argparse
import json
import math
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import lbit_examples
import lbit_oracle
import numpy as np

from latentbit import lbit
from latentbit.engine import Engine, available
from latentbit.lbit import Network, PackedFileError

HOSTILE: list[Any] = [
    0, -1, 1, 2, 3, 63, 64, 65, 2**15, 2**20, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, 10**30,
    0.5, -0.0, 1e308, True, False, None, "", "input", "x", "\u0000", "\ud800", [], {}, [[]], [0], [1, 1], [1, 1, 1, 1],
    [2**20, 2**20], [-1, -1], [0, 0, 0, 0], ["input"], {"op": "relu", "name": "y", "inputs": ["input"]},
]  # fmt: skip
FLOATS = [float("nan"), float("inf"), -float("inf"), 3.4e38, -3.4e38, 1e-45, 0.0, -0.0, 1e20]


@dataclass
class Outcome:
    n_cases: int = 0
    n_read: int = 0
    n_run: int = 0
    n_differ: int = 0
    """Of those that ran: logits that are not the oracle's."""
    reasons: Counter[str] = field(default_factory=Counter)


def _halves(content: bytes) -> tuple[bytes, bytes]:
    """Header text and data of a valid file."""
    end = 8 + int.from_bytes(content[:8], "little")
    return content[8:end], content[end:]


def _join(header: bytes, data: bytes) -> bytes:
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data


def flip_bits(rng: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def flip_data_bits(rng: random.Random, content: bytes) -> bytes:
    header, data = _halves(content)
    return _join(header, flip_bits(rng, data))


def truncate(rng: random.Random, content: bytes) -> bytes:
    return content[: rng.randrange(len(content))]


def splice(rng: random.Random, content: bytes) -> bytes:
    """Copy one stretch over, or into, another place."""
    a, b = sorted(rng.randrange(len(content)) for _ in range(2))
    piece = content[a : min(b, a + 64)]
    at = rng.randrange(len(content))
    return content[:at] + piece + content[at + (len(piece) if rng.random() < 0.5 else 0) :]


def cut(rng: random.Random, content: bytes) -> bytes:
    at = rng.randrange(len(content))
    return content[:at] + content[at + rng.randrange(1, 16) :]


def edit_length(rng: random.Random, content: bytes) -> bytes:
    n = rng.choice([0, 8, 16, len(content), len(content) - 8, 2**32, 2**63, 2**64 - 1, rng.randrange(2**20)])
    return n.to_bytes(8, "little") + content[8:]


def edit_text(rng: random.Random, content: bytes) -> bytes:
    """Replace one token of the header's text, keeping the length field right."""
    header, data = _halves(content)
    tokens = list(re.finditer(rb"-?\d+|[\[\]{},:\"]|[a-zA-Z_]+", header))
    token = rng.choice(tokens)
    new = rng.choice(
        [b"", b"NaN", b"1e999", b"-1", b"0", b"[", b"}", b'"', b"9" * 30, b"null", token.group() * 2, b"\xff"]
    )
    return _join(header[: token.start()] + new + header[token.end() :], data)


def edit_json(rng: random.Random, content: bytes) -> bytes:
    """Change one value anywhere in the header or in the network it describes."""
    header, data = _halves(content)
    document = json.loads(header)
    inside = rng.random() < 0.75
    tree = json.loads(document["__metadata__"]["network"]) if inside else document
    for _ in range(rng.choice([1, 1, 2])):
        _edit_tree(rng, tree)
    if inside:
        document["__metadata__"]["network"] = json.dumps(tree)
    return _join(json.dumps(document).encode(), data)


def _edit_tree(rng: random.Random, tree: Any) -> None:
    places = []
    stack = [tree]
    while stack:
        holder = stack.pop()
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        places += [(holder, key) for key in keys]
        stack += [holder[key] for key in keys if isinstance(holder[key], dict | list)]
    holder, key = rng.choice(places)
    kind = rng.random()
    if kind < 0.15:
        del holder[key]
    elif kind < 0.3:
        other, other_key = rng.choice(places)
        if other_key in other if isinstance(other, dict) else other_key < len(other):
            holder[key] = json.loads(json.dumps(other[other_key]))
    elif kind < 0.4 and isinstance(holder, list):
        holder.insert(key, json.loads(json.dumps(holder[key])))
    elif kind < 0.5 and isinstance(holder[key], int):
        holder[key] += rng.choice([-1, 1])
    else:
        holder[key] = json.loads(json.dumps(rng.choice(HOSTILE)))


def edit_numbers(rng: random.Random, content: bytes) -> bytes:
    """Overwrite four aligned bytes of data with a float or integer from the edge of its range."""
    header, data = _halves(content)
    at = 4 * rng.randrange(len(data) // 4)
    if rng.random() < 0.5:
        new = np.float32(rng.choice(FLOATS)).tobytes()
    else:
        new = rng.choice([0, 1, 2**31 - 1, 2**31, 2**32 - 1]).to_bytes(4, "little")
    return _join(header, data[:at] + new + data[at + 4 :])


MUTATIONS: list[Callable[[random.Random, bytes], bytes]] = [
    flip_bits, flip_data_bits, truncate, splice, cut, edit_length, edit_text, edit_numbers,
    edit_json, edit_json, edit_json,
]  # fmt: skip


def _run(network: Network, rng: random.Random, outcome: Outcome) -> None:
    """Run a small network in the native engine: a crash will not do, nor other numbers than the oracle's."""
    if (
        sum(math.prod(layer.shape) for layer in network.layers) > 100_000
        or math.prod(network.input_shape) > 10_000
    ):
        return
    images = (
        np.random.default_rng(rng.randrange(2**32)).normal(size=(2, *network.input_shape)).astype(np.float32)
    )
    logits = Engine(network, isa=rng.choice(available()), threads=rng.choice([1, 1, 2]))(images)
    outcome.n_run += 1
    assert logits.shape == (2, network.n_outputs)
    with np.errstate(all="ignore"):
        values = lbit_oracle.values(network, images, np.float32)
        tame = all(
            np.abs(value).max() < 1e6 for value in values.values()
        )  # nor NaN: what overflows is anyone's guess
    expected = values[network.layers[-1].name]
    if tame:
        # Not asserted here: a value within rounding of a threshold may fall to either side.
        close = 1e-4 * max(float(np.abs(expected).max()), 1e-3)
        outcome.n_differ += not np.abs(logits - expected).max() <= close


def fuzz(seed: int, n_cases: int = 2**62, seconds: float = math.inf) -> Outcome:
    """Try mutants until one of the limits is reached; raises whatever is not a PackedFileError."""
    rng = random.Random(seed)
    seeds = [lbit.to_bytes(lbit_examples.tiny())] * 3 + [lbit.to_bytes(lbit_examples.every_op())]
    outcome, end = Outcome(), time.monotonic() + seconds
    while outcome.n_cases < n_cases and time.monotonic() < end:
        content = rng.choice(seeds)
        for _ in range(rng.choice([1, 1, 1, 2])):
            content = _mutant(rng, content)
        outcome.n_cases += 1
        try:
            network = lbit.from_bytes(content)
        except PackedFileError as error:
            assert str(error).isprintable(), repr(str(error))
            outcome.reasons[re.sub(r"'[^']*'|\[.*\]|-?\d+", "", str(error))[:80]] += 1
            continue
        outcome.n_read += 1
        again = lbit.to_bytes(network)
        assert lbit.to_bytes(lbit.from_bytes(again)) == again
        _run(network, rng, outcome)
    return outcome


def _mutant(rng: random.Random, content: bytes) -> bytes:
    try:
        return rng.choice(MUTATIONS)(rng, content)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return flip_bits(rng, content or b"0")  # the first mutation left nothing that the second can parse


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    print(f"fuzzing for {arguments.seconds:.0f} s with --seed {arguments.seed}", flush=True)
    outcome = fuzz(arguments.seed, seconds=arguments.seconds)
    for reason, n in outcome.reasons.most_common(15):
        print(f"{n:9}  {reason}")
    print(
        f"{outcome.n_cases} mutants: {outcome.n_read} read, {outcome.n_run} of these run in the engine "
        f"({outcome.n_differ} unlike the oracle), the others refused for {len(outcome.reasons)} reasons; no crash"
    )


if __name__ == "__main__":
    main()
