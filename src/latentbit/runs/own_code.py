"""Files of the user's own, copied into the run: a run that is moved finds them, and edits elsewhere change nothing.

RUN/code/my_net.py     and the files of its folder that it imports; recipe.toml then says code/my_net.py:make_net
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from latentbit.atomic import atomic_write
from latentbit.errors import LatentbitError
from latentbit.imports import digest, files_of, in_file
from latentbit.recipes import Recipe
from latentbit.recipes.recipe import code_named

FOLDER = "code"


class CannotKeep(LatentbitError):
    """Two files that would have one name in the run."""


def keep(recipe: Recipe, run: Path) -> tuple[Recipe, dict[str, str]]:
    """Copy the files that a recipe names into a run; gives the recipe that names the copies, and their digests."""
    digests: dict[str, str] = {}
    for (section, key), name in code_named(recipe).items():
        if not in_file(name):
            continue
        file, *beside = files_of(name)
        for source in (file, *beside):
            place = f"{FOLDER}/{source.relative_to(file.parent).as_posix()}"
            if digests.get(place, digest(source)) != digest(source):
                raise CannotKeep(f"two different files are called {place} in the run: rename {source}")
            digests[place] = digest(source)
            (run / place).parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(run / place) as copy:
                copy.write(source.read_bytes())
        changed = {key: f"{FOLDER}/{file.name}:{name.rpartition(':')[2]}"}
        recipe = replace(recipe, **{section: replace(getattr(recipe, section), **changed)})
    return recipe, digests


def changed(run: Path, digests: Mapping[str, Any]) -> list[str]:
    """Copies that are not what they were when the run began."""
    return [
        place for place, was in digests.items() if not (run / place).is_file() or digest(run / place) != was
    ]
