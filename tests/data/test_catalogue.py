"""The catalogue by itself; what the command prints is in tests/cli/test_data.py."""

import pytest
from rich.console import Console

from latentbit.data import DataError, catalogue


def test_every_data_set_is_listed() -> None:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(catalogue.listing())
    assert [line.split()[0] for line in captured.get().splitlines()[1:]] == [
        "digits",
        "cifar10",
        "cifar100",
        "image_folder",
        "shards",
        "my_file.py:my_data",
    ]


def test_an_empty_cache_is_sound_but_a_named_set_that_is_missing_is_not(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LATENTBIT_CACHE", str(tmp_path))
    assert [found.line for found in catalogue.check(None)] == [
        "cifar10: not downloaded",
        "cifar100: not downloaded",
    ]
    assert all(found.sound for found in catalogue.check(None))
    assert not any(found.sound for found in catalogue.check("cifar10"))


def test_names_that_cannot_be_downloaded() -> None:
    for name, reason in (("digits", "nothing to download"), ("mnist", "there are cifar10, cifar100")):
        with pytest.raises(DataError, match=reason):
            catalogue.download_of(name)
