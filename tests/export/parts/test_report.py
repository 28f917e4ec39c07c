from pathlib import Path

from latentbit.export.parts.report import Report


def test_lines_are_aligned_and_data_kept() -> None:
    report = Report([Path("a.c")])
    report.add("RAM", "12 bytes", ram=12)
    report.add("written", "a.c")
    assert str(report) == "RAM      12 bytes\nwritten  a.c"
    assert report.as_dict() == {"files": ["a.c"], "ram": 12}
