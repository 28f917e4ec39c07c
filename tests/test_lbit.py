"""The .lbit file: golden bytes, round trips, and the document around the layers. Fuzzing is in fuzz_lbit.py."""

import dataclasses
import os
import random
import re
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import fuzz_lbit
import fuzz_mutations
import lbit_examples
import lbit_oracle
import make_corpus
import numpy as np
import pytest

from latentbit import lbit
from latentbit.errors import LatentbitError
from latentbit.lbit import Layer, Network, PackedFileError
from latentbit.lbit.core import LIMITS, OPS

# docs/format.md walks through these bytes.
GOLDEN = (
    b"\x30\x02\x00\x00\x00\x00\x00\x00"
    rb'{"__metadata__":{"format":"lbit","version":"1","network":"{\"input\":[1,1,2],\"mean\":[0.5],'
    rb"\"std\":[0.25],\"classes\":[\"a\",\"b\",\"c\"],\"layers\":["
    rb"{\"op\":\"flatten\",\"name\":\"flatten\",\"inputs\":[\"input\"]},"
    rb"{\"op\":\"sign\",\"name\":\"fc.sign\",\"inputs\":[\"flatten\"]},"
    rb'{\"op\":\"binary_linear\",\"name\":\"fc\",\"inputs\":[\"fc.sign\"],\"in_features\":2}]}"},'
    b'"fc.bits":{"dtype":"U64","shape":[3,1],"data_offsets":[0,24]},'
    b'"fc.bias":{"dtype":"F32","shape":[3],"data_offsets":[24,36]},'
    b'"fc.scale":{"dtype":"F32","shape":[3],"data_offsets":[36,48]}}     '
    b"\x02\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    b"\x00\x00\x00\x00\x00\x00\x80\xbf\x00\x00\x80\x3e"
    b"\x00\x00\x00\x3f\x00\x00\x80\x3f\x00\x00\x00\x40"
)


def _same(a: Network, b: Network) -> bool:
    return lbit.to_bytes(a) == lbit.to_bytes(b)


def test_golden_bytes() -> None:
    assert lbit.to_bytes(lbit_examples.tiny()) == GOLDEN
    network = lbit.from_bytes(GOLDEN)
    assert network.input_shape == (1, 1, 2) and network.classes == ("a", "b", "c")
    assert network.mean == (0.5,) and network.std == (0.25,)
    # By hand: signs are (+1, -1); the rows of weights (+ -), (- -), (+ +) give dots 2, 0, 0.
    logits = lbit_oracle.run(network, np.array([[[[3.0, -0.1]]]]))
    assert logits.tolist() == [[0.5 * 2 + 0, 1 * 0 - 1, 2 * 0 + 0.25]]


@pytest.mark.parametrize("example", [lbit_examples.tiny, lbit_examples.every_op, lbit_examples.version_2])
def test_round_trip(example: Any, tmp_path: Path) -> None:
    network = example()
    path = tmp_path / "x.lbit"
    lbit.write(network, path)
    assert path.read_bytes() == lbit.to_bytes(network)
    again = lbit.read(path)
    assert _same(network, again)
    assert [(layer.shape, layer.bits) for layer in again.layers] == [
        (layer.shape, layer.bits) for layer in network.layers
    ]
    assert not any(array.flags.writeable for layer in again.layers for array in layer.tensors.values())


def test_errors_name_the_file_and_are_ours(tmp_path: Path) -> None:
    path = tmp_path / "broken.lbit"
    path.write_bytes(GOLDEN[:-1])
    with pytest.raises(LatentbitError, match="broken.lbit: the tensors end at byte 48, the data has 47"):
        lbit.read(path)
    with pytest.raises(LatentbitError, match=r"absent.lbit: cannot be read: No such file"):
        lbit.read(tmp_path / "absent.lbit")
    (tmp_path / "file").touch()
    with pytest.raises(LatentbitError, match=r"x.lbit: cannot be written"):
        lbit.write(lbit_examples.tiny(), tmp_path / "file" / "x.lbit")


def test_a_network_that_breaks_a_rule_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.lbit"
    lbit.write(lbit_examples.tiny(), path)
    with pytest.raises(PackedFileError, match="x.lbit: classes must be 3"):
        lbit.write(dataclasses.replace(lbit_examples.tiny(), classes=("a",)), path)
    assert path.read_bytes() == GOLDEN and list(tmp_path.iterdir()) == [path]


