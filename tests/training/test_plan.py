from tiny_run import tiny_recipe

from latentbit.training.plan import plan


def test_a_plan_names_data_network_steps_and_time(tmp_path) -> None:
    lines = dict(line.split(maxsplit=1) for line in plan(tiny_recipe(tmp_path, "epochs=2")))
    assert lines["steps"] == "2 epochs of 11 steps of 128 images on cpu"
    assert "8 binary layers" in lines["network"] and lines["method"] == "sign, latent loss label_aware"
    assert lines["time"].startswith("about ")
    assert list(tmp_path.iterdir()) == [tmp_path / "tiny.toml"]


def test_a_real_network_has_no_method(tmp_path) -> None:
    lines = plan(tiny_recipe(tmp_path, "epochs=1", "binarize=false", "latent=none"))
    assert "method    none, all layers real" in lines
