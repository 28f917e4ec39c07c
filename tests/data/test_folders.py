"""folders: the layouts that are understood, and what is said of the others."""

from pathlib import Path

import pytest

from latentbit.data import folders
from latentbit.data.dataset import DataError


def touch(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"")
    return root


def relative(root: Path, split: folders.Files) -> list[tuple[str, int]]:
    return [(str(Path(p).relative_to(root)), int(c)) for p, c in zip(split.paths, split.labels, strict=True)]


@pytest.mark.parametrize("val", ["val", "validation", "test"])
def test_train_and_val(tmp_path: Path, val: str) -> None:
    touch(
        tmp_path,
        "train/b/2.png",
        "train/b/deep/1.JPEG",
        "train/a/x.jpg",
        "train/a/notes.txt",
        f"{val}/b/q.png",
    )
    (tmp_path / val / "a").mkdir()
    touch(tmp_path, f"{val}/a/z.png", "train/.hidden/x.png")
    train, test, classes = folders.find(tmp_path)
    assert classes == ("a", "b")
    assert relative(tmp_path, train) == [
        ("train/a/x.jpg", 0),
        ("train/b/2.png", 1),
        ("train/b/deep/1.JPEG", 1),
    ]
    assert relative(tmp_path, test) == [(f"{val}/a/z.png", 0), (f"{val}/b/q.png", 1)]


def test_val_alone_and_flat_val_with_its_table(tmp_path: Path) -> None:
    touch(tmp_path, "val/i1.JPEG", "val/i2.JPEG", "val/i3.JPEG")
    with pytest.raises(DataError, match="LOC_val_solution.csv"):
        folders.find(tmp_path)
    table = tmp_path / "LOC_val_solution.csv"
    table.write_text(
        "ImageId,PredictionString\ni3,n01 1 2 3 4 \ni1,n02 1 2 3 4 n02 5 6 7 8\ni2,n01 0 0 1 1\n"
    )
    train, test, classes = folders.find(tmp_path)
    assert len(train) == 0 and classes == ("n01", "n02")
    assert relative(tmp_path, test) == [("val/i2.JPEG", 0), ("val/i3.JPEG", 0), ("val/i1.JPEG", 1)]
    touch(tmp_path, "val/i4.JPEG")
    with pytest.raises(DataError, match="does not list .*i4"):
        folders.find(tmp_path)
    (tmp_path / "val/i4.JPEG").unlink()
    (tmp_path / "val/i1.JPEG").unlink()
    with pytest.raises(DataError, match="lists i1"):
        folders.find(tmp_path)


def test_class_folders_alone_hold_out_every_fifth(tmp_path: Path) -> None:
    touch(tmp_path, *(f"cat/{i:02}.png" for i in range(11)), *(f"dog/{i}.png" for i in range(4)))
    train, test, classes = folders.find(tmp_path)
    assert classes == ("cat", "dog") and len(train) == 13
    assert relative(tmp_path, test) == [("cat/04.png", 0), ("cat/09.png", 0)]
    assert not set(train.paths) & set(test.paths)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["train/a/1.png", "train/b/1.png"], "has train/ but none of val/"),
        (["a/1.png"], "at least two; it has 1"),
        (["a/1.png", "b/1.txt"], "class folders without images: b"),
        (["train/a/1.png", "train/b/1.png", "val/a/1.png", "val/c/1.png"], "training set does not have: c"),
    ],
)
def test_other_layouts_are_named(tmp_path: Path, names: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        folders.find(touch(tmp_path, *names))


def test_missing_root(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a folder"):
        folders.find(tmp_path / "nowhere")
