"""What net.c contains: only the functions that the network needs, constants once, a row per step."""

import re
from pathlib import Path

from lbit_networks import block_network, compact_network

from latentbit.export import export


def source(folder: Path, **options: str) -> str:
    export(compact_network(), "c", folder, **options)
    return (folder / "net.c").read_text()


def test_only_what_the_network_needs(tmp_path: Path) -> None:
    text = source(tmp_path)
    assert "static void binary_conv(" in text and "static void finish_add_prelu_keep_sign_at(" in text
    for unused in (
        "binary_conv_bits",
        "avg_pool_bits",
        "flatten",
        "hardtanh",
        "concat",
        "malloc",
        "#include <math",
    ):
        assert unused not in text


def test_every_function_is_used(tmp_path: Path) -> None:
    text = source(tmp_path)
    for name in re.findall(r"^static (?:inline )?[\w ]+?[ *](\w+)\(", text, re.M):
        assert len(re.findall(rf"\b{name}\b", text)) > 1, name


def test_a_row_per_step_with_name_and_shapes(tmp_path: Path) -> None:
    text = source(tmp_path)
    assert "/* stem, stages.0.0.sign: conv, 1x8x8 -> 16x8x8 */" in text
    note = "/* stages.1.0.conv, stages.1.0.add, stages.1.0, stages.1.1.sign: binary_conv, 16x8x8 -> 32x4x4 */"
    assert note in text
    assert (
        text.count(".run = ") == 1 + 12 + 2 + 2
    )  # stem, convolutions, pools of shortcuts, average and classifier


def test_flash_counts_the_constants(tmp_path: Path) -> None:
    report = export(block_network(), "c", tmp_path)
    floats = 16 * 27 + 16 + 32 * 3
    assert report.data["flash"] >= 4 * (floats + 32 * 5)
    as_bytes = export(block_network(), "c", tmp_path, input="u8")
    assert as_bytes.data["flash"] >= report.data["flash"] + 3 * 256 * 4
