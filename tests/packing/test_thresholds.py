"""A threshold decides as the float32 chain does, for every integer and for floats around the edge."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from latentbit.lbit import Layer
from latentbit.packing.thresholds import FAR, bisect, evaluate, integer_threshold, real_threshold

C = 24


def _norm(seed: int) -> Layer:
    rng = np.random.default_rng(seed)
    tensors = {
        "gamma": rng.normal(size=C).astype(np.float32),
        "beta": rng.normal(size=C).astype(np.float32),
        "mean": rng.normal(scale=3, size=C).astype(np.float32),
        "var": rng.uniform(0.1, 9, size=C).astype(np.float32),
    }
    tensors["gamma"][:2] = 0
    tensors["beta"][:2] = [0.5, -0.5]
    # BN(0) is exactly 0 there: a tie, which counts as +1.
    tensors["beta"][2:4], tensors["mean"][2:4] = 0, 0
    return Layer("batch_norm", "norm", ("x",), {"eps": 1e-5}, tensors, (C,))


def _binary(seed: int, n: int) -> Layer:
    rng = np.random.default_rng(seed)
    scale = rng.uniform(0.01, 1, size=C).astype(np.float32)
    signs = rng.choice([-1, 1], size=(C, n)).astype(np.int8)
    return Layer(
        "binary_linear",
        "x",
        ("s",),
        {},
        {"signs": signs, "scale": scale, "bias": np.zeros(C, np.float32)},
        (C,),
    )


def _sign(threshold: float = 0.0) -> Layer:
    tensors = {"threshold": np.full(C, threshold, np.float32)} if threshold else {}
    return Layer("sign", "s2", ("norm",), {}, tensors, (C,))


@pytest.mark.parametrize("n", [1, 2, 27, 576])
@pytest.mark.parametrize("threshold", [0.0, 0.3])
def test_every_integer_is_decided_as_torch_does(n: int, threshold: float) -> None:
    norm, binary = _norm(n), _binary(n, n)
    found = integer_threshold(binary, [norm], _sign(threshold))
    dots = np.arange(-n, n + 1)
    y = torch.from_numpy(binary.tensors["scale"] * dots[:, None].astype(np.float32))
    t = {role: torch.from_numpy(array) for role, array in norm.tensors.items()}
    y = F.batch_norm(y, t["mean"], t["var"], t["gamma"], t["beta"], False, 0.0, 1e-5)
    expected = (y < threshold).numpy()
    assert np.array_equal((dots[:, None] < found["threshold"]) ^ (found["flip"] > 0), expected)


def test_the_bias_of_the_layer_counts() -> None:
    binary = _binary(0, 9)
    binary.tensors["bias"][:] = np.linspace(-3, 3, C)  # type: ignore[index]
    found = integer_threshold(binary, [], _sign())
    dots = np.arange(-9, 10, dtype=np.float32)[:, None]
    expected = dots * binary.tensors["scale"] + binary.tensors["bias"] < 0
    assert np.array_equal((dots < found["threshold"]) ^ (found["flip"] > 0), expected)


@pytest.mark.parametrize("more", [[], ["hardtanh"], ["relu"], ["clamp"], ["prelu"], ["affine"]])
def test_every_float_near_the_edge_is_decided_as_torch_does(more: list[str]) -> None:
    rng = np.random.default_rng(0)
    given = {
        "prelu": {"slope": rng.uniform(0, 1, C).astype(np.float32)},
        "affine": {
            "scale": rng.normal(size=C).astype(np.float32),
            "bias": rng.normal(size=C).astype(np.float32),
        },
    }
    bounds = {"low": -0.5, "high": 0.25} if more == ["clamp"] else {}
    chain = [_norm(1), *(Layer(op, op, ("norm",), bounds, given.get(op, {}), (C,)) for op in more)]
    found = real_threshold(chain, _sign(), C)
    near = [np.clip(found["threshold"], -FAR, FAR)]
    for direction in (-np.inf, np.inf):
        x = found["threshold"]
        for _ in range(20):
            x = np.clip(np.nextafter(np.clip(x, -FAR, FAR), np.float32(direction)), -FAR, FAR)
            near.append(x)
    for x in [*near, *rng.normal(scale=10, size=(200, C)).astype(np.float32)]:
        expected = (evaluate(chain, x) < 0).numpy()
        assert np.array_equal((x < found["threshold"]) ^ (found["flip"] > 0), expected)


def test_bisect_finds_steps_up_down_and_constants() -> None:
    step = np.array([-7, -6, 0, 3, 7])

    def rises(x: np.ndarray) -> np.ndarray:
        return x < step

    low, high = np.full(5, -7), np.full(5, 7)
    for decide in (rises, lambda x: ~rises(x), lambda x: np.ones(5, bool), lambda x: np.zeros(5, bool)):
        threshold, flip = bisect(decide, low, high)
        for x in range(-7, 8):
            assert np.array_equal((x < threshold) ^ flip, decide(np.full(5, x)))
