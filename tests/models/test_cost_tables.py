from torch import nn

from latentbit.binarize import binarize_
from latentbit.models.cost import count
from latentbit.models.cost_tables import summary, tables


def test_layers_kinds_and_totals_are_those_of_the_count() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 8, 3), nn.Flatten(), nn.Linear(32, 2)
    )
    binarize_(model)
    counted = count(model, (3, 6, 6))
    by_layer, by_kind = tables(counted, "mine")
    assert list(by_layer.columns[0].cells) == ["0", "2", "4"]
    total = [list(column.cells)[-1] for column in by_kind.columns]
    assert total[0] == "total" and total[4:6] == [f"{counted.total().macs:,}", f"{counted.total().bops:,}"]
    assert any(f"{counted.mbit:.2f} Mbit" in line for line in summary(counted))
