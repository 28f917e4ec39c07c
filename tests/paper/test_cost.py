import pytest
import torch

from latentbit import binarize_, models
from latentbit.models import cost
from latentbit.paper import cost as paper_cost


@pytest.mark.parametrize("name", list(paper_cost.TABLE))
def test_lines_beside_the_paper(name: str) -> None:
    with torch.device("meta"):
        model = models.create(name)
        binarize_(model)
    counted = cost.count(model, paper_cost.INPUT)
    lines = {line.quantity: line for line in paper_cost.compare(name, counted)}
    printed = paper_cost.TABLE[name]
    parameters = {"resnet18": 11_689_512, "resnet34": 21_797_672}[name]
    twin = lines["32-bit standard ResNet, Mbit"]
    assert twin.ours == 32 * parameters / 1e6
    # The paper's 697.3 is 0.2 below the count of the standard ResNet-34.
    assert abs(twin.difference) < 0.25
    assert f"{lines['BOPs'].ours:.4g}" == f"{printed.bops:.4g}"
    assert lines["real FLOPs, convs and linears"].ours < printed.flops
    assert lines["real FLOPs, convs and linears"].difference == counted.total().macs - printed.flops
    assert abs(lines["with real 1x1 shortcuts, Mbit"].difference) < 0.4
    assert lines["standard / binary memory"].ours == twin.ours / counted.mbit


def test_printed_ratios_follow_from_printed_memory() -> None:
    for printed in paper_cost.TABLE.values():
        assert printed.float_mbit / printed.mbit == pytest.approx(printed.ratio, abs=0.01)
