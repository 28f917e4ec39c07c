"""`latentbit cost`: parameters, memory and operations of a network, layer by layer."""

from typing import Annotated

import typer

from latentbit.cli import TrustCode


def cost(
    network: Annotated[str, typer.Argument(help="Name of a network, or a run directory.")],
    side: Annotated[
        int | None,
        typer.Option(
            "--input", help="Side of the square input image. Default: the network's own, 32 or 224.", min=1
        ),
    ] = None,
    classes: Annotated[
        int | None, typer.Option(help="Number of classes. Default: the network's own.")
    ] = None,
    channels: Annotated[int, typer.Option(help="Channels of the input image.", min=1)] = 3,
    shortcut: Annotated[str | None, typer.Option(help='ResNet shortcuts: "pool" or "conv".')] = None,
    norm: Annotated[str | None, typer.Option(help='ResNet BatchNorm: "after", "before", "both".')] = None,
    method: Annotated[str, typer.Option(help="Method that binarizes it.")] = "sign",
    real: Annotated[bool, typer.Option("--real", help="Leave every layer real.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    trust_code: TrustCode = False,
) -> None:
    """Count parameters, memory, FLOPs and BOPs of a network for one image.

    \b
    latentbit cost resnet18                                the paper's network, at 224 x 224
    latentbit cost resnet18 --shortcut conv                with real 1x1 shortcuts
    latentbit cost resnet34_standard --real                a real network
    latentbit cost runs/cifar10_resnet18_compact           the network of a run
    latentbit cost resnet18_compact --json                 for programs
    """
    import json
    from pathlib import Path

    from rich.console import Console

    from latentbit.models.cost_tables import summary, tables
    from latentbit.models.registry import own_input
    from latentbit.paper.cost import count_named, count_run, paper_table

    if Path(network).is_dir():
        found = count_run(Path(network))
    else:
        side = side or own_input(network)
        given = {"shortcut": shortcut, "norm": norm}
        options = {key: value for key, value in given.items() if value is not None}
        found = count_named(network, (channels, side, side), classes, None if real else method, options)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
        return
    console = Console()
    for table in tables(found.cost, f"{network}, input {'x'.join(map(str, found.input))}"):
        console.print(table)
    for line in summary(found.cost):
        console.print(line, highlight=False)
    if found.beside:
        console.print(paper_table(found.beside))
