"""A run in a few lines: what was trained on what, how far it is, how well it does."""

from latentbit.imports import without_folder
from latentbit.runs.directory import WHICH, RunDirectory
from latentbit.runs.lock import holder_of
from latentbit.views.numbers import CHOOSING, IN_TRAINING, NUMBERS


def summary(run: RunDirectory) -> list[str]:
    """Lines of "key  value" about a run. Reads its own files only."""
    recipe, facts, entries, made = run.recipe(), run.facts(), run.metrics(), run.environment()
    method = recipe.method.name if recipe.model.binarize else "none, all layers real"
    loss = recipe.loss.latent if recipe.loss.latent != "none" else "none"
    done = entries[-1]["epoch"] if entries else 0
    state = "finished" if run.finished else f"not finished: latentbit train --resume {run.path}"
    if who := holder_of(run.path):
        state = f"being trained by {who}"
    lines = {
        "recipe": recipe.name,
        "network": f"{without_folder(recipe.model.network)}, method {without_folder(method)}, "
        f"latent loss {without_folder(loss)}, seed {recipe.run.seed}",
        "data": f"{facts.name}: {facts.n_train:,} training and {facts.n_test:,} test images of "
        f"{'x'.join(map(str, facts.input_shape))}, {facts.num_classes} classes, {facts.checksum[:19]}",
        "epochs": f"{done} of {recipe.optim.epochs}, {state}",
    }
    scored = [entry for entry in entries if NUMBERS[0].metric in entry]
    if scored:
        last = scored[-1]
        named = (f"{n.name} {100 * last[n.metric]:.2f} %" for n in IN_TRAINING if n.metric in last)
        lines["accuracy"] = f"{', '.join(named)} on the test images after epoch {last['epoch']}"
        chosen = max(
            (entry for entry in entries if CHOOSING in entry), key=lambda e: e[CHOOSING], default=None
        )
        if chosen is not None:
            lines["best epoch"] = (
                f"{chosen['epoch']}, chosen on validation images ({100 * chosen[CHOOSING]:.2f} %): "
                f"{NUMBERS[0].name} {100 * chosen[NUMBERS[0].metric]:.2f} % on the test images"
            )
    files = [run.path / f"{which}.safetensors" for which in WHICH]
    lines["weights"] = ", ".join(file.name for file in files if file.is_file()) or "none yet"
    if made:
        lines["made by"] = f"latentbit {made.get('latentbit')}, torch {made.get('torch')}, {made.get('cpu')}"
    return [f"{key:<10} {value}" for key, value in lines.items()]
