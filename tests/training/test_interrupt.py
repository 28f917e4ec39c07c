import os
import signal

import pytest
import torch

from latentbit.training.interrupt import Interrupt, StoppedAtOnce

CPU = torch.device("cpu")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_a_wish(number) -> None:
    with Interrupt() as interrupt:
        assert not interrupt.wanted(CPU)
        os.kill(os.getpid(), number)
        assert interrupt.wanted(CPU) and interrupt.name == number.name


@pytest.mark.parametrize("before", [signal.default_int_handler, signal.SIG_IGN])
def test_the_second_ctrl_c_stops_at_once_and_handlers_are_put_back(before) -> None:
    outside = signal.signal(signal.SIGINT, before)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Interrupt():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is handler
    signal.signal(signal.SIGINT, outside)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_may_be_thrown_away_is_stopped_at_once(number) -> None:
    with Interrupt() as interrupt, pytest.raises(StoppedAtOnce, match=number.name), interrupt.at_once(True):
        os.kill(os.getpid(), number)
        raise AssertionError("it went on")
    with Interrupt() as interrupt:
        with interrupt.at_once(False):
            os.kill(os.getpid(), number)
        assert interrupt.wanted(CPU)
    with Interrupt() as interrupt:
        with interrupt.at_once(True):
            pass
        os.kill(os.getpid(), number)  # behind it, it is a wish again
        assert interrupt.wanted(CPU)
