"""Networks of stages: a stem, stages of blocks, the global average, a classifier."""

from collections.abc import Callable, Iterable, Sequence

from torch import Tensor, nn

from latentbit.models.registry import Fan, initialise_

MakeBlock = Callable[[int, int, int], nn.Module]
"""(channels before, channels after, stride) -> a block."""


def stages(block: MakeBlock, widths: Sequence[int], depths: Sequence[int]) -> list[nn.Sequential]:
    """`depths[i]` blocks of `widths[i]` channels. Every stage but the first halves the map in its first block."""
    made, before = [], widths[0]
    for i, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        first = block(before, width, 1 if i == 0 else 2)
        made.append(nn.Sequential(first, *(block(width, width, 1) for _ in range(depth - 1))))
        before = width
    return made


class Staged(nn.Module):
    """Runs them one after the other, and names the ends of the stages. `features` are the channels of the last one."""

    def __init__(
        self,
        stem: nn.Module,
        stages: Iterable[nn.Module],
        features: int,
        num_classes: int,
        init: Fan = "fan_out",
        gamma: float = 1.0,
    ) -> None:
        super().__init__()
        self.stem = stem
        self.stages = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(features, num_classes)
        initialise_(self, init, gamma)

    @property
    def stage_names(self) -> tuple[str, ...]:
        """Modules after which maps of student and teacher are compared (losses.attention_matching)."""
        return tuple(f"stages.{i}" for i in range(len(self.stages)))

    def forward_features(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> the last stage's map (N, D, h, w)."""
        return self.stages(self.stem(x))

    def forward_head(self, features: Tensor) -> Tensor:
        """The logits of such maps."""
        return self.fc(self.flatten(self.pool(features)))

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(x))
