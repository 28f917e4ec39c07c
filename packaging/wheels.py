"""Builds the wheels that people install: manylinux2014, x86-64 and aarch64, for Python 3.11 and for 3.12 and later.

    python packaging/wheels.py                      # every wheel and the source archive, into dist/
    python packaging/wheels.py --arch aarch64 --python python3.11

zig is the compiler (it comes from PyPI): it knows the glibc of 2014 and the other processor, so that neither Docker nor
an old system is needed. Python's headers are those of the machine that builds; those of Linux on aarch64 say the same.
auditwheel then proves that nothing newer than manylinux2014 is asked of the system.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "wheels"
GLIBC = "2.17"  # manylinux2014
ARCHES = ("x86_64", "aarch64")


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--arch", choices=ARCHES, action="append", help="processor; default: both")
    arguments.add_argument("--python", action="append", help="interpreter; default: 3.11 and a later one")
    arguments.add_argument("-o", "--out", type=Path, default=ROOT / "dist", help="folder of the wheels")
    given = arguments.parse_args()
    pythons = given.python or default_pythons()
    given.out.mkdir(parents=True, exist_ok=True)
    made = [sdist(environment(pythons[0]), given.out)] if not given.python else []
    for python in pythons:
        env = environment(python)
        made += [wheel(env, arch, given.out) for arch in given.arch or ARCHES]
    for path in made:
        print(f"{path.stat().st_size:>10,}  {path}")


def default_pythons() -> list[str]:
    """Python 3.11, and the first later one that is found: its wheel serves all that follow (abi3)."""
    older = first_found(["python3.11"])
    later = first_found([f"python3.{minor}" for minor in range(12, 20)])
    if not (older and later):
        missing = "python3.11" if not older else "a Python of 3.12 or later"
        sys.exit(
            f"{missing} was not found on the PATH or among pyenv's; choose interpreters by --python PATH"
        )
    return [older, later]


def first_found(names: list[str]) -> str | None:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for name in names:
        version = name.removeprefix("python")
        choices = [*sorted(map(str, pyenv.glob(f"{version}.*/bin/{name}"))), shutil.which(name)]
        for path in filter(None, choices):
            if subprocess.run([path, "-c", "import venv"], capture_output=True).returncode == 0:
                return path
    return None


def environment(python: str) -> Path:
    """A virtual environment of this interpreter with what builds wheels; its bin folder."""
    tag = subprocess.check_output(
        [python, "-c", "import sys; print('cp%d%d' % sys.version_info[:2])"], text=True
    )
    folder = WORK / tag.strip()
    requirements = ROOT / "packaging" / "requirements.txt"
    if not (folder / ".installed").exists():
        say(f"{folder.name}: installing zig, build and auditwheel")
        run([python, "-m", "venv", "--clear", folder])
        run([folder / "bin" / "pip", "install", "-q", "--disable-pip-version-check", "-r", requirements])
        (folder / ".installed").touch()
    return folder / "bin"


def sdist(bin: Path, out: Path) -> Path:
    say("source archive")
    with tempfile.TemporaryDirectory() as folder:
        run([bin / "python", "-m", "build", "--sdist", "--no-isolation", "-o", folder, ROOT])
        return place(folder, "*.tar.gz", out)


def wheel(bin: Path, arch: str, out: Path) -> Path:
    tag = bin.parent.name
    say(f"{tag} {arch}: compiling, some minutes")
    with tempfile.TemporaryDirectory() as built, tempfile.TemporaryDirectory() as audited:
        run(
            [bin / "python", "-m", "build", "--wheel", "--no-isolation", "-o", built, ROOT],
            CMAKE_TOOLCHAIN_FILE=str(toolchain(bin, arch)),
            SKBUILD_BUILD_DIR=str(WORK / "cmake" / f"{tag}-{arch}"),
            # What setuptools, scikit-build-core and sysconfig read when they build for another processor.
            _PYTHON_HOST_PLATFORM=f"linux-{arch}",
            SETUPTOOLS_EXT_SUFFIX=f".cpython-{tag.removeprefix('cp')}-{arch}-linux-gnu.so",
        )
        (plain,) = Path(built).glob("*.whl")
        run([bin / "auditwheel", "repair", "--plat", "auto", "-w", audited, plain])
        made = place(audited, "*.whl", out)
    if f"manylinux2014_{arch}" not in made.name:
        made.unlink()
        sys.exit(f"auditwheel calls it {made.name}: it asks for more than manylinux2014 has")
    return made


def toolchain(bin: Path, arch: str) -> Path:
    """CMake's description of zig as the compiler for this processor and glibc."""
    folder = WORK / "toolchains" / f"{bin.parent.name}-{arch}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, verb in (("cc", "cc"), ("cxx", "c++"), ("ar", "ar"), ("ranlib", "ranlib")):
        target = f"-target {arch}-linux-gnu.{GLIBC}" if verb.startswith("c") else ""
        (folder / name).write_text(f'#!/bin/sh\nexec "{bin}/python" -m ziglang {verb} {target} "$@"\n')
        (folder / name).chmod(0o755)
    lines = [
        "set(CMAKE_SYSTEM_NAME Linux)",
        f"set(CMAKE_SYSTEM_PROCESSOR {arch})",
        *(f"set(CMAKE_{key} {folder}/{name})" for key, name in TOOLS.items()),
        # nanobind's headers leave this include to libstdc++; zig has libc++.
        'set(CMAKE_CXX_FLAGS_INIT "-include cstdio")',
    ]
    path = folder / "zig.cmake"
    path.write_text("\n".join(lines) + "\n")
    return path


TOOLS = {"C_COMPILER": "cc", "CXX_COMPILER": "cxx", "AR": "ar", "RANLIB": "ranlib"}


def place(folder: str, pattern: str, out: Path) -> Path:
    (made,) = Path(folder).glob(pattern)
    return Path(shutil.move(made, out / made.name))


def run(command: list[object], **variables: str) -> None:
    done = subprocess.run(
        [str(word) for word in command],
        env=os.environ | {"PATH": f"{Path(str(command[0])).parent}:{os.environ['PATH']}"} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\n{' '.join(map(str, command))} failed with status {done.returncode}")


def say(line: str) -> None:
    print(f"-- {line}", flush=True)


if __name__ == "__main__":
    main()
