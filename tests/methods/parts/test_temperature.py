import pytest
import torch

from latentbit.methods.parts.temperature import Temperature


@pytest.mark.parametrize(
    "progress, t, k", [(0.0, 1e-3, 1e3), (0.5, 1e-1, 1e1), (0.75, 1.0, 1.0), (1.0, 10.0, 1.0)]
)
def test_it_rises_by_equal_factors(progress, t, k) -> None:
    temperature = Temperature(1e-3, 10)
    temperature.set(progress)
    torch.testing.assert_close((temperature.t, temperature.k), (torch.tensor(t), torch.tensor(k)))


def test_it_is_no_part_of_a_checkpoint_but_moves_with_the_module() -> None:
    temperature = Temperature(1e-2, 10)
    assert temperature.state_dict() == {}
    assert temperature.double().t.dtype == torch.float64


def test_a_new_value_does_not_compile_again() -> None:
    temperature = Temperature(1e-3, 10)
    graphs = []

    def count(graph, example_inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(lambda x: x * temperature.t, backend=count, fullgraph=True)
    for progress in (0.0, 0.3, 0.9):
        temperature.set(progress)
        torch.testing.assert_close(compiled(torch.ones(2)), temperature.t.expand(2))
    assert len(graphs) == 1
    torch._dynamo.reset()
