"""Which layers share a step: nothing lost, nothing twice, nothing before what it reads, and as the oracle plans it."""

from typing import Any

from lbit_networks import block_network, every_network
from oracle import plan as oracle

from latentbit.lbit import INPUT, Network, core


def plan(network: Network) -> list[dict[str, Any]]:
    return core.of(network).plan


def reads(step: dict[str, Any], network: Network) -> set[str]:
    """Values a step needs from others."""
    names = set(network[step["layer"]].inputs)
    if step["chain"]["residual"] is not None:
        names.add(step["chain"]["residual"])
    return names - set(step["layers"]) - {INPUT}


def as_names(value: Any) -> Any:
    """A chain of the oracle as the core describes it."""
    return {key: getattr(found, "name", found) for key, found in vars(value).items()}


def test_steps_are_those_of_the_oracle() -> None:
    for network in every_network():
        expected = oracle.plan(network)
        found = plan(network)
        assert [step["layer"] for step in found] == [step.layer.name for step in expected]
        for ours, theirs in zip(found, expected, strict=True):
            assert ours["layers"] == [layer.name for layer in theirs.layers()]
            assert ours["chain"] == as_names(theirs.chain)
            assert ours["pool"] == (theirs.pool and theirs.pool.name)
            if theirs.pool is not None:
                assert ours["pool_chain"] == as_names(theirs.pool_chain)


def test_every_layer_is_in_one_step_or_never_carried_out() -> None:
    for network in every_network():
        planned = [name for step in plan(network) for name in step["layers"]]
        left_out = {layer.name for layer in network.layers} - set(planned)
        assert len(planned) == len(set(planned))
        assert all(network[name].op == "concat" for name in left_out)


def test_steps_come_after_what_they_read() -> None:
    for network in every_network():
        known: set[str] = set()
        for step in plan(network):
            assert reads(step, network) <= known
            known |= set(step["layers"])


def test_a_residual_block_is_one_step_and_its_pool() -> None:
    network = block_network()
    steps = {step["layer"]: step for step in plan(network)}
    assert [network[name].op for name in steps] == ["conv", "max_pool", "binary_conv", "global_avg_pool"]
    conv = steps["block"]["chain"]
    assert (conv["residual"], conv["repeat"]) == ("shortcut", 2)
    assert conv["activation"] is not None and conv["keep"]
    stem = steps["stem"]["chain"]
    assert stem["sign"] is not None and stem["keep"], "both the shortcut and the convolution read it"


def test_a_convolution_takes_its_pooling_along() -> None:
    step = plan(block_network(stem_pool=True))[0]
    assert step["pool"] is not None
    assert step["pool_chain"]["sign"] is not None
    assert step["pool_chain"]["keep"]


def test_a_sign_alone_needs_no_real_output() -> None:
    stem = plan(block_network(shortcut=False))[0]["chain"]
    assert stem["sign"] is not None
    assert not stem["keep"]
