"""What the system or the user got wrong is one line on stderr: no traceback, whatever the command."""

import os
import subprocess
from pathlib import Path

import pytest
from tiny_run import call, latentbit_command, tiny_recipe

MOUNT = os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr and done.stderr.count("error:") == 1, done.stderr
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    "override, reason",
    [
        ("seed=99999999999999999999", "it must be between 0 and 4294967295"),
        ("seed=" + "9" * 5000, "is not an integer"),
        ("seed=0x" + "f" * 5000, "too long to print is out of range"),
        ("dim=999999999", "it must be between 1 and 65536"),
        ("batch_size=99999999999999999999", "it must be at most 2147483647"),
        ("epochs=1e400", "is not an integer"),
        ("widths=" + "[" * 5000, "unknown key"),
    ],
)
def test_numbers_beyond_reason(tmp_path: Path, override: str, reason: str) -> None:
    tiny_recipe(tmp_path)
    done = call(latentbit_command("train", "tiny.toml", override), tmp_path)
    assert reason in one_line(done) or reason in done.stderr
    assert not (tmp_path / "runs").exists()


def test_more_memory_than_there_is(tmp_path: Path) -> None:
    tiny_recipe(tmp_path)
    command = latentbit_command("train", "tiny.toml", "options={widths=[8, 900000]}", "--out", "run")
    assert "not enough memory" in one_line(call(command, tmp_path))


def test_a_run_where_a_file_is(tmp_path: Path) -> None:
    tiny_recipe(tmp_path)
    (tmp_path / "file").write_text("mine")
    for out, reason in (("file", "is a file: choose a folder"), ("file/deeper", "cannot hold a run")):
        done = call(latentbit_command("train", "tiny.toml", "--out", out), tmp_path)
        assert reason in one_line(done)
    assert (tmp_path / "file").read_text() == "mine"


def mounted(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script with mounts of its own, which end with it."""
    return call(["unshare", "-m", "bash", "-euc", script], folder)


@pytest.mark.skipif(not MOUNT, reason="needs root to mount")
def test_a_read_only_folder(tmp_path: Path) -> None:
    tiny_recipe(tmp_path)
    (tmp_path / "disk").mkdir()
    train = " ".join(latentbit_command("train", "tiny.toml", "epochs=1"))
    done = mounted(f"mount -t tmpfs -o ro tmpfs disk; {train} --out disk/run", tmp_path)
    assert "cannot hold a run" in one_line(done) and "ead-only file system" in done.stderr
    done = mounted(
        f"mount -t tmpfs tmpfs disk; {train} --out disk/run >/dev/null; mount -o remount,ro disk; {train} epochs=2 "
        "--resume disk/run",
        tmp_path,
    )
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr


@pytest.mark.skipif(not MOUNT, reason="needs root to mount")
def test_a_full_disk_says_what_is_needed_and_the_run_goes_on_after_room_is_made(tmp_path: Path) -> None:
    tiny_recipe(tmp_path)
    (tmp_path / "disk").mkdir()
    train = " ".join(latentbit_command("train"))
    script = f"""
        mount -t tmpfs -o size=2m tmpfs disk
        {train} tiny.toml epochs=4 --out whole > /dev/null
        head -c 1600k /dev/zero > disk/ballast
        {train} tiny.toml epochs=4 --out disk/run > /dev/null 2> said && exit 3
        cat said >&2
        rm disk/ballast
        mount -o remount,size=8m disk
        {train} --resume disk/run > /dev/null 2>> said
        cp -r disk/run ended
    """
    done = mounted(script, tmp_path)
    assert done.returncode == 0, done
    said = (tmp_path / "said").read_text().strip()
    assert said.count("\n") == 0 and said.startswith("error: ") and "Traceback" not in said
    for words in (
        "No space left on device",
        "it takes ",
        " are free",
        "every file there",
        "--resume disk/run",
    ):
        assert words in said, said
    from tiny_run import same, weights, without_times

    assert same(weights(tmp_path / "ended"), weights(tmp_path / "whole"))
    assert without_times(tmp_path / "ended") == without_times(tmp_path / "whole")
