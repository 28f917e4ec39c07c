import torch
from tiny_run import tiny_recipe

from latentbit import data, models
from latentbit.layers import BINARY_LAYERS
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training.start import first_network


def test_scales_of_a_method_are_those_of_the_weights_that_a_file_brings(tmp_path) -> None:
    """`start` of a learned scale is mean |W|: of the file's W, not of the fresh ones that it replaces."""
    torch.manual_seed(5)
    real = models.create("resnet18_compact", num_classes=100, in_channels=1, widths=[8, 16], norm="both")
    torch.save({"state_dict": real.state_dict()}, tmp_path / "real.pth")
    recipe = tiny_recipe(tmp_path, "latent=none", "method=rbnn", f"start={tmp_path / 'real.pth'}")
    network, match = first_network(recipe, DatasetFacts.of(data.open(recipe.data)))
    assert match.share == 1.0 and match.fresh == (
        "fc.weight (10 x 16, 100 x 16 there)",
        "fc.bias (10, 100 there)",
    )
    given = real.state_dict()
    for name, layer in network.named_modules():
        if isinstance(layer, BINARY_LAYERS):
            assert torch.equal(layer.weight, given[f"{name}.weight"])
            torch.testing.assert_close(
                layer.binarizer.alpha.start, layer.weight.detach().abs().flatten(1).mean(1)
            )


def test_what_is_fresh_is_the_same_for_the_same_seed(tmp_path) -> None:
    real = models.create("resnet18_compact", num_classes=100, in_channels=1, widths=[8, 16], norm="both")
    torch.save(real.state_dict(), tmp_path / "real.pth")
    recipe = tiny_recipe(tmp_path, "latent=none", f"start={tmp_path / 'real.pth'}")
    facts = DatasetFacts.of(data.open(recipe.data))
    one, two = first_network(recipe, facts)[0], first_network(recipe, facts)[0]
    assert torch.equal(one.fc.weight, two.fc.weight)
