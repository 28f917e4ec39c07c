"""From a recipe to a torch optimizer; methods may bring rules of their own for the weights of binary layers."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from latentbit.layers import BINARY_LAYERS
from latentbit.methods.parts.binarizer import Binarizer
from latentbit.recipes import Optim
from latentbit.training.combined import Combined


def create(objective: nn.Module, optim: Optim) -> Optimizer:
    """The optimizer of a recipe over all parameters of `objective`, latent weights included.

    A method may bring its own rule for the weights of binary layers, and may exempt its own parameters from
    weight decay; `lr` of every group is the recipe's, to be set by the schedule.
    """
    parts = _rules(objective, optim.lr)
    undecayed: set[int] = set()
    for layer in objective.modules():
        if isinstance(layer, BINARY_LAYERS) and not layer.binarizer.decays:
            undecayed |= {id(p) for p in layer.binarizer.parameters()}
    elsewhere = {id(p) for part in parts for group in part.param_groups for p in group["params"]}
    rest = [p for p in objective.parameters() if p.requires_grad and id(p) not in elsewhere]
    groups: list[dict[str, Any]] = [{"params": [p for p in rest if id(p) not in undecayed]}]
    if undecayed:
        groups.append({"params": [p for p in rest if id(p) in undecayed], "weight_decay": 0.0})
    # One kernel over all tensors: the loop over a hundred small ones costs several milliseconds a step.
    fused = all(p.device.type in ("cpu", "cuda") for p in rest)
    common: dict[str, Any] = {"lr": optim.lr, "weight_decay": optim.weight_decay, "fused": fused}
    main: Optimizer
    if optim.optimizer == "adam":
        main = torch.optim.Adam(groups, **common)
    elif optim.optimizer == "adamw":
        main = torch.optim.AdamW(groups, **common)
    else:
        nesterov = optim.nesterov and optim.momentum > 0
        main = torch.optim.SGD(groups, momentum=optim.momentum, nesterov=nesterov, **common)
    return Combined([main, *parts]) if parts else main


def optimizer_for(model: nn.Module, make: Callable[[list[nn.Parameter]], Optimizer], lr: float) -> Optimizer:
    """An optimizer for a loop of your own: `make` gets all parameters but those that a method has a rule for.

    optimizer = optimizer_for(objective, lambda params: torch.optim.Adam(params, lr=1e-3), lr=1e-3)
    """
    rules = _rules(model, lr)
    elsewhere = {id(p) for rule in rules for group in rule.param_groups for p in group["params"]}
    main = make([p for p in model.parameters() if p.requires_grad and id(p) not in elsewhere])
    return Combined([main, *rules]) if rules else main


def _rules(objective: nn.Module, lr: float) -> list[Optimizer]:
    """What methods bring for the weights of their layers, one optimizer for all layers of one method."""
    methods: dict[str, Binarizer] = {}
    weights: dict[str, list[nn.Parameter]] = {}
    for layer in objective.modules():
        if isinstance(layer, BINARY_LAYERS):
            same = str(layer.binarizer)
            methods.setdefault(same, layer.binarizer)
            weights.setdefault(same, []).append(layer.weight)
    # Both views of a layer hold the same weight.
    unique = {same: list({id(p): p for p in found}.values()) for same, found in weights.items()}
    rules = [methods[same].optimizer(unique[same], lr) for same in methods]
    return [rule for rule in rules if rule is not None]
