"""The one error of this folder, apart so that every file in it can raise it."""

from latentbit.errors import LatentbitError


class CannotPack(LatentbitError):
    """Something in the model has no place in a packed network; names the module and the way out."""
