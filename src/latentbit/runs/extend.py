"""More epochs for a run, where that gives what a longer run would have given.

A schedule that falls to 0 at the last epoch depends on how many there are, and so does a method that changes over the
training. With a constant learning rate and any other method, a run that is extended ends with the weights of one that
was begun with all its epochs, bit for bit.
"""

from dataclasses import replace

from latentbit import methods
from latentbit.recipes import Recipe
from latentbit.runs.directory import RunDirectory, RunError
from latentbit.runs.lock import RunLock
from latentbit.runs.obtain import changed_keys


def hindrance(recipe: Recipe) -> str:
    """Why more epochs would not give what a longer run gives; nothing if they would."""
    if recipe.optim.schedule != "constant":
        return (
            f"its learning rate falls to 0 at epoch {recipe.optim.epochs} (schedule = {recipe.optim.schedule!r}), so a "
            "longer run would have had another one from the start"
        )
    method = methods.create(recipe.method.name, recipe.method.options)
    if recipe.model.binarize and method.follows_progress():
        return f"method {recipe.method.name} changes over the {recipe.optim.epochs} epochs of the run"
    return ""


def extend(run: RunDirectory, epochs: int) -> Recipe:
    """Give a run this many epochs in all, in its recipe.toml; RunError where it would be another training."""
    recipe = run.recipe()
    if epochs < recipe.optim.epochs:
        raise RunError(f"{run.path} has {recipe.optim.epochs} epochs: --extend gives it more, not {epochs}")
    if why := hindrance(recipe):
        rest = max(1, epochs - recipe.optim.epochs)
        raise RunError(
            f"{run.path} cannot be extended: {why}. Train anew with epochs={epochs}, or begin a second run from these "
            f"weights: latentbit train {run.path / 'recipe.toml'} start={run.path} epochs={rest}"
        )
    with RunLock(run.path):
        longer = replace(recipe, optim=replace(recipe.optim, epochs=epochs))
        run.rewrite_recipe(longer)
    return run.recipe()


def only_extended(before: Recipe, now: Recipe) -> bool:
    """Whether `now` differs from `before` in nothing but more epochs, which change none that were trained."""
    return (
        changed_keys(before, now) == ["optim.epochs"]
        and now.optim.epochs > before.optim.epochs
        and not hindrance(now)
    )
