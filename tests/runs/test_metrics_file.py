from latentbit.runs import metrics_file


def test_whole_lines_survive_damaged_ones(tmp_path) -> None:
    path = tmp_path / "metrics.jsonl"
    lines = [
        b'{"epoch": 1, "loss": 3}',
        b"\xff\xfe not text",
        b'{"loss": 1}',
        b"[" * 5000,
        b'{"epoch": 2}',
        b'{"ep',
    ]
    path.write_bytes(b"\n".join(lines))
    entries, damaged = metrics_file.read(path)
    assert entries == [{"epoch": 1, "loss": 3}, {"epoch": 2}]
    assert damaged == [lines[1], lines[2], lines[3], lines[5]]
    assert metrics_file.add(path, {"epoch": 3}) == 4
    assert [e["epoch"] for e in metrics_file.read(path)[0]] == [1, 2, 3]
    assert (tmp_path / metrics_file.ASIDE).read_bytes().split(b"\n")[:4] == damaged
    assert metrics_file.add(path, {"epoch": 2, "loss": 9}) == 0
    assert metrics_file.read(path) == ([{"epoch": 1, "loss": 3}, {"epoch": 2, "loss": 9}], [])


def test_no_file_is_no_epoch(tmp_path) -> None:
    assert metrics_file.read(tmp_path / "metrics.jsonl") == ([], [])
