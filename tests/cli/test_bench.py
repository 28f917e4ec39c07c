import json
import re
from pathlib import Path

from lbit_networks import block_network
from typer.testing import CliRunner

from latentbit.cli import app
from latentbit.engine import available
from latentbit.lbit import write


def test_bench_shows_latency_and_steps(tmp_path: Path) -> None:
    write(block_network(), tmp_path / "m.lbit")
    out = CliRunner().invoke(app, ["bench", str(tmp_path / "m.lbit"), "--seconds", "0.01"])
    assert out.exit_code == 0, out.output
    assert "median ms" in out.output
    assert re.search(r"load +[\d.]+ ms \(least of 5, a file of 0.01 MB\)", out.output)
    assert re.search(
        r"memory +weights [\d.]+ MB, scratch .* peak RSS of this process \d+", out.output.replace("\n", " ")
    )
    for step in ("stem", "shortcut", "block"):
        assert step in out.output


def test_bench_json(tmp_path: Path) -> None:
    write(block_network(), tmp_path / "m.lbit")
    command = [
        "bench",
        str(tmp_path / "m.lbit"),
        "--seconds",
        "0.01",
        "-b",
        "1",
        "-t",
        "1",
        "-t",
        "3",
        "--json",
    ]
    found = json.loads(CliRunner().invoke(app, command).output)
    assert found["isa"] == available()[0]
    assert found["file_bytes"] == (tmp_path / "m.lbit").stat().st_size and found["load_ms"] > 0
    assert found["engine_bytes"]["weights"] > 0 and found["peak_rss_bytes"] > 1 << 20
    assert [row["threads"] for row in found["latency_ms"]] == [1, 3]
    assert [step["name"] for step in found["steps"]] == ["stem", "shortcut", "block", "pool"]
    assert all(step["kernels"] in available() for step in found["steps"])


def test_bench_of_batches_and_bytes(tmp_path: Path) -> None:
    write(block_network(), tmp_path / "m.lbit")
    command = [
        "bench",
        str(tmp_path / "m.lbit"),
        "--seconds",
        "0.01",
        "-b",
        "2",
        "-b",
        "5",
        "-t",
        "1",
        "--bytes",
    ]
    out = CliRunner().invoke(app, command)
    assert out.exit_code == 0 and "images bytes" in out.output
    found = json.loads(CliRunner().invoke(app, [*command, "--json"]).output)
    assert [row["batch"] for row in found["latency_ms"]] == [2, 5]


def test_a_file_that_is_none_of_ours_is_told_so_and_not_measured(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# latentbit\n\nTrain binary neural networks")
    out = CliRunner().invoke(app, ["bench", str(tmp_path / "README.md")])
    assert "README.md: this is not a packed network: `latentbit pack RUN` makes one" in str(out.exception)
