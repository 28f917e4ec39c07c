"""The library as C and ctypes programs see it: built as the examples say, and equal to Python bit for bit.

LATENTBIT_C_BUILD names another CMake build than that of the extension, and CFLAGS how to compile with it:
`make sanitize` runs these tests under ASan and UBSan.
"""

import ctypes
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import fuzz_lbit
import lbit_examples
import numpy as np
import pytest

from latentbit import __version__, lbit
from latentbit.engine import Engine, available
from latentbit.lbit import Network

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
FLAGS = os.environ.get("CFLAGS", "").split()
CLASSES = ("cat", "dog", "caf\u00e9", "it's")

pytestmark = pytest.mark.skipif(
    not shutil.which("cmake") or not shutil.which("cc"), reason="needs cmake and a C compiler"
)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `cmake --install` put the library, from the build that made the extension."""
    where = tmp_path_factory.mktemp("prefix")
    chosen = os.environ.get("LATENTBIT_C_BUILD")
    built = [Path(chosen)] if chosen else list(ROOT.glob("build/c*/CMakeCache.txt"))
    newest = max(built, key=lambda path: path.stat().st_mtime)
    folder = newest if newest.is_dir() else newest.parent
    command = ["cmake", "--install", str(folder), "--component", "library", "--prefix", str(where)]
    subprocess.run(command, check=True, capture_output=True)
    return where


def _compile(prefix: Path, out: Path, source: Path, static: bool = False) -> Path:
    library = [prefix / "lib" / "liblatentbit.a"] if static else [f"-L{prefix}/lib", "-llatentbit"]
    rest = ["-lstdc++", "-lm", "-pthread"] if static else [f"-Wl,-rpath,{prefix}/lib"]
    command = [
        "cc",
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        *FLAGS,
        f"-I{prefix}/include",
        source,
        "-o",
        out,
    ]
    subprocess.run([*map(str, command), *map(str, library), *rest], check=True)
    return out


def _run(command: list[object], **environment: str) -> subprocess.CompletedProcess[str]:
    without = {key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "ASAN_OPTIONS")}
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, encoding="utf-8", env=without | environment
    )


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> tuple[Network, Path]:
    network = dataclasses.replace(
        lbit_examples.every_op(), classes=CLASSES, source={"resize": 7, "note": 'a "quote" \u00e9'}
    )
    path = tmp_path_factory.mktemp("network") / "model.lbit"
    lbit.write(network, path)
    return lbit.checked(network), path


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> tuple[np.ndarray, Path]:
    pixels = np.random.default_rng(0).integers(0, 256, (6, 6, 3), np.uint8)
    path = tmp_path_factory.mktemp("image") / "image.ppm"
    path.write_bytes(b"P6\n6 6\n255\n" + pixels.tobytes())
    return pixels, path


def _printed(network: Network, pixels: np.ndarray) -> str:
    """What the examples print: 9 digits tell every float32 from every other."""
    logits = Engine(network)(pixels[None])[0]
    order = np.argsort(-logits, kind="stable")[:5]
    return "".join(f"{logits[i]:.9g} {CLASSES[i]}\n" for i in order)


@pytest.mark.parametrize("static", [False, True])
def test_the_c_example_prints_what_python_computes(prefix, network, image, tmp_path, static) -> None:
    program = _compile(prefix, tmp_path / "classify", EXAMPLES / "c" / "classify.c", static)
    done = _run([program, network[1], image[1]])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == _printed(network[0], image[0])
    for arguments, said in (
        ([tmp_path / "absent.lbit", image[1]], "absent.lbit: cannot be read: No such file"),
        ([image[1], image[1]], "image.ppm: this is not a packed network"),
        ([network[1], network[1]], "the network takes a PPM of 6x6 pixels, 3 channels"),
    ):
        done = _run([program, *arguments])
        assert done.returncode == 1 and said in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(bool(FLAGS), reason="this Python has no sanitizer in it")
def test_the_ctypes_example_prints_what_python_computes(prefix, network, image) -> None:
    script, library = EXAMPLES / "python_ctypes" / "classify.py", prefix / "lib" / "liblatentbit.so"
    done = _run([sys.executable, "-S", script, library, network[1], image[1]], PYTHONUTF8="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == _printed(network[0], image[0])
    done = _run([sys.executable, "-S", script, library, image[1], image[1]])
    assert done.returncode == 1 and "not a packed network" in done.stderr


def test_the_header_is_c_and_cpp(prefix, tmp_path) -> None:
    source = tmp_path / "use.c"
    source.write_text(
        "#include <latentbit.h>\n#include <stdio.h>\nint main(void) { puts(latentbit_version()); return 0; }\n"
    )
    assert _run([_compile(prefix, tmp_path / "use", source)]).stdout.strip() == __version__
    subprocess.run(
        [
            "c++",
            "-std=c++11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-xc++",
            "-fsyntax-only",
            f"-I{prefix}/include",
            source,
        ],
        check=True,
    )


@pytest.mark.skipif(bool(FLAGS), reason="these files do not say how they were compiled")
def test_cmake_and_pkg_config_find_the_library(prefix, tmp_path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(user C CXX)\nfind_package(latentbit 0.2 REQUIRED)\n"
        f"add_executable(shared_user {EXAMPLES}/c/classify.c)\ntarget_link_libraries(shared_user latentbit::shared)\n"
        f"add_executable(static_user {EXAMPLES}/c/classify.c)\ntarget_link_libraries(static_user latentbit::static)\n"
        "set_target_properties(static_user PROPERTIES LINKER_LANGUAGE CXX)\n"
    )
    build = tmp_path / "build"
    for command in (["-S", tmp_path, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}"], ["--build", build]):
        done = _run(["cmake", *command])
        assert done.returncode == 0, done.stdout + done.stderr
    for name in ("shared_user", "static_user"):
        assert "usage" in _run([build / name]).stderr
    if shutil.which("pkg-config"):
        done = _run(
            ["pkg-config", "--cflags", "--libs", "latentbit"], PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig"
        )
        assert f"-I{prefix}/lib/../" in done.stdout or f"-I{prefix}/" in done.stdout
        assert "-llatentbit" in done.stdout


class Api:
    """Every function of the header, for the tests below."""

    def __init__(self, prefix: Path) -> None:
        library = ctypes.CDLL(str(prefix / "lib" / "liblatentbit.so"))
        size, engine, floats = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p
        text, number = ctypes.c_char_p, ctypes.c_int
        for name, result, arguments in (
            ("load", engine, [text, number, text, text, size]),
            ("load_memory", engine, [text, size, number, text, text, size]),
            ("free", None, [engine]),
            ("input_shape", None, [engine, ctypes.POINTER(size)]),
            ("output_shape", number, [engine, ctypes.POINTER(size)]),
            ("input_size", size, [engine]),
            ("output_size", size, [engine]),
            ("class_name", text, [engine, size]),
            ("mean", ctypes.POINTER(ctypes.c_float), [engine]),
            ("std", ctypes.POINTER(ctypes.c_float), [engine]),
            ("resize", number, [engine]),
            ("source", text, [engine]),
            ("run", number, [engine, floats, size, floats, size]),
            ("run_bytes", number, [engine, floats, number, size, floats, size]),
            ("step_count", size, [engine]),
            ("step_name", text, [engine, size]),
            ("step_op", text, [engine, size]),
            ("step_kernels", text, [engine, size]),
            ("profile", number, [engine, floats, size, floats, size, ctypes.c_void_p]),
            ("threads", number, [engine]),
            ("kernels", text, [engine]),
            ("error", text, [engine]),
            ("version", text, []),
        ):
            function = getattr(library, f"latentbit_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def problem(
        self, content: bytes, *, threads: int = 1, kernels: bytes | None = None, room: int = 500
    ) -> str:
        """Why this is no network; the empty string if it is one."""
        error = ctypes.create_string_buffer(room)
        engine = self.load_memory(content, len(content), threads, kernels, error, room)
        self.free(engine)
        assert bool(engine) == (not error.value)
        return error.value.decode()


@pytest.fixture(scope="module")
def api(prefix: Path) -> Api:
    return Api(prefix)


def _at(array: np.ndarray) -> int:
    return array.ctypes.data


def test_every_function(api: Api, network) -> None:
    packed, path = network
    error = ctypes.create_string_buffer(100)
    engine = api.load(os.fsencode(path), 2, available()[-1].encode(), error, 100)
    assert engine, error.value
    shape = (ctypes.c_size_t * 3)()
    api.input_shape(engine, shape)
    assert tuple(shape) == packed.input_shape
    assert (api.output_shape(engine, shape), shape[0]) == (1, 4)
    assert (api.input_size(engine), api.output_size(engine)) == (108, 4)
    assert [api.class_name(engine, i) for i in range(4)] == [name.encode() for name in CLASSES]
    assert api.class_name(engine, 4) is None
    assert np.array_equal(api.mean(engine)[:3], np.float32(packed.mean))
    assert np.array_equal(api.std(engine)[:3], np.float32(packed.std))
    assert api.resize(engine) == 7
    assert json.loads(api.source(engine)) == packed.source
    assert (api.threads(engine), api.kernels(engine)) == (2, available()[-1].encode())

    python = Engine(packed, threads=2, isa=available()[-1])
    images = np.random.default_rng(1).normal(size=(3, 3, 6, 6)).astype(np.float32)
    out = np.zeros((3, 4), np.float32)
    assert api.run(engine, _at(images), 3, _at(out), out.size) == 0
    assert np.array_equal(out, python(images))
    pixels = np.random.default_rng(2).integers(0, 256, (3, 6, 6, 3), np.uint8)
    assert api.run_bytes(engine, _at(pixels), 1, 3, _at(out), out.size) == 0
    assert np.array_equal(out, python(pixels))
    planes = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
    again = np.zeros_like(out)
    assert api.run_bytes(engine, _at(planes), 0, 3, _at(again), again.size) == 0
    assert np.array_equal(out, again)

    steps = [(name, op) for name, op, _ in python.profile(images, repeats=1)]
    n = api.step_count(engine)
    assert [(api.step_name(engine, i).decode(), api.step_op(engine, i).decode()) for i in range(n)] == steps
    assert [api.step_kernels(engine, i).decode() for i in range(n)] == python.step_kernels
    assert api.step_name(engine, n) is api.step_op(engine, n) is api.step_kernels(engine, n) is None
    times = np.zeros(n)
    assert api.profile(engine, _at(images), 3, _at(out), out.size, _at(times)) == 0
    assert (times > 0).all() and np.array_equal(out, python(images))

    assert api.error(engine) == b""
    for n_images, n_out, said in ((0, 0, b"a batch of 0"), (65537, 1, b"a batch of 65537"), (3, 11, b"12")):
        assert api.run(engine, _at(images), n_images, _at(out), n_out) == -1
        assert said in api.error(engine)
    assert api.run(engine, None, 3, _at(out), out.size) == -1 and b"NULL" in api.error(engine)
    api.free(engine)
    api.free(None)


def test_a_map_as_output(api: Api) -> None:
    packed = lbit_examples.version_2()
    content = lbit.to_bytes(packed)
    engine = api.load_memory(content, len(content), 1, None, None, 0)
    shape = (ctypes.c_size_t * 3)()
    assert (api.output_shape(engine, shape), tuple(shape)) == (3, packed.output_shape)
    assert api.output_size(engine) == 6 * 5 * 6
    images = np.random.default_rng(1).normal(size=(2, 3, 6, 6)).astype(np.float32)
    out = np.zeros((2, *packed.output_shape), np.float32)
    assert api.run(engine, _at(images), 2, _at(out), out.size) == 0
    assert np.array_equal(out, Engine(packed)(images))
    api.free(engine)


def test_refusals_are_those_of_python(api: Api) -> None:
    for path in sorted(fuzz_lbit.CORPUS.glob("refused/*.lbit")):
        with pytest.raises(lbit.PackedFileError) as error:
            lbit.from_bytes(path.read_bytes())
        assert api.problem(path.read_bytes()) == str(error.value)[:499]
    content = lbit.to_bytes(lbit_examples.tiny())
    assert api.problem(content) == ""
    assert "threads must be from 1 to 1024" in api.problem(content, threads=0)
    assert "no kernels 'mmx'" in api.problem(content, kernels=b"mmx")
    assert api.problem(content[:-1], room=10) == "the tenso"
    named = content.replace(b"flatten", "fl\u00e9tte".encode())
    assert all(api.problem(named, room=room).isprintable() for room in range(2, 80)), (
        "no letter is cut in two"
    )
    assert not api.load_memory(None, 0, 1, None, None, 0)


def test_content_may_lie_anywhere(api: Api) -> None:
    content = lbit.to_bytes(lbit_examples.every_op())
    logits = []
    for shift in range(9):
        room = ctypes.create_string_buffer(b"\0" * shift + content, shift + len(content))
        place = ctypes.cast(ctypes.addressof(room) + shift, ctypes.c_char_p)
        engine = api.load_memory(place, len(content), 1, None, None, 0)
        assert engine
        ctypes.memset(room, 255, len(room))  # not needed any more
        images, out = np.ones((1, 3, 6, 6), np.float32), np.zeros((1, 4), np.float32)
        assert api.run(engine, _at(images), 1, _at(out), 4) == 0
        logits.append(out)
        api.free(engine)
    assert all(np.array_equal(out, logits[0]) for out in logits)


def test_many_threads_with_an_engine_each(api: Api, network) -> None:
    packed, path = network
    images = np.random.default_rng(3).normal(size=(4, 3, 6, 6)).astype(np.float32)
    expected = Engine(packed)(images)
    wrong: list[object] = []

    def work() -> None:
        for _ in range(10):
            error = ctypes.create_string_buffer(200)
            assert not api.load(b"absent", 1, None, error, 200) and error.value.startswith(b"absent: ")
            engine = api.load(os.fsencode(path), 1, None, error, 200)
            out = np.zeros((4, 4), np.float32)
            if api.run(engine, _at(images), 4, _at(out), 16) or not np.array_equal(out, expected):
                wrong.append(out)
            api.free(engine)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []
