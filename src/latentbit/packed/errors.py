"""The one error of this folder, apart so that every file in it can raise it."""

from latentbit.errors import LatentbitError


class PackedFileError(LatentbitError):
    """A .lbit file, or a network on its way into one, breaks a rule of docs/format.md."""
