"""`latentbit run`."""

import typer


def run(
    model: str = typer.Argument(..., help="A .lbit file."),
    images: str = typer.Argument(
        ..., help="An image, a folder of images, a folder per class, or digits, cifar10, ..."
    ),
    top: int = typer.Option(5, min=1, help="How many classes to show for an image."),
    threads: int = typer.Option(1, min=1, max=1024, help="Threads of the engine."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Classify images with a packed network: the most probable classes, or the accuracy where classes are known.

    [bold]Examples[/bold]

    latentbit run model.lbit cat.png

    latentbit run model.lbit photos/ --top 1

    latentbit run model.lbit photos_by_class/ --json

    latentbit run model.lbit cifar10 --threads 2
    """
    import json
    from pathlib import Path

    from latentbit import engine
    from latentbit.engine import classify

    net = engine.load(model, threads=threads)
    path = Path(images)
    if not path.exists():
        correct, total = classify.score_dataset(net, images)
    elif path.is_dir() and (labelled := classify.labelled_images(path, net.network)):
        answers = classify.guesses(net, [file for file, _ in labelled], top=1)
        correct = sum(guess.classes[0] == name for guess, (_, name) in zip(answers, labelled, strict=True))
        total = len(labelled)
    else:
        paths = classify.images_in(path) if path.is_dir() else [images]
        if not paths:
            raise classify.ImageError(f"{images} holds no image ({', '.join(sorted(classify.SUFFIXES))})")
        for guess in classify.guesses(net, paths, top):
            if as_json:
                typer.echo(json.dumps(vars(guess)))
                continue
            typer.echo(guess.path)
            for name, probability in zip(guess.classes, guess.probabilities, strict=True):
                typer.echo(f"  {probability:7.2%}  {name}")
        return
    if as_json:
        typer.echo(json.dumps({"correct": correct, "total": total, "accuracy": correct / total}))
    else:
        typer.echo(f"accuracy {correct / total:.2%} ({correct} of {total} images)")
