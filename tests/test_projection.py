import math

import pytest
import torch

from latentbit.projection import Projection, spread


@pytest.mark.parametrize("kind, dim", [("learned", 8), ("orthogonal", 8), ("none", 20)])
def test_rows_have_length_one(kind, dim) -> None:
    projection = Projection(20, 8, kind)
    out = projection(torch.randn(5, 20))
    assert out.shape == (5, dim) == (5, projection.dim)
    torch.testing.assert_close(out.norm(dim=1), torch.ones(5))


def test_only_the_learned_map_learns() -> None:
    assert len(list(Projection(20, 8, "learned").parameters())) == 2
    frozen = Projection(20, 8, "orthogonal")
    assert not list(frozen.parameters())
    torch.testing.assert_close(frozen.rows @ frozen.rows.T, torch.eye(8))
    assert "rows" in frozen.state_dict()
    assert not Projection(20, 8, "none").state_dict()


def test_impossible_maps_are_refused() -> None:
    with pytest.raises(ValueError, match="learned, orthogonal, none"):
        Projection(4, 2, "random")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="8 orthogonal rows do not fit into 4"):
        Projection(4, 8, "orthogonal")


def test_spread_tells_collapse_from_separation() -> None:
    labels = torch.arange(4).repeat(5)
    assert spread(torch.ones(20, 3), labels, 6) == pytest.approx(0.0, abs=1e-6)
    assert spread(torch.eye(4)[labels], labels, 4) == pytest.approx(1.0)
    assert math.isnan(spread(torch.ones(3, 3), torch.zeros(3, dtype=torch.long), 4))
