"""Writes images.bin: ten test digits, for each its class and its pixels as bytes."""

from pathlib import Path

from latentbit.data import digits

images, labels = digits.arrays()
rows = zip(images[digits.N_TRAIN :][:10], labels[digits.N_TRAIN :][:10], strict=True)
Path("images.bin").write_bytes(b"".join(bytes([label]) + image.tobytes() for image, label in rows))
