"""The engine as its users meet it: files in, logits out, clear refusals, any batch and number of threads."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from lbit_networks import block_network, random_network

from latentbit import models
from latentbit.binarize import binarize_
from latentbit.engine import Engine, EngineError, available, chosen_isa, load
from latentbit.lbit import Layer, Network, checked, write
from latentbit.packing import pack


def images_for(network, n: int = 5) -> np.ndarray:  # noqa: ANN001
    return np.random.default_rng(0).normal(size=(n, *network.input_shape)).astype(np.float32)


def test_load_and_run_a_file_without_torch(tmp_path: Path) -> None:
    write(block_network(), tmp_path / "m.lbit")
    code = (
        "import sys, numpy as np\nfrom latentbit import engine\n"
        "out = engine.load(sys.argv[1])(np.zeros((2, 3, 8, 8), np.float32))\n"
        "assert out.shape == (2, 32) and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "m.lbit")], check=True)


def test_whole_network_equals_the_torch_binary_view() -> None:
    model = binarize_model("resnet18_compact")
    network = pack(model, torch.zeros(1, 3, 32, 32))
    images = images_for(network, 20)
    with torch.no_grad():
        expected = model(torch.from_numpy(images)).numpy()
    for isa in available():
        found = Engine(network, isa=isa)(images)
        assert (found.argmax(1) == expected.argmax(1)).all()
        # A pre-activation within rounding of 0 may change sides in one image or other; the rest agree closely.
        close = np.abs(found - expected).max(1) <= 1e-4 * np.abs(expected).max()
        assert close.mean() >= 0.9


def binarize_model(name: str) -> torch.nn.Module:
    model = models.create(name, num_classes=10, in_channels=3)
    binarize_(model)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):  # statistics and signs of gamma as after training
            torch.nn.init.normal_(module.weight)
            torch.nn.init.normal_(module.bias, std=0.1)
            module.running_mean.normal_(std=0.1)
            module.running_var.uniform_(0.5, 2)
    return model.eval()


@pytest.mark.parametrize("isa", available())
def test_batch_and_threads_change_nothing(isa: str) -> None:
    network = random_network(3)
    images = images_for(network, 7)
    alone = np.concatenate([Engine(network, isa=isa)(image[None]) for image in images])
    for threads in (1, 2, 5):
        engine = Engine(network, isa=isa, threads=threads)
        for n in (1, 7, 3):
            np.testing.assert_array_equal(engine(images[:n]), alone[:n])


def test_all_instruction_sets_agree() -> None:
    network = block_network(stem_pool=True)
    images = images_for(network)
    first, *others = (Engine(network, isa=isa)(images) for isa in available())
    for other in others:
        np.testing.assert_allclose(first, other, rtol=1e-5, atol=1e-5)


def test_many_calls_with_pauses_keep_the_threads_in_step() -> None:
    network = random_network(1)
    images = images_for(network, 2)
    engine = Engine(network, threads=4)
    expected = engine(images)
    for i in range(300):
        if i % 100 == 0:
            threading.Event().wait(0.002)  # long enough for the workers to fall asleep
        np.testing.assert_array_equal(engine(images), expected)


def test_engines_run_side_by_side() -> None:
    """Each engine has its own buffers and threads; the GIL is released while they run."""
    networks = [random_network(seed) for seed in range(4)]
    expected = [Engine(network)(images_for(network)) for network in networks]
    failures = []

    def work(i: int) -> None:
        engine = Engine(networks[i], threads=2)
        for _ in range(50):
            if not np.array_equal(engine(images_for(networks[i])), expected[i]):
                failures.append(i)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []


def test_one_engine_may_be_called_from_several_threads() -> None:
    network = random_network(2)
    images = images_for(network)
    engine = Engine(network, threads=2)
    expected = engine(images)
    failures = []

    def work() -> None:
        failures.extend(
            i for i in range(40) if not np.array_equal(engine(images[: 1 + i % 5]), expected[: 1 + i % 5])
        )

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []


def exit_code_of_child(work, seconds: float = 60) -> int:  # noqa: ANN001
    """Fork, do the work there, and tell how it ended; a child that hangs is killed: -SIGKILL."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_runs_and_drops_the_engine_it_inherits() -> None:
    network = random_network(2)
    images = images_for(network)
    engines = [Engine(network, threads=3)]
    expected = engines[0](images)

    def child() -> bool:
        found = [engines[0](images[:n]) for n in (1, 5, 5)]
        grandchild = exit_code_of_child(lambda: np.array_equal(engines[0](images), expected), 20)
        engines.clear()  # joins the child's own threads, not those that stayed with the parent
        return all(np.array_equal(x, expected[: len(x)]) for x in found) and grandchild == 0

    def only_drops() -> bool:
        engines.clear()
        return True

    assert exit_code_of_child(child) == 0
    assert exit_code_of_child(only_drops) == 0
    np.testing.assert_array_equal(engines[0](images), expected)


