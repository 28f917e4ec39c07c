"""A packed network on the test set of a data set that has a name. The data sets come as torch tensors."""

from latentbit import data, recipes
from latentbit.data import DataError
from latentbit.engine import Engine
from latentbit.engine.classify import Tally

NAMES = ("digits", "cifar10", "cifar100")


def score_dataset(engine: Engine, name: str) -> Tally:
    """Correct answers and images of the test set of `digits`, `cifar10` or `cifar100`."""
    if name not in NAMES:
        raise DataError(f"{name}: no such file or folder, and not a data set ({', '.join(NAMES)})")
    if len(engine.network.output_shape) == 3:
        raise DataError(
            f"{name} has one class per image, the network gives a map of {list(engine.network.output_shape)}: "
            "in Python, latentbit.engine.load(file)(images) gives the logits of every pixel"
        )
    n_channels, height, width = engine.network.input_shape
    dataset = data.open(recipes.Data(dataset=name, image_size=height))
    offered = (dataset.in_channels, dataset.num_classes)
    if offered != (n_channels, engine.network.n_outputs) or height != width:
        raise DataError(
            f"{name} has {dataset.in_channels} channels and {dataset.num_classes} classes; the network takes "
            f"{n_channels}x{height}x{width} and gives {engine.network.n_outputs}"
        )
    correct = total = 0
    for images, labels in dataset.test_batches(100):
        correct += int((engine(images.numpy()).argmax(1) == labels.numpy()).sum())
        total += len(labels)
    return Tally(correct, total)
