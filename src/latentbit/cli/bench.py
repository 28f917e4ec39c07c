"""`latentbit bench`."""

from pathlib import Path

import typer


def bench(
    model: Path = typer.Argument(..., help="A .lbit file, or zoo:NAME."),
    threads: list[int] = typer.Option(
        [1, 2], "--threads", "-t", help="Thread counts to time; can be repeated."
    ),
    batch: list[int] = typer.Option(
        [1, 8, 32, 128], "--batch", "-b", min=1, max=4096, help="Images per call; can be repeated."
    ),
    seconds: float = typer.Option(1.0, min=0.01, help="Seconds to spend on each row of the table."),
    in_bytes: bool = typer.Option(False, "--bytes", help="Images as bytes, which the engine normalises."),
    layers: bool = typer.Option(True, help="Show where the time goes, step by step."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Time a packed network on this CPU: latency and images per second, loading and memory, a profile of its steps.

    [bold]Examples[/bold]

    latentbit bench model.lbit

    latentbit bench model.lbit --threads 1 --threads 4 --batch 16 --no-layers

    latentbit bench model.lbit --batch 1 --bytes
    """
    import dataclasses
    import json

    from rich.console import Console
    from rich.table import Table

    from latentbit.engine import Engine
    from latentbit.engine.speed import latency, loading, noise, peak_bytes
    from latentbit.lbit import read

    loaded = loading(model)
    network = read(model)
    engines = [Engine(network, threads=n) for n in threads]
    found = [latency(engine, n, seconds, in_bytes) for n in batch for engine in engines]
    first = engines[0]
    profile = first.profile(noise(network, batch[0], in_bytes), layout="nchw") if layers else []
    if as_json:
        rows = [dataclasses.asdict(row) | {"images_per_second": row.images_per_second} for row in found]
        steps = [
            {"name": name, "op": op, "microseconds": us, "kernels": isa}
            for (name, op, us), isa in zip(profile, first.step_kernels if profile else [], strict=True)
        ]
        load = {
            "file_bytes": loaded.file_bytes,
            "load_ms": loaded.least,
            "engine_bytes": first.n_bytes,
            "peak_rss_bytes": peak_bytes(),
        }
        typer.echo(json.dumps({"isa": first.isa} | load | {"latency_ms": rows, "steps": steps}, indent=2))
        return
    console = Console()
    kind = "bytes" if in_bytes else "float32"
    if in_bytes and first.integer_stem:
        kind += ", stem in integers"
    table = Table(title=f"{model.name}, kernels {first.isa}, images {kind}", title_justify="left")
    for heading in ("batch", "threads", "min ms", "median ms", "p95 ms", "images/s"):
        table.add_column(heading, justify="right")
    for row in found:
        times = (f"{value:.3f}" for value in (row.least, row.median, row.p95))
        table.add_row(str(row.batch), str(row.threads), *times, f"{row.images_per_second:,.0f}")
    console.print(table)
    held = ", ".join(f"{what} {_megabytes(n)}" for what, n in first.n_bytes.items())
    console.print(f"load    {loaded.least:.2f} ms (least of 5, a file of {_megabytes(loaded.file_bytes)})")
    console.print(
        f"memory  {held} ({first.threads} thread(s)); peak RSS of this process {_megabytes(peak_bytes())}"
    )
    if profile:
        total = sum(us for _, _, us in profile)
        table = Table(title=f"steps, batch {batch[0]}, {first.threads} thread(s)", title_justify="left")
        for heading in ("step", "op", "kernels"):
            table.add_column(heading)
        for heading in ("min us", "share"):
            table.add_column(heading, justify="right")
        for (name, op, us), isa in zip(profile, first.step_kernels, strict=True):
            table.add_row(name, op, isa, f"{us:.1f}", f"{us / total:.1%}")
        console.print(table)


def _megabytes(n: int) -> str:
    return f"{n / 1e6:.2f} MB"
