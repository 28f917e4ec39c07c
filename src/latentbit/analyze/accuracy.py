"""B, W in stale statistics and W-dagger of a run over the whole test set (paper, Table 1)."""

from typing import Any

from latentbit.analyze.trained import Track, Trained, silent
from latentbit.score import Score
from latentbit.training.evaluate import Scores, score
from latentbit.views import stale_view
from latentbit.views.numbers import W_DAGGER, B, Number, W


def accuracies(trained: Trained, binary: Score | None = None, track: Track = silent) -> Scores:
    """All three; `binary` where B is already known."""
    if binary is None:
        binary = score(trained.model, trained.test(track, _doing(B)))
    if trained.views is None:
        return Scores(binary)
    stale = score(stale_view(trained.model), trained.test(track, _doing(W)))
    latent = score(trained.views.latent, trained.test(track, _doing(W_DAGGER)))
    return Scores(binary, stale, latent)


def _doing(number: Number) -> str:
    return f"{number.name} on the test set"


def as_numbers(scores: Scores) -> dict[str, dict[str, Any]]:
    """Correct answers, total, accuracy and 95 % interval under B, W and W_dagger, where there are such."""
    return {
        number.key: {
            "correct": score.correct,
            "total": score.total,
            "accuracy": score.accuracy,
            "interval": list(score.interval()),
        }
        for number, score in scores.named().items()
    }
