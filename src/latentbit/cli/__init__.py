"""The command line: one file per verb, found by their names. A verb parses, calls one function and exits.

A verb's file holds either a function of its own name or a typer `group` of sub-commands. Heavy imports
stay inside the functions, so that `--help` is instant.
"""

import importlib
import pkgutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    app: typer.Typer
    """All of it; made when it is first asked for."""


def recipe_names(begun: str) -> list[str]:
    """For completion in a shell: recipes whose name begins so."""
    from latentbit import recipes

    return [name for name in recipes.names() if name.startswith(begun)]


def _trust(context: typer.Context, wanted: bool) -> bool:
    if wanted:
        from latentbit.imports import trusting

        context.with_resource(trusting())
    return wanted


TrustCode = Annotated[
    bool,
    typer.Option(
        "--trust-code",
        help="Run the Python code that recipe files and run directories name. Without it only code that is named in "
        "this command runs.",
        callback=_trust,
    ),
]
"""For verbs that build networks or open data. The option acts by itself, whatever the verb does with its value."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from latentbit import __version__

        typer.echo(f"latentbit {__version__}")
        raise typer.Exit()


def _options(
    version: bool = typer.Option(
        False, "--version", help="Print the version and exit.", is_eager=True, callback=_print_version
    ),
) -> None:
    pass


def verbs() -> list[str]:
    """Every verb: the files of this folder."""
    return [found.name for found in pkgutil.iter_modules(__path__)]


def application(chosen: Iterable[str]) -> typer.Typer:
    """The command line with these verbs."""
    made = typer.Typer(
        name="latentbit",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_show_locals=False,
        help="Train binary networks with their latent weights, see what both learned, pack them, run them.",
    )
    made.callback()(_options)
    for name in chosen:
        module = importlib.import_module(f"{__name__}.{name}")
        if hasattr(module, "group"):
            made.add_typer(module.group, name=name)
        else:
            made.command(name)(getattr(module, name))
    return made


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = application(verbs())
    return globals()["app"]


def main() -> None:
    """Run the command line; what the user can fix is one line on stderr, not a traceback."""
    import warnings

    from latentbit.errors import LatentbitError, LatentbitWarning, not_installed

    usual = warnings.showwarning

    def show(message: Any, category: Any, *where: Any, **more: Any) -> None:
        if issubclass(category, LatentbitWarning):
            typer.secho(f"warning: {message}", fg=typer.colors.YELLOW, err=True)
        else:
            usual(message, category, *where, **more)

    warnings.showwarning = show
    known, asked = verbs(), sys.argv[1:2]
    try:
        # With one verb a command starts twice as fast: typer builds a parser for every option of every verb it has.
        application(asked if asked and asked[0] in known else known)()
    except ModuleNotFoundError as error:
        missing = not_installed(error, f"latentbit {' '.join(sys.argv[1:2])}")
        if not isinstance(missing, LatentbitError):
            raise
        _fail(str(missing))
    except LatentbitError as error:
        _fail(str(error))
    except OSError as error:  # of the system: a folder that is gone, a disk that is full
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not _is_memory(str(error)):
            raise
        _fail("not enough memory for this: choose a smaller network, batch_size or image_size")


def _is_memory(text: str) -> bool:
    """Whether a RuntimeError of torch is about memory; it has no class for that on the CPU."""
    return any(words in text for words in ("can't allocate memory", "out of memory", "not enough memory"))


def _fail(reason: str) -> NoReturn:
    typer.secho(f"error: {reason}", fg=typer.colors.RED, err=True)
    raise SystemExit(1) from None
