import json
from pathlib import Path

import numpy as np
import pytest
import tiny_runs

from latentbit.analyze.stored import Analysis, AnalysisError, dumps, load_analysis, save_analysis


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    analysis = tiny_runs.analysis()
    save_analysis(analysis, tmp_path)
    back = load_analysis(tmp_path)
    assert back is not None and back.numbers == analysis.numbers
    assert back.arrays.keys() == analysis.arrays.keys()
    assert all(np.array_equal(back.arrays[key], value) for key, value in analysis.arrays.items())


def test_nothing_or_another_version_is_none(tmp_path: Path) -> None:
    assert load_analysis(tmp_path) is None
    save_analysis(Analysis({"format": "older"}, {}), tmp_path)
    assert load_analysis(tmp_path) is None


def test_damage_is_named(tmp_path: Path) -> None:
    save_analysis(tiny_runs.analysis(), tmp_path)
    (tmp_path / "arrays.safetensors").write_bytes(b"short")
    with pytest.raises(AnalysisError, match="--again"):
        load_analysis(tmp_path)


def test_json_is_strict() -> None:
    assert json.loads(dumps({"a": [float("nan"), 1.5], "b": float("inf")})) == {"a": [None, 1.5], "b": None}
