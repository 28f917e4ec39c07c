import torch
from test_methods import small_net
from torch import nn

import latentbit


def test_every_layer_with_its_bits_and_work() -> None:
    model = small_net()
    latentbit.binarize_(model)
    found = latentbit.summary(model, torch.randn(2, 1, 8, 8))
    rows = {row[0]: row for row in found.rows()}
    assert list(rows) == ["0", "2", "5", "8", "10"]
    assert [row[2] for row in rows.values()] == ["32", "1", "1", "1", "32"]
    assert rows["0"][3:] == (
        "8x8x8",
        "80",
        "0.3",
        "4,608",
        "0",
    )  # 8 x 1 x 3 x 3 weights on 64 pixels, and 8 biases
    assert rows["2"][7] == f"{8 * 8 * 9 * 16:,}"
    assert str(found).splitlines()[0].strip() == "Sequential, input 1x8x8"
    assert "3 of 5 layers are binary" in str(found) and "Mbit" in str(found)
    assert str(latentbit.summary(model, (1, 8, 8))) == str(found)


def test_layers_without_a_binary_form_are_counted_and_named() -> None:
    model = nn.Sequential(
        nn.Conv3d(1, 4, 3), nn.Flatten(2), nn.Conv1d(4, 8, 3), nn.PReLU(8), nn.Conv1d(8, 8, 3), nn.Unflatten(2, (2, 2)),
        nn.ConvTranspose2d(8, 2, 2, 2),
    )  # fmt: skip
    latentbit.binarize_(model, keep=["2"])
    rows = {row[0]: row[1:] for row in latentbit.summary(model, (1, 4, 4, 4)).rows()}
    assert [(name, row[0], row[1]) for name, row in rows.items()] == [
        ("0", "conv 3d", "32"),
        ("2", "conv 1d", "32"),
        ("4", "binary conv 1d", "1"),
        ("6", "transposed conv", "32"),
    ]
    assert rows["0"][5] == str(4 * 8 * 27) and rows["6"][5] == str(8 * 2 * 4 * 4)


def test_a_notebook_gets_html_with_names_escaped() -> None:
    model = nn.Sequential()
    model.add_module("<b>", nn.Linear(4, 4))
    page = latentbit.summary(model, (4,))._repr_html_()
    assert page.startswith("<table>") and "<td>&lt;b&gt;</td>" in page and "<b>" not in page