def test_a_fork_during_calls_of_other_threads_leaves_the_child_a_working_engine() -> None:
    network = checked(
        Network((4, 64, 64), (Layer("relu", "r", ("input",)), Layer("global_avg_pool", "g", ("r",))))
    )
    images = images_for(network, 24)
    expected = Engine(network)(images)
    stop = threading.Event()
    codes = []
    for threads in (1, 2):
        engine = Engine(network, threads=threads)
        stop.clear()

        def calls(engine: Engine = engine) -> None:
            n = 0
            while not stop.is_set():
                n = n % 24 + 1  # batches that grow: forks fall into allocations too
                engine(images[:n])

        workers = [threading.Thread(target=calls) for _ in range(2)]
        for worker in workers:
            worker.start()
        try:
            for _ in range(12):
                codes.append(
                    exit_code_of_child(
                        lambda engine=engine: np.array_equal(engine(images), expected),  # type: ignore[misc]
                        30,
                    )
                )
        finally:
            stop.set()
            for worker in workers:
                worker.join()
    assert codes == [0] * 24


def _shape_of_logits(n: int) -> tuple[float, ...]:
    return tuple(SHARED[0](SHARED[1][:n])[-1].tolist())


SHARED: list = []


def test_processes_of_multiprocessing_share_an_engine_by_fork() -> None:
    network = random_network(1)
    engine, images = Engine(network, threads=2), images_for(network)
    SHARED[:] = [engine, images]
    expected = engine(images)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map_async(_shape_of_logits, [1, 2, 3, 4, 5]).get(timeout=60)
    assert found == [tuple(row.tolist()) for row in expected]


def test_threads_that_the_system_does_not_give_are_an_error_not_an_abort() -> None:
    code = (
        "import resource\nfrom lbit_networks import block_network\nfrom latentbit.engine import Engine, EngineError\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
        "try:\n    Engine(block_network(), threads=1000)\n"
        "except EngineError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parent
    )
    assert done.returncode == 0 and "threads=1000" in done.stdout, done


def test_profile_names_every_step() -> None:
    network = block_network()
    profile = Engine(network).profile(images_for(network, 1), repeats=2)
    assert [name for name, _, _ in profile] == ["stem", "shortcut", "block", "pool"]
    assert all(microseconds >= 0 for _, _, microseconds in profile)


def test_views_and_other_strides_are_accepted() -> None:
    network = block_network()
    images = images_for(network, 4)
    expected = Engine(network)(images)
    np.testing.assert_array_equal(Engine(network)(np.asfortranarray(images)), expected)
    np.testing.assert_array_equal(Engine(network)(images[::2]), expected[::2])


