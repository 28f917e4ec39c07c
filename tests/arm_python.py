"""A Python for aarch64 on an x86-64 machine: Debian's packages unpacked into a folder, run by qemu-user.

Nothing is installed: apt works in a folder of its own, and dpkg only unpacks.
"""

import shutil
import subprocess
from pathlib import Path

PACKAGES = (
    "python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libexpat1 zlib1g libssl3 libffi8 "
    "libgcc-s1 libstdc++6 libbz2-1.0 liblzma5 libuuid1"
).split()

CONFIGURATION = """
Dir::State::Lists "{folder}/lists";
Dir::Etc::SourceList "{folder}/sources.list";
Dir::Etc::SourceParts "/nonexistent";
Dir::Cache "{folder}";
Dir::State::status "/dev/null";
APT::Architecture "arm64";
APT::Architectures {{ "arm64"; }};
APT::Sandbox::User "root";
"""

SOURCE = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main\n"


def missing() -> str | None:
    """Why there cannot be one here, or None."""
    needed = ("qemu-aarch64", "apt-get", "dpkg")
    absent = [name for name in needed if shutil.which(name) is None]
    return f"{', '.join(absent)} not found" if absent else None


def unpack(folder: Path) -> list[str]:
    """The command that starts it; its files are under `folder`, fetched if they are not yet there."""
    root = folder / "root"
    if not (root / "usr/bin/python3.11").exists():
        apt = folder / "apt"
        for made in (root, apt / "lists" / "partial", apt / "archives" / "partial"):
            made.mkdir(parents=True, exist_ok=True)
        (apt / "sources.list").write_text(SOURCE)
        (apt / "conf").write_text(CONFIGURATION.format(folder=apt))
        environment = {"APT_CONFIG": str(apt / "conf"), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
        for verb in (["update"], ["download", *PACKAGES]):
            subprocess.run(
                ["apt-get", "-qq", *verb], cwd=apt, env=environment, check=True, capture_output=True
            )
        for package in apt.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, root], check=True)
    return ["qemu-aarch64", "-L", str(root), str(root / "usr/bin/python3.11")]
