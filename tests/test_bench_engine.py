"""The engine's bench: a peer that dies is reported with its last words, and tried again with fewer instructions."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[1] / "bench" / "engine.py"

DIES = """
import os, signal, sys
if os.environ.get("ONEDNN_MAX_CPU_ISA") != "AVX2":
    print("loading", file=sys.stderr)
    print("the last words", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGILL)
print('{"ready": true}', flush=True)
for line in sys.stdin:
    print('{"ns": [1000]}', flush=True)
"""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The bench with one peer, whose program is DIES."""
    spec = importlib.util.spec_from_file_location("bench_engine", BENCH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    python = tmp_path / "openvino" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (tmp_path / "peers").mkdir()
    (tmp_path / "peers" / "dies.py").write_text(DIES)
    monkeypatch.setattr(module, "HOME", tmp_path)
    monkeypatch.setattr(module, "HERE", tmp_path)
    monkeypatch.setattr(
        module, "PEERS", {"int8": ("openvino", "dies.py", ""), "gone": ("larq", "dies.py", "")}
    )
    return module


def test_a_peer_that_dies_runs_with_fewer_instructions(bench, tmp_path: Path, capsys) -> None:
    peer = bench.started("int8", tmp_path, 1)
    assert peer is not None and peer.limit == "ONEDNN_MAX_CPU_ISA=AVX2"
    peer.close()
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "  int8 died with SIGILL: the last words" and len(said) == 2


def test_a_peer_that_is_not_there_is_named(bench, tmp_path: Path, capsys) -> None:
    assert bench.started("gone", tmp_path, 1) is None
    assert "gone is not installed (make bench-peers)" in capsys.readouterr().out
