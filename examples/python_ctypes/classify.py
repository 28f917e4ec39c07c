"""Run a packed network from Python with nothing installed: the shared library through ctypes.

python classify.py liblatentbit.so model.lbit image.ppm

The model is mapped, not copied. The image is a binary PPM (P6) of the size that the network takes.
"""

import ctypes
import mmap
import sys
from pathlib import Path


def open_library(path: str) -> ctypes.CDLL:
    """The library, with the signatures of latentbit.h that are used here."""
    library = ctypes.CDLL(path)
    size, engine = ctypes.c_size_t, ctypes.c_void_p
    library.latentbit_load_memory.restype = engine
    library.latentbit_load_memory.argtypes = [
        ctypes.c_void_p, size, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, size,
    ]  # fmt: skip
    library.latentbit_input_shape.argtypes = [engine, ctypes.POINTER(size)]
    library.latentbit_output_size.argtypes, library.latentbit_output_size.restype = [engine], size
    library.latentbit_class_name.argtypes = [engine, size]
    library.latentbit_class_name.restype = ctypes.c_char_p
    library.latentbit_run_bytes.argtypes = [
        engine, ctypes.c_char_p, ctypes.c_int, size, ctypes.POINTER(ctypes.c_float), size,
    ]  # fmt: skip
    library.latentbit_error.argtypes, library.latentbit_error.restype = [engine], ctypes.c_char_p
    library.latentbit_free.argtypes, library.latentbit_free.restype = [engine], None
    return library


def load(library: ctypes.CDLL, path: str) -> int:
    """An engine for the network in a file."""
    error = ctypes.create_string_buffer(500)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as content:
        start = (ctypes.c_char * len(content)).from_buffer(content)
        engine = library.latentbit_load_memory(start, len(content), 1, None, error, len(error))
        del start  # or the map could not be closed
    if engine is None:
        sys.exit(f"{path}: {error.value.decode()}")
    return engine


def read_ppm(path: str, height: int, width: int) -> bytes:
    kind, size, depth, pixels = Path(path).read_bytes().split(b"\n", 3)
    if (kind, size, depth) != (b"P6", b"%d %d" % (width, height), b"255") or len(
        pixels
    ) != 3 * width * height:
        sys.exit(f"{path}: the network takes a PPM of {width}x{height} pixels")
    return pixels


def main(library_path: str, model: str, image: str) -> None:
    library = open_library(library_path)
    engine = load(library, model)
    shape = (ctypes.c_size_t * 3)()
    library.latentbit_input_shape(engine, shape)
    logits = (ctypes.c_float * library.latentbit_output_size(engine))()
    pixels = read_ppm(image, shape[1], shape[2])
    if library.latentbit_run_bytes(engine, pixels, 1, 1, logits, len(logits)):
        sys.exit(library.latentbit_error(engine).decode())
    for i in sorted(range(len(logits)), key=lambda i: -logits[i])[:5]:
        name = library.latentbit_class_name(engine, i)
        print(f"{logits[i]:.9g} {name.decode() if name else i}")
    library.latentbit_free(engine)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
