"""Which layers share a step: nothing lost, nothing twice, nothing before what it reads."""

import lbit_oracle  # noqa: F401  (the oracle's import path is the tests')
from lbit_networks import block_network, every_network

from latentbit.engine.plan import plan
from latentbit.lbit import INPUT, Layer


def reads(step) -> set[str]:  # noqa: ANN001
    """Values a step needs from others."""
    own = {layer.name for layer in step.layers()}
    names = set(step.layer.inputs)
    if step.chain.residual is not None:
        names.add(step.chain.residual)
    return names - own - {INPUT}


def test_every_layer_is_in_one_step_or_never_carried_out() -> None:
    for network in every_network():
        planned = [layer.name for step in plan(network) for layer in step.layers()]
        left_out = {layer.name for layer in network.layers} - set(planned)
        assert len(planned) == len(set(planned))
        assert all(network[name].op == "concat" for name in left_out)


def test_steps_come_after_what_they_read() -> None:
    for network in every_network():
        known: set[str] = set()
        for step in plan(network):
            assert reads(step) <= known
            known |= {layer.name for layer in step.layers()}


def test_a_residual_block_is_one_step_and_its_pool() -> None:
    steps = plan(block_network())
    by_name = {step.layer.name: step for step in steps}
    assert [step.layer.op for step in steps] == ["conv", "max_pool", "binary_conv", "global_avg_pool"]
    conv = by_name["block"].chain
    assert (conv.residual, conv.repeat) == ("shortcut", 2)
    assert conv.activation is not None and conv.keep
    stem = by_name["stem"]
    assert stem.chain.sign is not None and stem.chain.keep, "both the shortcut and the convolution read it"


def test_a_convolution_takes_its_pooling_along() -> None:
    network = block_network(stem_pool=True)
    step = plan(network)[0]
    assert isinstance(step.pool, Layer)
    assert step.pool_chain.sign is not None
    assert step.pool_chain.keep


def test_a_sign_alone_needs_no_real_output() -> None:
    network = block_network(shortcut=False)
    stem = plan(network)[0]
    assert stem.chain.sign is not None
    assert not stem.chain.keep
