import numpy as np
import pytest
from lbit_networks import block_network

from latentbit.engine import Engine
from latentbit.export.parts.checking import check
from latentbit.export.parts.report import Report
from latentbit.export.parts.target import ExportError


def test_the_engine_itself_does_not_differ() -> None:
    network, report = block_network(), Report()
    check(report, network, "the engine", Engine(network))
    assert report.data["difference"] == 0.0 and "in the engine" in str(report)


def test_another_result_is_an_error() -> None:
    network = block_network()
    engine = Engine(network)
    with pytest.raises(ExportError, match="Odd computes something else from the exported file"):
        check(Report(), network, "Odd", lambda images: engine(images) * np.float32(1.01))
