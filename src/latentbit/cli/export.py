"""`latentbit export`."""

from pathlib import Path

import typer


def export(
    model: Path = typer.Argument(..., help="A .lbit file, or zoo:NAME."),
    to: str = typer.Option(..., help="c, html, onnx, openvino or qonnx."),
    out: Path | None = typer.Option(
        None, "--out", "-o", help="File to write, or folder for --to c. By default beside the model."
    ),
    input: str | None = typer.Option(
        None, help="[c] f32: images normalised as in training (default). u8: pixels as bytes."
    ),
    ram: str | None = typer.Option(None, help="[c] Refuse a network that needs more RAM, such as 64k."),
    real: str | None = typer.Option(
        None,
        help="[c] 32: maps of real values as floats (default). 16: half of the RAM; how far logits move is printed.",
    ),
    name: str | None = typer.Option(None, help="[c] Prefix of files and functions. Default: net."),
    weights: str | None = typer.Option(
        None, help="[onnx] bits: the file is as small as ours (default). float: plain convolutions."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Turn a packed network into what other systems run: C for microcontrollers, ONNX, OpenVINO, a web page.

    Each target is checked against the engine where what runs it is installed. A layer that a target cannot
    express is refused by name, with the targets that can.

    [bold]Examples[/bold]

    latentbit export model.lbit --to c -o firmware/ --input u8 --ram 64k

    latentbit export model.lbit --to c -o firmware/ --input u8 --real 16

    latentbit export model.lbit --to onnx -o model.onnx

    latentbit export model.lbit --to onnx -o plain.onnx --weights float

    latentbit export model.lbit --to openvino -o model.xml

    latentbit export model.lbit --to html -o net.html
    """
    import json

    from latentbit import export as exporting
    from latentbit import lbit, zoo

    cls = exporting.find(to)
    network = lbit.read(model)
    beside = Path(str(model).removeprefix(zoo.PREFIX))  # one of the zoo goes where the user is
    out = out or (beside.parent / "net" if to == "c" else beside.with_suffix(cls.suffix))
    options = {"input": input, "ram": ram, "real": real, "name": name, "weights": weights}
    chosen = {option: value for option, value in options.items() if value is not None}
    if real == "16":
        typer.echo("measuring what 16-bit maps do to the logits ...", err=True)
    report = exporting.export(network, to, out, **chosen)
    typer.echo(json.dumps(report.as_dict(), indent=2) if as_json else report)
