import numpy as np
import torch
from torch import Tensor, nn

from latentbit.analyze.mistakes import as_pixels, mistakes
from latentbit.data import digits
from latentbit.training.evaluate import score


class Reader(nn.Module):
    """The image holds its own logits."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1)


def test_one_pass_finds_what_sorting_everything_finds() -> None:
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(90, 1, 1, 5, generator=generator)
    labels = torch.randint(0, 5, (90,), generator=generator)
    batches = list(zip(images.split(16), labels.split(16), strict=True))
    found = mistakes(Reader(), batches, 5, keep=7)
    predicted = images.flatten(1).argmax(1)
    for i in range(5):
        for j in range(5):
            assert found.confusion[i, j] == int(((labels == i) & (predicted == j)).sum())
    assert found.score == score(Reader(), batches)
    loss = nn.functional.cross_entropy(images.flatten(1), labels, reduction="none")
    wrong = torch.nonzero(predicted != labels).flatten()
    expected = wrong[loss[wrong].argsort(descending=True)][:7]
    assert [one.index for one in found.worst] == expected.tolist()
    assert np.array_equal(found.images, images[expected].numpy())
    assert all(one.predicted != one.label for one in found.worst)
    off = found.confusion - np.diag(found.confusion.diagonal())
    assert [n for _, _, n in found.pairs(3)] == sorted(off.flatten().tolist(), reverse=True)[:3]
    assert found.recall()[2] == found.confusion[2, 2] / found.confusion[2].sum()


def test_nothing_wrong_gives_empty_lists() -> None:
    found = mistakes(Reader(), [(torch.eye(3)[:, None, None], torch.arange(3))], 3)
    assert (found.worst, found.pairs(), len(found.images)) == ([], [], 0)


def test_pixels_are_the_bytes_of_the_data_set() -> None:
    dataset = digits.open(0, 1, False, torch.device("cpu"))
    images, _ = next(dataset.test_batches(5))
    pixels = as_pixels(images.numpy(), dataset)
    assert pixels.shape == (5, 8, 8, 3)
    assert np.array_equal(pixels[..., 1], dataset.test.images[:5, 0].numpy())
