"""A fresh corner of torchrun's store for every start of the workers.

torchrun keeps one store over all restarts and, as of torch 2.13, does not set the starts apart in it: a restarted
worker may read the address that a dead one left and wait for it for ever. Its restart count does not help, each
machine counts its own. So the workers agree on a name that none of them can have from an earlier start.
"""

import json
import time
import uuid

import torch.distributed as dist

ASK_EVERY = 0.05  # seconds
PATIENCE = 600.0  # seconds that a worker waits for worker 0


def meet(store: dist.Store, rank: int, size: int) -> dist.Store:
    """The part of `store` that only the `size` workers of this start use; waits for all of them."""
    name = _call(store, size) if rank == 0 else _answer(store, rank)
    return dist.PrefixStore(name, store)


def _call(store: dist.Store, size: int) -> str:
    name = uuid.uuid4().hex
    store.set("call", name)
    workers = [store.get(f"{name}/worker/{rank}").decode() for rank in range(1, size)]
    store.set(f"{name}/met", json.dumps(workers))
    return name


def _answer(store: dist.Store, rank: int) -> str:
    """Answer the latest call until one counts us in; a call of an earlier start names a dead worker instead."""
    me = uuid.uuid4().hex
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        name = store.get("call").decode()
        store.set(f"{name}/worker/{rank}", me)
        if store.check([f"{name}/met"]) and me in json.loads(store.get(f"{name}/met")):
            return name
        time.sleep(ASK_EVERY)
    raise TimeoutError(f"worker {rank} waited {PATIENCE} s for worker 0; is every machine of the job up?")
