"""Recipes: what a run depends on. The fields and how they are read, and the recipes that come with the package."""

from latentbit.recipes.recipe import (
    FOLDER,
    SECTIONS,
    Data,
    Loss,
    Method,
    Model,
    Optim,
    Recipe,
    RecipeError,
    Run,
    dumps,
    header,
    load,
    loads,
    names,
    path_of,
)

__all__ = [
    "FOLDER",
    "SECTIONS",
    "Data",
    "Loss",
    "Method",
    "Model",
    "Optim",
    "Recipe",
    "RecipeError",
    "Run",
    "dumps",
    "header",
    "load",
    "loads",
    "names",
    "path_of",
]