def test_the_document_says_what_the_code_does() -> None:
    text = (Path(__file__).parents[1] / "docs" / "format.md").read_text()
    table = text[text.index("| op | input -> output") : text.index("- `padding` is")]
    assert set(
        re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines() if line))
    ) == set(OPS)
    # The walk through the golden file: its text without the line breaks, then its data.
    walk = text[text.index("   0  30 02") : text.index("Pixels (3, -0.1)")]
    header = "".join(line[6:] for line in walk.splitlines()[1:9]).split("  and 5 spaces")[0]
    assert header.encode() == GOLDEN[8:568].rstrip()
    data = "".join(re.split(" {3,}", line[6:])[0] for line in walk.splitlines()[9:14])
    assert bytes.fromhex(data) == GOLDEN[568:]
    assert f"{LIMITS['layers']:,} layers" in text
    assert (LIMITS["numbers"], LIMITS["products"], LIMITS["bytes"]) == (2**28, 2**40, 2**31)
    assert "2^28 numbers" in text and "2^40 products" in text and "2^31 bytes" in text


def _network(old: bytes, new: bytes) -> bytes:
    """The golden file with a piece of its header replaced by one of any length."""
    header = GOLDEN[8:568].rstrip().replace(old, new)
    assert header != GOLDEN[8:568].rstrip()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + GOLDEN[568:]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b'"lbit"', b'"pt"', "not a packed network"),
        (b'"version":"1"', b'"version":"3"', "version '3'; this program reads 1 and 2"),
        (rb"{\"input\"", rb"[{\"input\"", "not valid JSON"),
        (rb"\"input\":[1,1,2]", rb"\"input\":[1,2]", "input .* is not"),
        (rb"\"input\":[1,1,2]", rb"\"input\":7", "input .* must be a list"),
        (rb"\"input\":[1,1,2]", rb"\"input\":[1,1,-2]", "input .* is not"),
        (rb"\"input\":[1,1,2],", rb"", "input .* is not"),
        (rb"\"mean\":[0.5]", rb"\"mean\":[0.5,1]", "mean must be 1 numbers"),
        (rb"\"mean\":[0.5]", rb"\"mean\":[\"0\"]", "mean must be 1 numbers"),
        (rb"\"mean\":[0.5]", rb"\"mean\":[1e999]", "too large"),
        (rb"\"std\":[0.25]", rb"\"std\":[0]", "std must be positive"),
        (rb"\"std\":[0.25]", rb"\"deviation\":[0]", "deviation"),
        (rb"[\"a\",", rb"[", "classes must be 3"),
        (rb"[\"a\",", rb"[\"\\u001b\",", "classes must be 3"),
        (rb"\"mean\":[0.5]", rb"\"source\":[]", "source"),
        (rb"\"mean\":[0.5]", rb"\"source\":{\"x\":\"\\ud800\"}", "source"),
        (rb"\"inputs\":[\"flatten\"]", rb"\"inputs\":\"flatten\"", "'fc.sign': inputs must be a list"),
        (rb"\"inputs\":[\"flatten\"]", rb"\"inputs\":[[]]", "'fc.sign': its input"),
        (rb"\"name\":\"fc\"", rb"\"name\":7", "with a name"),
        (rb"\"name\":\"fc\"", rb"\"name\":\"fd\"", "tensors of 'fc' belong to no layer"),
        (b'"fc.bias"', b'"bias"', "belong to no layer"),
        (b'"fc.bias"', b'"fc.offset"', "'fc'.*'bias' is missing"),
    ],
)
def test_bad_documents(old: bytes, new: bytes, reason: str) -> None:
    with pytest.raises(PackedFileError, match=reason):
        lbit.from_bytes(_network(old, new))


def test_a_layer_that_leads_nowhere_is_refused() -> None:
    network = lbit_examples.tiny()
    layers = (Layer("relu", "idle", ("input",)), *network.layers)
    with pytest.raises(PackedFileError, match="'idle': nothing uses its output"):
        lbit.checked(dataclasses.replace(network, layers=layers))


def test_a_file_has_the_lowest_version_that_can_hold_it() -> None:
    relu, flat = Layer("relu", "map", ("input",)), Layer("flatten", "flat", ("map",))
    clamp = Layer("clamp", "map", ("input",), {"low": 0, "high": 6})
    for layers, version in [((relu, flat), b"1"), ((relu,), b"2"), ((clamp, flat), b"2")]:
        content = lbit.to_bytes(Network((1, 1, 2), layers))
        assert b'"version":"%b"' % version in content
        assert lbit.to_bytes(lbit.from_bytes(content)) == content
    assert lbit.from_bytes(GOLDEN.replace(b'"version":"1"', b'"version":"2"'))
    older = content.replace(b'"version":"2"', b'"version":"1"')
    with pytest.raises(PackedFileError, match="says version 1, but holds what came with version 2"):
        lbit.from_bytes(older)


