"""What a user can mend: every error of ours names the thing at fault and the way out."""


class LatentbitError(Exception):
    """Base of the errors that the command line prints as one line, without a traceback."""
