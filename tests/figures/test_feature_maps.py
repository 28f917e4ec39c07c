import numpy as np
import tiny_runs

from latentbit.figures.feature_maps import rows


def test_three_rows_of_channels_and_the_image() -> None:
    analysis = tiny_runs.analysis()
    pictures = [image.get_array() for image in rows(analysis, columns=4).axes[0].images]
    assert len(pictures) == 1 + 3 * 4
    assert np.array_equal(pictures[0], analysis.arrays["image"])  # type: ignore[arg-type]
    assert np.array_equal(pictures[-1], analysis.arrays["maps_W_dagger"][3])  # type: ignore[arg-type]
