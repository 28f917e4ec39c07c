"""B, W in stale statistics and W-dagger of a run over the whole test set (paper, Table 1)."""

from typing import Any

from latentbit.analyze.trained import Track, Trained, silent
from latentbit.training.evaluate import Score, Scores, score
from latentbit.views import stale_view

NAMES = {"B": "binary", "W": "stale", "W_dagger": "latent"}
"""Key in the JSON -> field of Scores."""


def accuracies(trained: Trained, binary: Score | None = None, track: Track = silent) -> Scores:
    """All three; `binary` where B is already known."""
    if binary is None:
        binary = score(trained.model, trained.test(track, "B on the test set"))
    if trained.views is None:
        return Scores(binary)
    stale = score(stale_view(trained.model), trained.test(track, "W on the test set"))
    latent = score(trained.views.latent, trained.test(track, "W† on the test set"))
    return Scores(binary, stale, latent)


def as_numbers(scores: Scores) -> dict[str, dict[str, Any]]:
    """Correct answers, total, accuracy and 95 % interval under B, W and W_dagger, where there are such."""
    found = {key: getattr(scores, field) for key, field in NAMES.items()}
    return {
        key: {"correct": s.correct, "total": s.total, "accuracy": s.accuracy, "interval": list(s.interval())}
        for key, s in found.items()
        if s is not None
    }
