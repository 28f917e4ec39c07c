"""download: a real local server that breaks off, ignores ranges, lies; npm's registry and its fallback."""

import base64
import errno
import hashlib
import http.server
import json
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from latentbit.data import download
from latentbit.data.dataset import DataError

CONTENT = os.urandom(100_000)
SHA256 = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


class Server(http.server.ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.ranges, self.cut = CONTENT, True, 0
        self.asked: list[str | None] = []
        self.json: dict[str, object] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/404":
            self.send_error(404)
        elif self.path.startswith("/pkg"):
            self.answer(200, json.dumps(self.server.json).encode(), {})
        else:
            self.file()

    def file(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append(wanted)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.ranges else 0
        size = len(self.server.content)
        if start >= size:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{size}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        headers = {"Content-Range": f"bytes {start}-{size - 1}/{size}"} if start else {}
        self.answer(206 if start else 200, self.server.content[start:], headers)

    def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.cut] if self.server.cut and len(body) > self.server.cut else body)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "npm_config_registry", "NPM_CONFIG_REGISTRY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(download.time, "sleep", lambda _: None)
    monkeypatch.setattr(download, "CHUNK", 4096)
    with Server() as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield running
        running.shutdown()


def silent(name: str, done: int, total: int) -> None:
    pass


def test_whole_at_once_with_progress(server: Server, tmp_path: Path) -> None:
    seen = []
    download.fetch(f"{server.url}/x", tmp_path / "x", SHA256, lambda *line: seen.append(line))
    assert (tmp_path / "x").read_bytes() == CONTENT and os.listdir(tmp_path) == ["x"]
    assert seen[-1] == ("x", 100_000, 100_000) and [s[1] for s in seen] == sorted(s[1] for s in seen)


def test_broken_connections_are_resumed(server: Server, tmp_path: Path) -> None:
    server.cut = 30_000
    download.fetch(f"{server.url}/x", tmp_path / "x", SHA256, silent)
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert server.asked == [None, "bytes=30000-", "bytes=60000-", "bytes=90000-"]


def test_a_part_from_before_is_continued(server: Server, tmp_path: Path) -> None:
    (tmp_path / "x.part").write_bytes(CONTENT[:70_000])
    download.fetch(f"{server.url}/x", tmp_path / "x", SHA256, silent)
    assert (tmp_path / "x").read_bytes() == CONTENT and server.asked == ["bytes=70000-"]


def test_a_server_without_ranges_restarts(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    (tmp_path / "x.part").write_bytes(CONTENT[:70_000])
    download.fetch(f"{server.url}/x", tmp_path / "x", SHA256, silent)
    assert (tmp_path / "x").read_bytes() == CONTENT


@pytest.mark.parametrize("before", [b"y" * 500, b"y" * 100_000, b"y" * 200_000, CONTENT])
def test_a_foreign_part_is_thrown_away(server: Server, tmp_path: Path, before: bytes) -> None:
    (tmp_path / "x.part").write_bytes(before)
    download.fetch(f"{server.url}/x", tmp_path / "x", SHA256, silent)
    assert (tmp_path / "x").read_bytes() == CONTENT


def test_a_wrong_file_never_gets_the_name(server: Server, tmp_path: Path) -> None:
    server.content = b"an error page"
    with pytest.raises(DataError, match="the server sent a different file"):
        download.fetch(f"{server.url}/x", tmp_path / "x", SHA256, silent)
    assert os.listdir(tmp_path) == []


def test_interrupt_keeps_the_part_only(server: Server, tmp_path: Path) -> None:
    def interrupt(name: str, done: int, total: int) -> None:
        if done > 50_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download.fetch(f"{server.url}/x", tmp_path / "x", SHA256, interrupt)
    assert os.listdir(tmp_path) == ["x.part"]
    download.fetch(f"{server.url}/x", tmp_path / "x", SHA256, silent)
    assert (tmp_path / "x").read_bytes() == CONTENT


def test_what_can_not_be_reached(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="404"):
        download.fetch(f"{server.url}/404", tmp_path / "x", SHA256, silent)
    with pytest.raises(DataError):
        download.fetch("http://127.0.0.1:9/x", tmp_path / "x", SHA256, silent)
    server.cut = -len(CONTENT)  # headers, then nothing
    with pytest.raises(DataError, match="closed early"):
        download.fetch(f"{server.url}/x", tmp_path / "x", SHA256, silent)


def test_a_full_disk_is_not_taken_for_the_network(server: Server, tmp_path: Path) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        download.fetch(f"{server.url}/x", tmp_path / "x", SHA256, full)
    assert len(server.asked) == 1


def package(server: Server, tarball: str) -> None:
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(CONTENT).digest()).decode()
    server.json = {"dist": {"tarball": tarball, "integrity": integrity}}


def test_npm_registry_of_the_environment(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("npm_config_registry", server.url + "/")
    package(server, f"{download.NPM}/pkg-file/-/x.tgz".replace("/pkg-file", "/tar"))
    download.fetch_npm("pkg", "1.0.0", tmp_path / "x.tgz", silent)
    assert (tmp_path / "x.tgz").read_bytes() == CONTENT


def fake_npm(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    npm = folder / "npm"
    npm.write_text(f"#!/bin/sh\n{script}\n")
    npm.chmod(npm.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


def test_npm_registry_of_its_configuration(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npm(tmp_path / "bin", "echo https://mirror.example/npm/", monkeypatch)
    assert download.registry() == "https://mirror.example/npm"
    (tmp_path / "bin" / "npm").write_text("#!/bin/sh\nexit 1\n")
    assert download.registry() == download.NPM
    monkeypatch.setenv("PATH", str(tmp_path))
    assert download.registry() == download.NPM


def test_npm_pack_is_the_way_out(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("npm_config_registry", server.url + "/404?")
    fake_npm(tmp_path / "bin", 'printf packed > "$5/pkg-1.0.0.tgz"', monkeypatch)
    download.fetch_npm("pkg", "1.0.0", tmp_path / "out" / "x.tgz", silent)
    assert (tmp_path / "out" / "x.tgz").read_bytes() == b"packed"
    (tmp_path / "bin" / "npm").write_text("#!/bin/sh\necho no network >&2; exit 1\n")
    with pytest.raises(DataError, match="npm pack: no network"):
        download.fetch_npm("pkg", "1.0.0", tmp_path / "out" / "y.tgz", silent)
