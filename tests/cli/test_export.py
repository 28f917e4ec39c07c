import json
from pathlib import Path

from lbit_networks import block_network
from typer.testing import CliRunner

from latentbit.cli import app
from latentbit.export import names, options
from latentbit.lbit import write


def test_export_c_tells_flash_and_ram_first(tmp_path: Path) -> None:
    write(block_network(), tmp_path / "m.lbit")
    out = CliRunner().invoke(app, ["export", str(tmp_path / "m.lbit"), "--to", "c"])
    assert out.exit_code == 0, out.output
    assert [line.split()[0] for line in out.output.splitlines()] == [
        "flash",
        "RAM",
        "largest",
        "MACs",
        "written",
    ]
    assert sorted(path.name for path in (tmp_path / "net").iterdir()) == ["net.c", "net.h"]


def test_export_json(tmp_path: Path) -> None:
    write(block_network(), tmp_path / "m.lbit")
    command = [
        "export",
        str(tmp_path / "m.lbit"),
        "--to",
        "c",
        "-o",
        str(tmp_path / "f"),
        "--input",
        "u8",
        "--json",
    ]
    found = json.loads(CliRunner().invoke(app, command).output)
    assert found["files"] == [str(tmp_path / "f" / name) for name in ("net.h", "net.c")]
    assert found["image_bytes"] == 3 * 8 * 8 and found["ram"] > 0


def test_every_target_and_option_is_in_the_help() -> None:
    text = CliRunner().invoke(app, ["export", "--help"], env={"COLUMNS": "200"}).output
    for target in names():
        assert f"--to {target}" in text or target in text
        assert all(f"--{option}" in text for option in options(target))


def test_refusals_are_one_line(tmp_path: Path) -> None:
    write(block_network(), tmp_path / "m.lbit")
    command = ["export", str(tmp_path / "m.lbit"), "--to", "c", "--weights", "float"]
    out = CliRunner().invoke(app, command)
    assert out.exit_code == 1 and "belongs to --to onnx" in str(out.exception)
