"""Exported C, compiled for this machine or a microcontroller, and run: natively or under qemu-system.

A program prints the bits of every logit in hexadecimal, and the time of every image where the emulator has a clock.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from latentbit.export import export
from latentbit.lbit import Network

STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
ARM = "/usr/lib/picolibc/arm-none-eabi/picolibc.specs"
RISCV = "/usr/lib/picolibc/riscv64-unknown-elf/picolibc.specs"


@dataclass(frozen=True)
class Target:
    compiler: str
    machine: list[str]
    flash: tuple[int, int]
    ram: tuple[int, int]
    emulator: list[str]
    hz: int = 1_000_000_000
    """Of the clock that a program reads. Under -icount shift=0 an instruction takes a nanosecond."""

    @property
    def missing(self) -> list[str]:
        """Programs that are not installed."""
        return [name for name in (self.compiler, self.emulator[0]) if shutil.which(name) is None]

    def compile(self, sources: list[Path], program: Path) -> None:
        is_arm = self.compiler.startswith("arm")
        places = {
            "flash": self.flash[0],
            "flash_size": self.flash[1],
            "ram": self.ram[0],
            "ram_size": self.ram[1],
        }
        specs = [f"--specs={ARM if is_arm else RISCV}", "--oslib=semihost"]
        link = [f"-Wl,--defsym=__{name}={value:#x}" for name, value in places.items()]
        command = [self.compiler, *specs, *STRICT, "-O2", *self.machine, *link, *map(str, sources)]
        _call([*command, "-o", str(program)])

    def run(self, program: Path) -> str:
        semihosting = ["-nographic", "-icount", "shift=0", "-semihosting-config", "enable=on,target=native"]
        return _call([*self.emulator, *semihosting, "-kernel", str(program)])


def _arm(
    cpu: str, board: str, flash: int = 0, ram: int = 0x20000000, size: tuple[int, int] = (0x400000, 0x400000)
) -> Target:
    fpu = {
        "cortex-m4": ["-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"],
        "cortex-m7": ["-mfloat-abi=hard", "-mfpu=fpv5-sp-d16"],
        "cortex-m33": ["-mfloat-abi=hard", "-mfpu=fpv5-sp-d16"],
    }.get(cpu, [])
    machine = [f"-mcpu={cpu}", "-mthumb", *fpu]
    hz = {"microbit": 16_000_000, "mps2-an505": 20_000_000}.get(board, 25_000_000)
    return Target(
        "arm-none-eabi-gcc", machine, (flash, size[0]), (ram, size[1]), ["qemu-system-arm", "-M", board], hz
    )


TARGETS = {
    "m0": _arm("cortex-m0", "microbit", size=(0x40000, 0x4000)),
    "m4": _arm("cortex-m4", "mps2-an386"),
    "m7": _arm("cortex-m7", "mps2-an500"),
    "m33": _arm("cortex-m33", "mps2-an505", 0x10000000, 0x38000000),
    "rv32imc": Target(
        "riscv64-unknown-elf-gcc",
        ["-march=rv32imc", "-mabi=ilp32"],
        (0x80000000, 0x400000),
        (0x80400000, 0x400000),
        ["qemu-system-riscv32", "-M", "virt", "-bios", "none"],
    ),
}

MAIN = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net.h"
@CLOCK
static const @KIND images[@N][NET_INPUTS] = {
@IMAGES
};

int main(void)
{
    static float logits[NET_OUTPUTS];
    (void)now(); /* starts the clock */
    for (int i = 0; i < @N; i++) {
        const unsigned long before = now();
        net_run(images[i], logits);
        printf("time %lu\\n", now() - before);
        for (int c = 0; c < NET_OUTPUTS; c++) {
            uint32_t bits;
            memcpy(&bits, &logits[c], 4);
            printf("%08lx ", (unsigned long)bits);
        }
        printf("\\nclass %d\\n", net_class(logits));
    }
    exit(0); /* a return would wait forever: nobody called */
}
"""

SYSTICK = """
static unsigned long now(void)
{
    volatile uint32_t *const systick = (volatile uint32_t *)0xE000E010u;
    static int started;
    if (!started) {
        started = 1;
        systick[1] = 0xffffffu;
        systick[2] = 0;
        systick[0] = 5;
        while (systick[2] == 0) {
        }
    }
    return 0xffffffu - systick[2];
}
"""
MCYCLE = """
static unsigned long now(void)
{
    unsigned long count;
    __asm__ volatile(".option arch, +zicsr\\n\\tcsrr %0, mcycle" : "=r"(count));
    return count;
}
"""
NOTHING = """
static unsigned long now(void)
{
    return 0;
}
"""


@dataclass(frozen=True)
class Result:
    logits: np.ndarray
    classes: list[int]
    instructions: list[int]


def run_c(network: Network, images: np.ndarray, folder: Path, target: str = "host", **options: str) -> Result:
    """Export, compile without warnings, run; the logits of the images."""
    export(network, "c", folder, **options)
    clock = {"host": NOTHING, "rv32imc": MCYCLE}.get(target, SYSTICK)
    if images.dtype == np.uint8:
        images = images.transpose(0, 2, 3, 1)
    rows = "\n".join("    {" + ", ".join(_c_number(v) for v in image.ravel()) + "}," for image in images)
    kind = "uint8_t" if images.dtype == np.uint8 else "float"
    main = MAIN.replace("@CLOCK", clock).replace("@KIND", kind).replace("@N", str(len(images)))
    (folder / "main.c").write_text(main.replace("@IMAGES", rows))
    sources, program = [folder / "net.c", folder / "main.c"], folder / f"{target}.elf"
    if target == "host":
        _call(
            [
                "cc",
                *STRICT,
                "-O0",
                "-fsanitize=undefined",
                "-fno-sanitize-recover",
                *map(str, sources),
                "-o",
                str(program),
            ]
        )
        printed = _call([str(program)])
    else:
        TARGETS[target].compile(sources, program)
        printed = TARGETS[target].run(program)
    words = [int(word, 16) for word in re.findall(r"\b[0-9a-f]{8}\b", printed)]
    logits = np.array(words, np.uint32).view(np.float32).reshape(len(images), -1)
    classes = [int(number) for number in re.findall(r"class (\d+)", printed)]
    per_tick = 1e9 / TARGETS[target].hz if target in TARGETS else 0.0
    instructions = [round(int(number) * per_tick) for number in re.findall(r"time (\d+)", printed)]
    return Result(logits, classes, instructions)


def _c_number(value: object) -> str:
    return str(value) if isinstance(value, np.uint8) else f"{float(value).hex()}f"  # type: ignore[arg-type]


def _call(command: list[str]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{' '.join(command)}\n{(done.stdout + done.stderr)[-2000:]}"
    return done.stdout + done.stderr  # semihosting writes to either
