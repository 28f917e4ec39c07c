"""What each of two gloo processes does in test_distributed.py; apart, so that a spawned process can import it."""

import os

import torch
import torch.distributed as dist
from test_methods import digits, small_net
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from latentbit import binarize_
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


def work(process: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=process, world_size=2)
    images, labels = digits()
    half = slice(16 * process, 16 * (process + 1))
    results = {}
    for latent in LATENT:
        objective = make_objective(latent)
        ddp = DistributedDataParallel(objective)
        ddp(images[:32][half], labels[:32][half]).loss.backward()
        results[latent] = (gradients(objective), statistics(objective))
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
