"""`latentbit run`."""

import typer


def run(
    model: str = typer.Argument(..., help="A .lbit file, or zoo:NAME."),
    images: str = typer.Argument(
        ..., help="An image, a folder of images, a folder per class, or digits, cifar10, ..."
    ),
    top: int = typer.Option(5, min=1, help="Number of classes to show per image."),
    threads: int = typer.Option(1, min=1, max=1024, help="Number of threads."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Classify images with a packed network.

    Prints the most probable classes of each image, or the accuracy if the classes are known. Where the output is a map
    (segmentation), prints the share of pixels of each class; --json has the class of every pixel. An image that cannot
    be used is named on stderr; the others get their answers, and the command ends with status 1.

    [bold]Examples[/bold]

    latentbit run model.lbit cat.png

    latentbit run zoo:digits photos/ --top 1

    latentbit run model.lbit photos_by_class/ --json

    latentbit run model.lbit cifar10 --threads 2
    """
    from pathlib import Path

    from latentbit import engine
    from latentbit.images import ImageError

    path = Path(images)
    net = engine.load(model, threads=threads, check_finite=not path.exists())
    if path.exists():
        from latentbit.engine.classify import Failed, classify

        n_failed = 0
        for answer in classify(net, path, top):
            failed = isinstance(answer, Failed)
            n_failed += failed
            typer.echo(answer.as_json() if as_json else answer, err=failed and not as_json)
        if n_failed:
            raise ImageError(f"{n_failed} image(s) got no answer; each is named above with its reason")
    else:  # only a data set needs torch
        from latentbit.packing.score import score_dataset

        score = score_dataset(net, images)
        typer.echo(score.as_json() if as_json else score)
