"""What is done to training images at random, and normalisation: formulas of (seed, epoch, image), never of a state.

Boxes are cut out of an image file before it is scaled. Shifts, colours and normalisation are of a whole batch at once,
on the device the batch is on.

Padding is black, put on before normalisation: so do the pipelines whose accuracies the paper compares
with (a border of value 0 after normalisation would be mean grey), and bytes cost a quarter of floats.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from latentbit.data import sampling

TRIES = 10
"""Boxes that are drawn before the middle of an image is taken: one of a wide ratio may not fit a narrow image."""

# Of the colours of ImageNet from 0 to 1 (AlexNet; values of fb.resnet.torch): eigenvalues, eigenvectors in columns.
EIGENVALUES = (0.2175, 0.0188, 0.0045)
EIGENVECTORS = ((-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203))
GREY = (0.299, 0.587, 0.114)

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels."""


@dataclass(frozen=True)
class Area:
    """A random resized crop: its share of the image's area, evenly; width to height from 1 / ratio to ratio, by log."""

    smallest: float = 0.08
    largest: float = 1.0
    ratio: float = 4 / 3

    def box(self, width: int, height: int, chances: Sequence[float]) -> Box:
        """Where to cut; `chances` are N_CHANCES numbers from 0 to below 1."""
        for i in range(TRIES):
            share = self.smallest + (self.largest - self.smallest) * chances[2 * i]
            ratio = self.ratio ** (2 * chances[2 * i + 1] - 1)
            wide = round(math.sqrt(width * height * share * ratio))
            high = round(math.sqrt(width * height * share / ratio))
            if 0 < wide <= width and 0 < high <= height:
                left = int(chances[-2] * (width - wide + 1))
                top = int(chances[-1] * (height - high + 1))
                return left, top, left + wide, top + high
        wide, high = min(width, round(height * self.ratio)), min(height, round(width * self.ratio))
        left, top = (width - wide) // 2, (height - high) // 2
        return left, top, left + wide, top + high


N_CHANCES = 2 * TRIES + 2
"""Two for each try, two for the place."""


@dataclass(frozen=True)
class Colour:
    """How far the colours of training images go; 0 leaves them.

    Brightness, contrast and saturation are multiplied by 1 - x to 1 + x, the hue turned by -x to x of a circle, in a
    random order for each image. Lighting adds the main colours of ImageNet, times normal numbers of this deviation.
    """

    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    hue: float = 0.0
    lighting: float = 0.0

    @property
    def needs_colour(self) -> bool:
        """What cannot be done to grey images."""
        return bool(self.saturation or self.hue or self.lighting)

    def __bool__(self) -> bool:
        return bool(self.brightness or self.contrast or self.needs_colour)


def recolour(images: Tensor, draws: np.ndarray, colour: Colour) -> Tensor:
    """Images (N, C, H, W) from 0 to 255 with other colours, as floats; `draws` are N integers >= 0."""
    chances = sampling.uniforms(draws, 11)
    found = images.to(torch.float32, copy=True)
    spread = np.array([colour.brightness, colour.contrast, colour.saturation, colour.hue])
    middle = np.array([1, 1, 1, 0])
    amounts = torch.from_numpy((middle + (2 * chances[:, :4] - 1) * spread).astype(np.float32)).to(
        found.device
    )
    orders = np.array(list(permutations(range(4))))[(chances[:, 4] * 24).astype(int)]
    for turn in range(4):
        for kind in np.flatnonzero(spread).tolist():
            chosen = torch.from_numpy(np.flatnonzero(orders[:, turn] == kind)).to(found.device)
            if len(chosen):
                changed = CHANGES[kind](found[chosen], amounts[chosen, kind].view(-1, 1, 1, 1))
                found[chosen] = changed.clamp_(0, 255)
    if colour.lighting:
        normal = np.sqrt(-2 * np.log1p(-chances[:, 5:8])) * np.cos(2 * np.pi * chances[:, 8:])  # Box-Muller
        light = 255 * colour.lighting * (normal * EIGENVALUES) @ np.array(EIGENVECTORS).T
        found += torch.from_numpy(light.astype(np.float32)).to(found.device).view(-1, 3, 1, 1)
        found.clamp_(0, 255)
    return found


def _brightness(images: Tensor, amount: Tensor) -> Tensor:
    return images * amount


def _contrast(images: Tensor, amount: Tensor) -> Tensor:
    return torch.lerp(_grey(images).mean((1, 2, 3), keepdim=True), images, amount)


def _saturation(images: Tensor, amount: Tensor) -> Tensor:
    return torch.lerp(_grey(images), images, amount)


def _grey(images: Tensor) -> Tensor:
    if images.shape[1] == 1:
        return images
    return (images * images.new_tensor(GREY).view(1, 3, 1, 1)).sum(1, keepdim=True)


def _hue(images: Tensor, turn: Tensor) -> Tensor:
    """Turn the hue of HSV, from 0 to 1, by `turn`; brightest and darkest channel of a pixel keep their values."""
    high, low = images.amax(1, keepdim=True), images.amin(1, keepdim=True)
    spread = (high - low).clamp(min=1e-6)
    red, green, blue = images.split(1, 1)
    sector = torch.where(
        red == high,
        (green - blue) / spread,
        torch.where(green == high, 2 + (blue - red) / spread, 4 + (red - green) / spread),
    )
    sector = sector + 6 * turn
    # A channel is bright within one sixth of its own hue, dark from two sixths on, and goes straight in between.
    channels = [(torch.remainder(sector - own + 3, 6) - 3).abs() for own in (0, 2, 4)]
    return low + (high - low) * (2 - torch.cat(channels, 1)).clamp(0, 1)


CHANGES: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (_brightness, _contrast, _saturation, _hue)


def crop(images: Tensor, draws: Tensor, pad: int, flip: bool) -> Tensor:
    """Pad, crop back to size at a random place, mirror half: (N, C, H, W) bytes, (N, 3) integers >= 0."""
    if pad:
        height, width = images.shape[-2:]
        places = F.pad(images, (pad, pad, pad, pad)).unfold(2, height, 1).unfold(3, width, 1)
        at = draws[:, :2] % (2 * pad + 1)
        # unfold copies nothing; the index reads each image's window alone.
        images = places[torch.arange(len(at), device=at.device), :, at[:, 0], at[:, 1]]
    if flip:
        mirrored = (draws[:, 2] % 2 == 1).view(-1, 1, 1, 1)
        images = torch.where(mirrored, images.flip(3), images)
    return images


def normalise(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """(x / 255 - mean) / std; mean and std are (1, C, 1, 1)."""
    # In place on the one copy: a broadcast addcmul takes four times as long on a CPU.
    return images.to(torch.float32, copy=True).mul_(1 / (255 * std)).sub_(mean / std)
