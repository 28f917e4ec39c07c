"""`latentbit pack`."""

from pathlib import Path
from typing import Literal

import typer

from latentbit.cli import TrustCode


def pack(
    run: Path = typer.Argument(..., help="Run directory of `latentbit train`."),
    out: Path | None = typer.Option(None, "--out", "-o", help="File to write; RUN/model.lbit by default."),
    which: Literal["best", "last"] | None = typer.Option(
        None, help="Which network of the run. Default: best if validation images chose it, else last."
    ),
    float_bits: int = typer.Option(32, help="Bits of the layers that stay real: 32, 16 or 8."),
    stem_bits: int = typer.Option(
        0, help="The same for the first layer alone; 8 runs in integers on images. 0: as --float-bits."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    trust_code: TrustCode = False,
) -> None:
    """Turn a trained network into a .lbit file of true bits, check it against PyTorch, and show what it weighs.

    [bold]Examples[/bold]

    latentbit pack runs/cifar10_resnet18_compact -o model.lbit

    latentbit pack runs/imagenet_resnet18 -o small.lbit --float-bits 8

    latentbit pack runs/imagenet_resnet18 -o fast.lbit --stem-bits 8

    A run can be packed on a machine that does not have its data set. The network is then checked on noise.
    """
    import json

    from rich.console import Console

    from latentbit import lbit
    from latentbit.lbit.size_table import size_table
    from latentbit.lbit.sizes import weigh
    from latentbit.packing.pack_run import pack_run

    if float_bits not in (8, 16, 32):
        raise typer.BadParameter(f"--float-bits is 32, 16 or 8, not {float_bits}")
    if stem_bits not in (0, 8, 16, 32):
        raise typer.BadParameter(f"--stem-bits is 32, 16 or 8, or 0 for --float-bits, not {stem_bits}")
    out = out or run / "model.lbit"
    result = pack_run(run, which=which, float_bits=float_bits, stem_bits=stem_bits or None)
    lbit.write(result.network, out)
    sizes = weigh(result.network)
    if as_json:
        typer.echo(json.dumps({"file": str(out), **sizes.as_dict(), **result.as_dict()}, indent=2))
        return
    Console().print(size_table(sizes))
    n = result.with_torch.n_images
    typer.echo(f"engine and PyTorch      {result.with_torch}")
    if result.missing:
        typer.echo(f"checked on noise        no test images here: {result.missing}")
    if result.with_float32 is not None:
        fewer = f"{float_bits:2}" if stem_bits in (0, float_bits) else f"{stem_bits} in the stem"
        typer.echo(f"{f'{fewer} and 32 float bits':23} {result.with_float32}")
    if result.accuracy is not None:
        typer.echo(f"accuracy                {result.accuracy:.2%} of {n} test images, {result.epoch}")
    typer.echo(f"written                 {out} ({sizes.file_bytes:,} bytes, FP32 {sizes.fp32_bytes:,})")
