"""`latentbit bench`."""

from pathlib import Path

import typer


def bench(
    model: Path = typer.Argument(..., help="A .lbit file."),
    threads: list[int] = typer.Option(
        [1, 2], "--threads", "-t", help="Thread counts to time; can be repeated."
    ),
    batch: int = typer.Option(1, min=1, max=4096, help="Images per call."),
    seconds: float = typer.Option(1.0, min=0.01, help="Seconds to spend on each thread count."),
    layers: bool = typer.Option(True, help="Show where the time goes, step by step."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Time a packed network on this CPU: latency per thread count, and a profile of its steps.

    [bold]Examples[/bold]

    latentbit bench model.lbit

    latentbit bench model.lbit --threads 1 --threads 4 --batch 16 --no-layers
    """
    import dataclasses
    import json

    from rich.console import Console
    from rich.table import Table

    from latentbit.engine import Engine
    from latentbit.engine.speed import latency, noise
    from latentbit.lbit import read

    network = read(model)
    engines = [Engine(network, threads=n) for n in threads]
    found = [latency(engine, batch, seconds) for engine in engines]
    profile = engines[0].profile(noise(network, batch)) if layers else []
    if as_json:
        rows = [dataclasses.asdict(row) | {"images_per_second": row.images_per_second} for row in found]
        steps = [{"name": name, "op": op, "microseconds": us} for name, op, us in profile]
        typer.echo(json.dumps({"isa": engines[0].isa, "latency_ms": rows, "steps": steps}, indent=2))
        return
    console = Console()
    table = Table(title=f"{model.name}, batch {batch}, kernels {engines[0].isa}", title_justify="left")
    for heading in ("threads", "min ms", "median ms", "p95 ms", "images/s"):
        table.add_column(heading, justify="right")
    for row in found:
        times = (f"{value:.3f}" for value in (row.least, row.median, row.p95))
        table.add_row(str(row.threads), *times, f"{row.images_per_second:,.0f}")
    console.print(table)
    if profile:
        total = sum(us for _, _, us in profile)
        table = Table(title=f"steps, {engines[0].threads} thread(s)", title_justify="left")
        for heading in ("step", "op"):
            table.add_column(heading)
        for heading in ("min us", "share"):
            table.add_column(heading, justify="right")
        for name, op, us in profile:
            table.add_row(name, op, f"{us:.1f}", f"{us / total:.1%}")
        console.print(table)
