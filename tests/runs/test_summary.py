import run_directory

from latentbit import runs
from latentbit.runs import RunLock
from latentbit.runs.summary import summary


def test_a_run_in_a_few_lines(tmp_path) -> None:
    path = run_directory.make_without_data(tmp_path / "run")
    run = runs.open(path)
    run.log({"epoch": 1, "accuracy_b": 0.5, "accuracy_w": 0.25})
    lines = dict(line.split(maxsplit=1) for line in summary(run))
    assert lines["recipe"] == "cifar10_resnet18_compact_label_aware"
    assert lines["network"] == "resnet18_compact, method sign, latent loss label_aware, seed 0"
    assert lines["data"].startswith("cifar10: 50,000 training and 10,000 test images of 3x32x32, 10 classes")
    assert lines["epochs"] == f"1 of 300, not finished: latentbit train --resume {path}"
    assert lines["accuracy"] == "B 50.00 %, W 25.00 % on the test images after epoch 1"
    assert lines["weights"] == "best.safetensors, last.safetensors"
    run.log({"epoch": 300, "accuracy_b": 0.75})
    assert any(line.endswith("300 of 300, finished") for line in summary(run))


def test_it_says_who_trains_it_now(tmp_path) -> None:
    run = runs.open(run_directory.make(tmp_path / "run"))
    with RunLock(run.path):
        assert any("being trained by process" in line for line in summary(run))
    assert not any("being trained" in line for line in summary(run))
