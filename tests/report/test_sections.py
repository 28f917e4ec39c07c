import tiny_runs
from unrendered import Unrendered

from latentbit.report import sections


def test_a_run_with_both_views_has_every_section() -> None:
    made = [make([tiny_runs.analysis()], Unrendered()) for make in sections.ALL]
    assert all(section is not None for section in made)
    assert len({section.anchor for section in made if section}) == len(made)


def test_a_float_run_has_no_latent_sections() -> None:
    made = [make([tiny_runs.float_analysis()], Unrendered()) for make in sections.ALL]
    anchors = [section.anchor for section in made if section is not None]
    assert anchors == ["accuracy", "training", "representations", "mistakes", "cost"]


def test_runs_of_different_depth_stand_side_by_side() -> None:
    both = [tiny_runs.analysis(), tiny_runs.float_analysis()]
    section = sections.accuracy(both, Unrendered())
    assert "baseline" in section.html and "float" in section.html and "–" in section.html
