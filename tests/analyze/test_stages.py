import pytest
import torch

from latentbit.analyze.stages import Stages


def test_batches_pass_unchanged_and_plain_output_names_the_stage(capsys: pytest.CaptureFixture[str]) -> None:
    batches = [(torch.zeros(3, 1), torch.arange(3)), (torch.zeros(2, 1), torch.arange(2))]
    with Stages() as stages:
        assert list(stages.over(batches, "counting sheep", 5)) == batches
        with stages.stage("sleeping"):
            pass
    written = capsys.readouterr()
    assert written.out == "" and "counting sheep" in written.err and "sleeping" in written.err


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Stages(quiet=True) as stages, stages.stage("sleeping"):
        stages.say("hush")
    assert capsys.readouterr().err == ""
