"""What each of two gloo processes does in test_distributed.py; apart, so that a spawned process can import it."""

import os

import torch
import torch.distributed as dist
from test_methods import digits, small_net
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

from latentbit import binarize_, recipes
from latentbit.distributed import (
    gather_over_processes,
    rank,
    restarted,
    sum_over_processes,
    take_buffers_of_rank_0,
    text_of_rank_0,
    world_size,
)
from latentbit.distributed.batchnorm import sync_batchnorm_
from latentbit.objective import Objective
from latentbit.runs.dataset_facts import DatasetFacts
from latentbit.training.parallel import parallel
from latentbit.training.state import TrainingState

STEP = """
data = {{batch_size = 32}}
model = {{network = "resnet18_compact", options = {{widths = [4, 8], norm = "both"}}}}
loss = {{latent = "instance", latent_weight = 0.1, dim = 4}}
optim = {{optimizer = "sgd", lr = 0.1, accumulate = {accumulate}}}
run = {{device = "cpu", compile = "off"}}
"""
FACTS = DatasetFacts("digits", tuple("0123456789"), 1, 8, (0.5,), (0.5,), 320, 32, "")
LATENT = ["none", "instance", "label_aware", "label_contrastive", "reconstruction"]


def make_objective(latent: str) -> Objective:
    torch.manual_seed(1)
    model = small_net()
    binarize_(model)
    options = {"projection": "learned", "dim": 8, "latent_weight": 0.5}
    objective = Objective(model, num_classes=10, latent=latent, **options)
    sync_batchnorm_(objective)
    return objective


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {n: p.grad.clone() for n, p in module.named_parameters() if p.grad is not None}


def statistics(module: nn.Module) -> dict[str, Tensor]:
    return {n: b.clone() for n, b in module.named_buffers()}


def weights_after_a_step(accumulate: int, images: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """One step of SGD in so many parts, with the statistics of BatchNorm held: parts then add up to the whole."""
    recipe = recipes.loads(STEP.format(accumulate=accumulate), "test")
    state = TrainingState(recipe, FACTS, torch.device("cpu"), 10)
    state.objective.eval()
    state.step(images, labels)
    return {name: p.detach().clone() for name, p in state.objective.named_parameters()}


def synchronised_in_bf16(images: Tensor) -> Tensor:
    """What a synchronised BatchNorm makes of values far from 0, as autocast gives them."""
    norm = nn.Sequential(nn.BatchNorm2d(1))
    sync_batchnorm_(norm)
    return norm((images + 40).bfloat16())


def bytes_exchanged(images: Tensor, labels: Tensor) -> tuple[int, int]:
    """Of the gradients, by DDP, and of all else, by the sums of losses and synchronised BatchNorm; one step."""
    counted = {"gradients": 0, "else": 0}
    ddp = parallel(make_objective("label_aware"))

    ddp.register_comm_hook(None, allreduce_hook)  # what DDP does by itself, through Python
    whole = dist.all_reduce

    def counting(x: Tensor, **options: object) -> object:
        counted["gradients" if options.get("async_op") else "else"] += x.nbytes
        return whole(x, **options)

    dist.all_reduce = counting
    ddp(images, labels).loss.backward()
    dist.all_reduce = whole
    return counted["gradients"], counted["else"]


def work(process: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=process, world_size=2)
    images, labels = digits()
    half = slice(16 * process, 16 * (process + 1))
    results = {}
    for latent in LATENT:
        objective = make_objective(latent)
        ddp = parallel(objective)
        ddp(images[:32][half], labels[:32][half]).loss.backward()
        results[latent] = (gradients(objective), statistics(objective))
    results["accumulated"] = weights_after_a_step(2, images[:32][half], labels[:32][half])
    results["bf16"] = synchronised_in_bf16(images[:32][half])
    results["exchanged"] = bytes_exchanged(images[:32][half], labels[:32][half])
    statistics_of_mine = nn.BatchNorm1d(2)
    statistics_of_mine.running_mean.fill_(float(process))
    take_buffers_of_rank_0(statistics_of_mine)
    results["buffers"] = statistics_of_mine.running_mean
    results["sum"] = sum_over_processes(torch.tensor([1.0 + process]))
    results["gather"] = gather_over_processes(torch.tensor([[1.0 + process]]))
    results["text"] = text_of_rank_0(f"runs/é{process}")
    # Only the machine of process 1 has seen a worker fail.
    os.environ["TORCHELASTIC_RESTART_COUNT"] = str(process)
    results["restarted"] = restarted()
    results["world"] = (rank(), world_size())
    torch.save(results, f"{folder}/{process}.pt")
    dist.destroy_process_group()
