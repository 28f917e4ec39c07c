"""The engine as its users meet it: files in, logits out, clear refusals, any batch and number of threads."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from lbit_networks import block_network, random_network

from latentbit import models
from latentbit.binarize import binarize_
from latentbit.engine import Engine, EngineError, available, chosen_isa
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
