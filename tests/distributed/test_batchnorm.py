"""That the statistics are those of the joint batch is checked over two processes in test_distributed.py."""

from torch import nn

from latentbit.distributed.batchnorm import SyncedBatchNorm, sync_batchnorm_


def test_sync_batchnorm_adopts_parameters_and_statistics() -> None:
    model = nn.Sequential(nn.BatchNorm2d(3), nn.Sequential(nn.BatchNorm1d(4)))
    weight, running = model[0].weight, model[0].running_mean
    sync_batchnorm_(model)
    assert isinstance(model[0], SyncedBatchNorm) and isinstance(model[1][0], SyncedBatchNorm)
    assert model[0].weight is weight and model[0].running_mean is running
