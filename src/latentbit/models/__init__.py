"""The paper's networks as plain real-valued nn.*; `latentbit.binarize_` makes them binary.

Every file here is imported, and each function marked `@network` in it is a network that `create` knows.
"""

import importlib
import pkgutil

from latentbit.models.registry import UnknownNetwork, create, names

for _found in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_found.name}")

__all__ = ["UnknownNetwork", "create", "names"]
