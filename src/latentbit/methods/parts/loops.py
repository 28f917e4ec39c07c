"""What methods need from a training loop, whoever wrote it: word of every optimizer step, and of how far training is.

Steps come by themselves. Any torch optimizer that holds the weights of a binary layer tells its method before and after
each step (`Binarizer.before_step`, `after_step`): in a plain loop, under Lightning, accelerate or a gradient scaler. A
loop that changes weights without a torch optimizer calls `step_done(model, lr)`, and has no `before_step`. How far
training is only the loop can know:

    latentbit.progress(model, epoch / epochs)      at the start of every epoch

A method that has a use for either and does not get it says so, once, after 100 steps.
"""

import threading
import warnings
import weakref
from collections.abc import Iterable
from typing import Any, Protocol

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from latentbit.errors import LatentbitWarning
from latentbit.methods.parts.binarizer import Binarizer

PATIENCE = 100
"""Steps after which a method that was told nothing complains."""


class Followed(Protocol):
    """A binary layer."""

    weight: nn.Parameter
    binarizer: Binarizer


Held = list[tuple[Any, int]]
"""Binary layers whose weights an optimizer holds, with the number of their group."""

_layers: weakref.WeakSet[Any] = weakref.WeakSet()
_counted = 0
_held: weakref.WeakKeyDictionary[Optimizer, tuple[tuple[int, ...], Held]] = weakref.WeakKeyDictionary()
_under_way = threading.local()


def follow(layer: Followed) -> None:
    """From now on the steps of its weights are told to its method."""
    global _counted
    _layers.add(layer)
    _counted += 1


def progress(model: nn.Module, share: float) -> None:
    """Tell the methods of all binary layers that this share of the training is done: at the start of every epoch."""
    if not 0 <= share <= 1:
        raise ValueError(f"progress is the share of training that is done, from 0 to 1, not {share}")
    for method in _methods(model):
        method.set_progress(share)
        method._told_progress = True


@torch.no_grad()
def step_done(model: nn.Module, lr: float) -> None:
    """Tell the methods of all binary layers that their weights took a step of this learning rate.

    Only for loops that change weights without a torch optimizer. Where one has told them already, nothing happens.
    """
    seen: set[int] = set()
    for layer in _binary_layers(model):
        method = layer.binarizer
        if id(method) in seen:
            continue
        seen.add(id(method))
        if method._steps == method._steps_noted:
            if method._steps == 0 and _overrides(method, "before_step"):
                warnings.warn(
                    f"method {method.name()} changes the gradients of W before each step, which only torch optimizers "
                    "tell it of: without one it trains differently. Call binarizer.before_step(layer.weight) of every "
                    "binary layer before your step",
                    LatentbitWarning,
                    stacklevel=2,
                )
            _after_step(layer, lr)
        method._steps_noted = method._steps


def _after_step(layer: Followed, lr: float) -> None:
    method = layer.binarizer
    method.after_step(layer.weight, lr)
    method._steps += 1
    if method._steps == PATIENCE and not method._told_progress and method.follows_progress():
        warnings.warn(
            f"method {method.name()} changes as training goes on, and was told nothing in {PATIENCE} steps: call "
            "objective.progress(epoch / epochs), or latentbit.progress(model, epoch / epochs), at the start of "
            "every epoch",
            LatentbitWarning,
            stacklevel=2,
        )


def missing_steps(model: nn.Module) -> str:
    """What to say of a network in training whose methods wait for steps that nobody tells them; else nothing."""
    for method in _methods(model):
        if method._steps == 0 and _overrides(method, "after_step"):
            return (
                f"method {method.name()} changes W after every step, and no torch optimizer has made one: call "
                "objective.step_done(lr) after each step of yours"
            )
    return ""


def _overrides(method: Binarizer, hook: str) -> bool:
    return getattr(type(method), hook) is not getattr(Binarizer, hook)


def _binary_layers(model: nn.Module) -> Iterable[Any]:
    return (module for module in model.modules() if module in _layers)


def _methods(model: nn.Module) -> list[Binarizer]:
    """Once each: both views of a layer share one."""
    return list({id(layer.binarizer): layer.binarizer for layer in _binary_layers(model)}.values())


def _found_in(optimizer: Optimizer) -> Held:
    """Looked up when the optimizer, or the set of all binary layers, has changed."""
    now = (_counted, *(len(group["params"]) for group in optimizer.param_groups))
    known = _held.get(optimizer)
    if known is None or known[0] != now:
        group_of = {id(p): i for i, group in enumerate(optimizer.param_groups) for p in group["params"]}
        once = {id(layer.binarizer): layer for layer in _layers if id(layer.weight) in group_of}
        known = now, [(layer, group_of[id(layer.weight)]) for layer in once.values()]
        _held[optimizer] = known
    return known[1]


@torch.no_grad()
def _before(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    """An optimizer may be made of others: only the outermost step counts."""
    stack: list[int] = getattr(_under_way, "stack", [])
    if id(optimizer) in stack:  # its last step raised and never ended
        stack = stack[: stack.index(id(optimizer))]
    _under_way.stack = [*stack, id(optimizer)]
    if not stack:
        for layer, _ in _found_in(optimizer):
            layer.binarizer.before_step(layer.weight)


@torch.no_grad()
def _after(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    stack: list[int] = getattr(_under_way, "stack", [])
    _under_way.stack = stack[: stack.index(id(optimizer))] if id(optimizer) in stack else []
    if _under_way.stack:
        return
    for layer, group in _found_in(optimizer):
        lr = float(optimizer.param_groups[group].get("lr", 0.0))
        if layer.binarizer._steps == 0:
            _warn_of_own_rule(layer, optimizer, lr)
        _after_step(layer, lr)


def _warn_of_own_rule(layer: Followed, optimizer: Optimizer, lr: float) -> None:
    """A method that brings an optimizer for W is not trained by another one."""
    method = layer.binarizer
    if not _overrides(method, "optimizer"):
        return
    rule = method.optimizer([layer.weight], lr)
    parts = [optimizer, *getattr(optimizer, "parts", ())]
    if rule is not None and not any(type(part) is type(rule) for part in parts):
        warnings.warn(
            f"method {method.name()} has a rule of its own for W, {type(rule).__name__}, but "
            f"{type(optimizer).__name__} changed it: make the optimizer by "
            "latentbit.optimizer_for(objective, lambda params: torch.optim.Adam(params, lr=lr), lr=lr)",
            LatentbitWarning,
            stacklevel=4,
        )


register_optimizer_step_pre_hook(_before)
register_optimizer_step_post_hook(_after)
