import torch
from views.test_two_view import binary_net

from latentbit import data, recipes
from latentbit.score import Score
from latentbit.training.evaluate import Scores, score, scores
from latentbit.views import TwoView


def digits_set() -> data.Dataset:
    return data.open(recipes.Data(dataset="digits", pad=1))


def test_score_counts_and_puts_the_mode_back() -> None:
    model = torch.nn.Linear(2, 2, bias=False)
    model.weight.data = torch.eye(2)
    batches = [
        (torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0])),
        (torch.ones(1, 2), torch.tensor([0])),
    ]
    found = score(model, batches)
    assert (found.correct, found.total) == (2, 3) and model.training


def test_three_numbers_of_a_binary_network_and_one_of_a_real_one() -> None:
    found = scores(binary_net(), digits_set(), recalibrate_batches=2)
    assert found.stale is not None and found.latent is not None
    assert found.binary.total == found.stale.total == found.latent.total == 360
    from test_methods import small_net

    assert scores(small_net(), digits_set()).stale is None


def test_statistics_tracked_in_training_and_collected_anew_give_two_numbers_with_two_names() -> None:
    views = TwoView(binary_net())
    dataset = digits_set()
    for images, _ in dataset.train_batches(0, batch_size=128, seed=0):
        views(images)
    views.eval()
    found = scores(views.binary, dataset, tracked=views.latent)
    assert found.tracked == score(views.latent, dataset.test_batches(64))
    assert found.latent == scores(views.binary, dataset).latent  # whether there is a tracked one or not
    assert [number.name for number in found.named()] == ["B", "W", "W†", "W‡"]


def test_top5_is_counted_where_there_are_many_classes() -> None:
    logits = torch.arange(60.0).repeat(3, 1)
    labels = torch.tensor([59, 55, 54])
    model = torch.nn.Sequential(torch.nn.Linear(60, 60, bias=False))
    model[0].weight.data = torch.eye(60)
    found = score(model, [(logits, labels)])
    assert (found.correct, found.in_top5) == (1, 2) and "top-5 66.67 %" in str(found)


def test_scores_are_named_in_their_order() -> None:
    b, w, dagger = (Score(i, 10) for i in (7, 3, 6))
    assert [(n.name, s) for n, s in Scores(b, w, dagger).named().items()] == [
        ("B", b),
        ("W", w),
        ("W†", dagger),
    ]
    assert [n.metric for n in Scores(b).named()] == ["accuracy_b"]
