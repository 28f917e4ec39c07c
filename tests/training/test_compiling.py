import contextlib

import torch

from latentbit.training.compiling import autocast_for, compile_pays

CPU = torch.device("cpu")


def test_compile_is_chosen_where_it_pays() -> None:
    assert compile_pays("on", CPU, 1) and not compile_pays("off", CPU, 10**6)
    assert not compile_pays("auto", CPU, 100) and not compile_pays("auto", torch.device("mps"), 10**6)


def test_bf16_is_used_on_request_and_never_by_itself_on_a_cpu() -> None:
    assert isinstance(autocast_for("auto", CPU), contextlib.nullcontext)
    with autocast_for("bf16", CPU):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