def test_layouts_of_bytes() -> None:
    network = block_network()
    images = np.random.default_rng(0).integers(0, 256, (2, 3, 8, 8)).astype(np.uint8)
    engine = Engine(network)
    found = engine(images)
    np.testing.assert_array_equal(engine(images, layout="nchw"), found)
    np.testing.assert_array_equal(engine(images.transpose(0, 2, 3, 1)), found)
    np.testing.assert_array_equal(found, engine((images / np.float32(255)).astype(np.float32)))
    assert [name for name, _, _ in engine.profile(images, repeats=1)] == ["stem", "shortcut", "block", "pool"]
    with pytest.raises(EngineError, match="layout=hwc: choose nchw"):
        engine(images, layout="hwc")
    with pytest.raises(EngineError, match="layout=nhwc: choose nchw"):
        engine(found, layout="nhwc")
    cube = checked(Network((3, 3, 3), (Layer("flatten", "f", ("input",)),)))
    with pytest.raises(EngineError, match="two ways: pass layout"):
        Engine(cube)(np.zeros((1, 3, 3, 3), np.uint8))
    pixels = np.arange(27, dtype=np.uint8).reshape(1, 3, 3, 3)
    np.testing.assert_array_equal(
        Engine(cube)(pixels, layout="nhwc"), Engine(cube)(pixels.transpose(0, 3, 1, 2), layout="nchw")
    )


@pytest.mark.parametrize("isa", available())
def test_large_batches_run_in_slices(isa: str) -> None:
    """The same logits as one by one, with memory for a slice only."""
    network = checked(
        Network((4, 64, 64), (Layer("relu", "r", ("input",)), Layer("global_avg_pool", "g", ("r",))))
    )
    engine = Engine(network, isa=isa, threads=2)
    images = np.random.default_rng(0).normal(size=(4500, 4, 1, 1)).astype(np.float32)
    found = engine(np.broadcast_to(images, (4500, 4, 64, 64)))
    np.testing.assert_allclose(found, np.maximum(images, 0)[..., 0, 0], rtol=1e-3)
    assert engine._program.arena_bytes <= 1 << 28


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((1, 3, 8, 9), np.float32), "expected an array"),
        (np.zeros((3, 8, 8), np.float32), "expected an array"),
        (np.zeros((1, 3, 8, 8)), "float32 or uint8, got float64"),
        (np.zeros((0, 3, 8, 8), np.float32), "a batch of 0"),
        ([[1.0]], "got list"),
    ],
)
def test_wrong_images_are_refused(images: object, message: str) -> None:
    with pytest.raises(EngineError, match=message):
        Engine(block_network())(images)


def test_nan_and_infinity_are_said_on_request(tmp_path: Path) -> None:
    network = block_network()
    write(network, tmp_path / "m.lbit")
    engine = load(tmp_path / "m.lbit", check_finite=True)
    images = images_for(network, 4)
    np.testing.assert_array_equal(engine(images), Engine(network)(images))
    for odd in (np.nan, np.inf, -np.inf):
        wrong = images.copy()
        wrong[2, 0, 3, 3] = odd
        with pytest.raises(EngineError, match="image 2 holds NaN or infinity"):
            engine(wrong)
        assert Engine(network)(wrong).shape == (4, 32)  # not asked, not said
    scale = {"scale": np.full(2, 3e38, np.float32), "bias": np.zeros(2, np.float32)}
    layers = Layer("affine", "a", ("input",), {}, scale), Layer("global_avg_pool", "g", ("a",))
    large = Engine(checked(Network((2, 1, 1), layers)), check_finite=True)
    with pytest.raises(EngineError, match="the logits of image 1 are not finite"):
        large(np.array([0, 0, 9, 0], np.float32).reshape(2, 2, 1, 1))


def test_unknown_kernels_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match="isa=avx9000: this machine can run"):
        Engine(block_network(), isa="avx9000")
    monkeypatch.setenv("LATENTBIT_ISA", "mmx")
    with pytest.raises(EngineError, match="LATENTBIT_ISA=mmx"):
        Engine(block_network())
    with pytest.raises(EngineError, match="threads=0"):
        Engine(block_network(), threads=0, isa="scalar")


def test_scalar_is_always_available_and_last_and_the_variable_forces_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LATENTBIT_ISA", raising=False)
    before = available()
    assert before[-1] == "scalar" and len(set(before)) == len(before)
    assert chosen_isa() == Engine(block_network()).isa == before[0]
    monkeypatch.setenv("LATENTBIT_ISA", "scalar")
    assert chosen_isa() == Engine(block_network()).isa == "scalar"
    assert available() == before  # the variable chooses, it does not hide
    assert chosen_isa(before[0]) == before[0]  # the argument outweighs it
