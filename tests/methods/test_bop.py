import numpy as np
from methods.method_gradients import layer_of, np_sign, sample, weight_and_gradient

from latentbit.training import optimizers


def test_the_layer_holds_signs_and_hands_on_their_gradient() -> None:
    w, g = sample()
    layer = layer_of("bop", w)
    np.testing.assert_array_equal(layer.weight.detach(), np_sign(w))
    value, gradient = weight_and_gradient("bop", w, g)
    np.testing.assert_array_equal(value, np_sign(w))
    np.testing.assert_array_equal(gradient, g)


def test_it_brings_its_optimizer() -> None:
    assert layer_of("bop", sample()[0]).binarizer.optimizer is optimizers.Bop
