import tiny_runs
from unrendered import Unrendered

from latentbit.analyze.stored import Analysis
from latentbit.report.latent_sections import reconstruction, representations, weights


def test_runs_of_different_depth_share_a_table() -> None:
    long = tiny_runs.analysis()
    errors = long.numbers["reconstruction"]
    short = {key: dict(list(errors[key].items())[:3]) for key in ("layers", "activated", "unexplained")}
    short |= {"average": 1.0, "average_activated": 2.0, "average_unexplained": 0.5}
    other = Analysis(long.numbers | {"run": "short", "reconstruction": short}, long.arrays)
    section = reconstruction([other, long], Unrendered())
    assert section is not None
    assert section.html.count("<tr>") == 1 + 8 + 1 and section.html.count("–") == 3 * (8 - 3)


def test_float_runs_are_left_out_where_they_have_nothing() -> None:
    single, both = tiny_runs.float_analysis(), tiny_runs.analysis()
    assert reconstruction([single], Unrendered()) is None and weights([single], Unrendered()) is None
    section = weights([both, single], Unrendered())
    assert section is not None and "Weights of float" not in section.html
    assert representations([both, single], Unrendered()).html.count("<figure>") == 3