def test_the_output_is_real() -> None:
    with pytest.raises(PackedFileError, match="'bits': the output of a network must be real"):
        lbit.checked(Network((1, 1, 2), (Layer("sign", "bits", ("input",)),)))
    with pytest.raises(PackedFileError, match="0 layers"):
        lbit.checked(Network((1, 1, 2), ()))


def test_a_hostile_header_takes_little_memory() -> None:
    bombs = [b"[" * 4_000_000, b'{"a":' * 700_000, b"[" + b"0," * 1_000_000, b'{"x":"' + b"\\u0041" * 600_000]
    tracemalloc.start()
    for bomb in bombs:
        bomb += b" " * (-len(bomb) % 8)
        with pytest.raises(PackedFileError):
            lbit.from_bytes(len(bomb).to_bytes(8, "little") + bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


def test_reading_needs_no_torch() -> None:
    code = "import sys, latentbit.lbit; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("seed", range(2))
def test_mutated_files_are_read_or_refused(seed: int) -> None:
    outcome = fuzz_lbit.fuzz(seed, n_cases=5_000)
    assert outcome.n_cases == 5_000
    # A fuzzer that only ever breaks the first check tests nothing: many mutants must pass, for many reasons fail.
    assert outcome.n_read > 250 and outcome.n_run > 250 and len(outcome.reasons) > 50
    assert outcome.n_compared > 250 and outcome.n_unlike <= outcome.n_run // 100


def test_a_mutant_that_crashes_hangs_or_takes_too_much_is_found_by_its_number(monkeypatch) -> None:
    def harm(content: bytes, number: int, outcome: fuzz_lbit.Outcome) -> None:
        outcome.n_cases += 1
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 4:
            while True:
                pass
        if number == 5:
            time.sleep(60)
        if number == 6:
            np.empty(2 << 30, np.uint8)
        if number == 8:
            raise KeyError("a traceback")

    monkeypatch.setattr(fuzz_lbit, "try_one", harm)
    monkeypatch.setattr(fuzz_lbit, "SECONDS", 0.2)
    outcome = fuzz_lbit.fuzz_watched(0, 10, 60, processes=1)
    assert [int(finding.split()[1].rstrip(":")) for finding in outcome.findings] == [2, 4, 5, 6, 8]
    for finding, what in zip(
        outcome.findings,
        ("ended with -9", "more than", "more than", "Unable to allocate", "traceback"),
        strict=True,
    ):
        assert what in finding


@pytest.mark.parametrize("kind", make_corpus.KINDS)
def test_the_corpus(kind: str) -> None:
    stored = {path.stem: path.read_bytes() for path in (fuzz_lbit.CORPUS / kind).glob("*.lbit")}
    assert stored == make_corpus.KINDS[kind]()
    for name, content in stored.items():
        outcome = fuzz_lbit.Outcome()
        fuzz_lbit.try_one(content, 0, outcome)
        assert (outcome.n_run, outcome.n_differ) == (int(kind == "accepted"), 0), name


def test_the_largest_stride_costs_no_more_than_its_output() -> None:
    """2^20 once made the engine reserve 2.9 GB for a file of 432 bytes."""
    code = (
        "import sys, resource, numpy as np\nfrom latentbit import engine\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "net = engine.load(sys.argv[1])\nprint(net(np.ones((1, *net.network.input_shape), np.float32)))"
    )
    for name in ("stride_2_20", "stride_binary"):
        path = fuzz_lbit.CORPUS / "accepted" / f"{name}.lbit"
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_a_mutation_of_offsets_that_were_turned_round_changes_nothing() -> None:
    """The mutator must survive its own mutants: sizes below 0 once overflowed in it."""
    content = GOLDEN.replace(b"[24,36]", b"[24,-36893488147419103232]")
    content = (len(content) - len(GOLDEN) + 0x230).to_bytes(8, "little") + content[8:]
    for seed in range(50):
        mutated = fuzz_mutations.resize_tensor(random.Random(seed), content)
        assert isinstance(mutated, bytes)
