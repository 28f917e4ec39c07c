import hashlib
from pathlib import Path

import numpy as np
import pytest

from latentbit import data, engine, lbit, recipes, zoo
from latentbit.engine.classify import Guess
from latentbit.images import ImageError
from latentbit.zoo import ZooError

NAMES = zoo.names()


def test_there_are_networks_and_they_are_small() -> None:
    assert "digits" in NAMES
    assert sum(zoo.file(name).stat().st_size for name in NAMES) < 1 << 20


@pytest.mark.parametrize("name", NAMES)
def test_the_card_is_of_the_file(name: str) -> None:
    card, content = zoo.card(name), zoo.file(name).read_bytes()
    assert card.name == name
    assert (card.file_bytes, card.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    network = lbit.from_bytes(content)
    assert card.classes == network.classes
    confusion = np.array(card.confusion)
    assert confusion.shape == (network.n_outputs, network.n_outputs)
    assert (card.correct, card.total) == (confusion.trace(), confusion.sum())
    assert len(card.seeds) == len(card.accuracies) >= 1
    assert card.mean == pytest.approx(np.mean(card.accuracies))
    assert card.score.accuracy == pytest.approx(
        card.accuracies[0], abs=3 / card.total
    )  # the first seed, not the best


@pytest.mark.parametrize("name", NAMES)
def test_the_card_can_be_read_in_a_terminal(name: str) -> None:
    card = zoo.card(name)
    text = str(card)
    assert f"accuracy  {card.score} on the test images" in text  # with its interval, which one seed has too
    assert all(kind in text for kind in card.classes)


def test_digits_gets_right_what_its_card_says() -> None:
    card, net = zoo.card("digits"), engine.load("zoo:digits")
    dataset = data.open(recipes.Data(dataset="digits"))
    confusion = np.zeros((10, 10), np.int64)
    for images, labels in dataset.test_batches(100):
        np.add.at(confusion, (labels.numpy(), net(images.numpy()).argmax(1)), 1)
    assert confusion.tolist() == [list(row) for row in card.confusion]


def test_wherever_a_file_is_read_a_name_will_do() -> None:
    assert lbit.to_bytes(lbit.read("zoo:digits")) == zoo.file("digits").read_bytes()
    assert lbit.read(Path("zoo:digits")).classes == zoo.card("digits").classes


def test_a_name_that_is_none_is_refused_with_those_there_are() -> None:
    with pytest.raises(ZooError, match=r"zoo:cat: no such network .*digits"):
        engine.load("zoo:cat")
    with pytest.raises(ZooError, match=r"no such network"):
        engine.load("zoo:../secret")


@pytest.mark.parametrize(
    "name, picture, kind", [("cifar10_resnet18_compact", "ship", "ship"), ("digits", "seven", "7")]
)
def test_a_network_of_the_zoo_classifies_an_image_file(name: str, picture: str, kind: str) -> None:
    net = engine.load(f"zoo:{name}")
    (answer,) = net.classify(Path(__file__).parents[1] / "docs" / f"{picture}.png")
    assert isinstance(answer, Guess) and answer.classes[0] == kind
    with pytest.raises(ImageError, match=r"nowhere\.png: there is no such image"):
        net.classify("nowhere.png")
