import dataclasses

import pytest
from tiny_run import tiny_recipe

from latentbit.training import measure
from latentbit.training import plan as planning
from latentbit.training.plan import Devices, plan


@pytest.fixture(autouse=True)
def _quick(monkeypatch) -> None:
    monkeypatch.setattr(measure, "SECONDS", 0.02)


def lines_of(*arguments) -> dict[str, str]:
    return dict(line.split(maxsplit=1) for line in plan(*arguments))


def test_a_plan_names_data_network_steps_and_cost(tmp_path) -> None:
    lines = lines_of(tiny_recipe(tmp_path, "epochs=2"))
    assert lines["steps"] == "2 epochs of 11 steps of 128 images on cpu"
    assert "8 binary layers" in lines["network"] and lines["method"] == "sign, latent loss label_aware"
    assert lines["time"].startswith("about ") and "images/s, from memory" in lines["input"]
    assert "with 128 images at once: weights " in lines["memory"] and "devices" not in lines
    assert list(tmp_path.iterdir()) == [tmp_path / "tiny.toml"]


def test_a_real_network_has_no_method(tmp_path) -> None:
    lines = plan(tiny_recipe(tmp_path, "epochs=1", "binarize=false", "latent=none"))
    assert "method    none, all layers real" in lines


def test_many_devices_of_a_given_speed(tmp_path) -> None:
    """12,800 images a second take 10 ms for the 128 images of a step; 12 messages of 50 us come on top."""
    recipe = tiny_recipe(
        tmp_path, "epochs=1000", "eval_every=1000", "first.real_weights=true", "accumulate=2"
    )
    lines = lines_of(recipe, Devices(4, speed=3200.0, bandwidth=100.0))
    assert lines["steps"].startswith("1000 + 1000 epochs in two stages of 11 steps")
    assert lines["devices"].startswith("4 of 3,200 images/s each, 100 Gbit/s: 11 ms a step, ")
    assert "about 4 minutes if the input brings 12," in lines["devices"]  # 2 x 11,000 steps of 10 ms
    assert "with 16 images at once" in lines["each"]


def test_a_folder_that_is_not_here_is_counted_as_imagenet_and_this_is_said(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(measure, "PICTURES", 40)
    monkeypatch.setattr(measure, "DISTINCT", 2)
    recipe = tiny_recipe(tmp_path, "dataset=image_folder", "image_size=32", "workers=0", "val=0.1")
    lines = lines_of(dataclasses.replace(recipe, data=dataclasses.replace(recipe.data, root="/none")))
    assert lines["data"].startswith(
        "root=/none is not here. Counted as ImageNet: 1,281,167 training images, 128,117"
    )
    assert "generated JPEGs of 500 x 375" in lines["data"]
    assert lines["steps"].startswith("3 epochs of 9008 steps of 128 images")
    assert "by the training process on" in lines["input"]


def test_evaluations_are_counted(tmp_path) -> None:
    recipe = tiny_recipe(tmp_path, "epochs=5", "eval_every=2", "latent_eval_every=4", "val=0.1")
    facts = planning.DatasetFacts(
        "digits", ("0",), 1, 8, (0.5,), (0.5,), n_train=1000, n_test=100, checksum=""
    )
    # B after 2, 4 and 5; W and W-dagger after 4 and 5, with two batches for its statistics.
    assert planning._evaluated(recipe, facts) == 3 * (100 + 100) + 2 * (2 * 100 + 2 * 128)
