"""in_memory: what many processes see is what one sees; resuming changes nothing."""

import numpy as np
import pytest
import torch

from latentbit.data.in_memory import InMemory, Pixels


@pytest.fixture
def data() -> InMemory:
    rng = np.random.default_rng(0)
    images = rng.integers(1, 256, (70, 3, 8, 8), dtype=np.uint8)
    images[:, 0, 4, 4] = np.arange(70)  # tells images apart
    split = Pixels.of(images, np.arange(70) % 7, 8, torch.device("cpu"))
    test = Pixels.of(images[:25], np.arange(25) % 7, 8, torch.device("cpu"))
    return InMemory("x", split, test, tuple("abcdefg"), (0.5,) * 3, (0.25,) * 3, pad=2, flip=True)


def test_facts(data: InMemory) -> None:
    assert (data.num_classes, data.in_channels, data.image_size) == (7, 3, 8)
    assert data.steps_per_epoch(16) == 4
    images, labels = next(data.train_batches(0, batch_size=16, seed=0))
    assert images.shape == (16, 3, 8, 8) and images.dtype == torch.float32 and labels.dtype == torch.int64


@pytest.mark.parametrize("world", [2, 4])
def test_processes_together_see_the_joint_batch(data: InMemory, world: int) -> None:
    joint = list(data.train_batches(3, batch_size=16, seed=9))
    parts = [list(data.train_batches(3, batch_size=16, seed=9, rank=r, world=world)) for r in range(world)]
    assert len(joint) == 4
    for whole, *pieces in zip(joint, *parts, strict=True):
        assert torch.equal(whole[0], torch.cat([p[0] for p in pieces]))
        assert torch.equal(whole[1], torch.cat([p[1] for p in pieces]))


def test_resume_inside_an_epoch(data: InMemory) -> None:
    whole = list(data.train_batches(3, batch_size=16, seed=9))[2:]
    rest = list(data.train_batches(3, batch_size=16, seed=9, start_step=2))
    assert all(torch.equal(a[0], b[0]) and torch.equal(a[1], b[1]) for a, b in zip(whole, rest, strict=True))


def test_epochs_and_seeds_differ(data: InMemory) -> None:
    def first(epoch: int, seed: int) -> torch.Tensor:
        return next(data.train_batches(epoch, batch_size=16, seed=seed))[0]

    assert not torch.equal(first(0, 0), first(1, 0)) and not torch.equal(first(0, 0), first(0, 1))


def test_no_global_random_state_is_used_or_touched(data: InMemory) -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    one = next(data.train_batches(0, batch_size=16, seed=0))[0]
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(1)
    assert torch.equal(one, next(data.train_batches(0, batch_size=16, seed=0))[0])


@pytest.mark.parametrize("world", [1, 3])
def test_evaluation_sees_each_image_once_unchanged(data: InMemory, world: int) -> None:
    pairs = [pair for rank in range(world) for pair in data.test_batches(8, rank, world)]
    pixels = torch.cat([(p[0] * 0.25 + 0.5) * 255 for p in pairs]).round().to(torch.uint8)
    order = pixels[:, 0, 4, 4].argsort()
    assert torch.equal(pixels[order], data.test.images)
    assert torch.equal(torch.cat([p[1] for p in pairs])[order], data.test.labels)


def test_batches_for_statistics_are_cropped_mixed_limited_and_always_the_same(data: InMemory) -> None:
    found = list(data.statistics_batches(16, limit=2))
    assert [len(labels) for _, labels in found] == [16, 16]
    assert [len(labels) for _, labels in data.statistics_batches(16)] == [16, 16, 16, 16, 6]
    pixels = ((found[0][0] * 0.25 + 0.5) * 255).round().to(torch.uint8)
    plain = set(map(bytes, data.train.images.numpy()))
    assert sum(bytes(image) in plain for image in pixels.numpy()) < 8  # of 16: some crops move nothing
    labels = found[0][1]
    assert not torch.equal(labels, labels.sort().values)
    again = data.statistics_batches(16, limit=2)
    assert all(torch.equal(a, b) for (a, _), (b, _) in zip(found, again, strict=True))


def test_split_scales_once() -> None:
    flat = np.full((2, 1, 8, 8), 77, np.uint8)
    split = Pixels.of(flat, np.zeros(2, np.uint8), 16, torch.device("cpu"))
    assert split.images.shape == (2, 1, 16, 16) and split.images.dtype == torch.uint8
    assert (split.images == 77).all()
