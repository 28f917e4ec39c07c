"""`latentbit run`."""

import typer


def run(
    model: str = typer.Argument(..., help="A .lbit file."),
    images: str = typer.Argument(
        ..., help="An image, a folder of images, a folder per class, or digits, cifar10, ..."
    ),
    top: int = typer.Option(5, min=1, help="Number of classes to show per image."),
    threads: int = typer.Option(1, min=1, max=1024, help="Number of threads."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Classify images with a packed network.

    Prints the most probable classes of each image, or the accuracy if the classes are known.

    [bold]Examples[/bold]

    latentbit run model.lbit cat.png

    latentbit run model.lbit photos/ --top 1

    latentbit run model.lbit photos_by_class/ --json

    latentbit run model.lbit cifar10 --threads 2
    """
    from pathlib import Path

    from latentbit import engine

    net = engine.load(model, threads=threads)
    path = Path(images)
    if path.exists():
        from latentbit.engine.classify import classify

        answers = classify(net, path, top)
    else:  # only a data set needs torch
        from latentbit.packing.score import score_dataset

        answers = iter([score_dataset(net, images)])
    for answer in answers:
        typer.echo(answer.as_json() if as_json else answer)
