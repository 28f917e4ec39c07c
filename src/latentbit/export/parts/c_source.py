"""The text of net.h and net.c: arrays of weights, the functions that the network needs, the table of layers.

The functions are the files in c/; those made here depend on the network: what a step does to each value that it makes.
"""

from pathlib import Path
from typing import Any

import numpy as np

from latentbit.export.parts.c_plan import Plan, Step, Value, n_words
from latentbit.export.parts.c_text import Names, array, comment, number, string
from latentbit.export.parts.macs import real_weight
from latentbit.lbit import Layer, Network, unpack_signs

PARTS = Path(__file__).parent / "c"

WIDEST = 6
"""So many words are counted by a function of their own, which keeps them in registers."""
NEEDS = {
    "conv": ("run_conv",),
    "binary_conv": ("taps", "count_bits", "run_binary_conv"),
    "binary_conv_bits": ("taps", "count_bits", "run_binary_conv_bits"),
    "max_pool": ("taps", "run_max_pool"),
    "bits_pool": ("taps", "run_bits_pool"),
    "avg_pool": ("taps", "run_avg_pool"),
    "flatten": ("run_flatten",),
    "flatten_bits": ("run_flatten_bits",),
    "concat": ("run_concat",),
    "each_pixel": ("run_each_pixel",),
    "read_image": ("run_read_image",),
}

ORDER = (
    "taps", "count_bits", "gather_bits", "count_in_bits", "count_in_words",
    "run_binary_conv", "run_binary_conv_bits", "gather_image", "gather_real", "run_conv",
    "run_max_pool", "run_bits_pool", "run_avg_pool", "run_flatten", "run_flatten_bits", "run_concat",
    "run_each_pixel", "run_each_pixel_16", "run_read_image",
)  # fmt: skip
"""In which order functions are written: those that others call come first."""

GATHER = "const struct layer *l, const struct memory *m, int oy, int ox, int channel, int n, float *window"
FINISH = "const struct layer *l, const struct memory *m, const float *y, int pixel"
COUNT = "const struct layer *l, const uint32_t *map, int oy, int ox, int group, uint32_t *row, int32_t *dots"
ROWS = "const uint32_t *x, const uint32_t *w, int n, int stride, int rows, int32_t *dots"
ROWS_INSIDE = ROWS.replace("*x, ", "*x, const uint32_t *mask, ")
DISPATCHES = """/*
 * Takes from each dot product twice the number of bits in which n words of x differ from a row of weights. The rows
 * are `stride` words apart.
 */"""
DISPATCHES_INSIDE = "/* The same at the border of a map, where only the bits of the mask count. */"
FIELDS = {
    "run": "void (*run)(const struct layer *l, const struct memory *m);",
    "finish": f"void (*finish)({FINISH});",
    "gather": f"void (*gather)({GATHER});",
    "count": f"void (*count)({COUNT});",
    "in": "int in; /* where the input is: from the start of the arena, in words of bits or in real values */",
    "in_channels": "int in_channels;",
    "in_h": "int in_h;",
    "in_w": "int in_w;",
    "channels": "int channels; /* of the output */",
    "out_h": "int out_h;",
    "out_w": "int out_w;",
    "kernel_h": "int kernel_h;",
    "kernel_w": "int kernel_w;",
    "stride_h": "int stride_h;",
    "stride_w": "int stride_w;",
    "pad_top": "int pad_top;",
    "pad_left": "int pad_left;",
    "dilation_h": "int dilation_h;",
    "dilation_w": "int dilation_w;",
    "padded_h": "int padded_h; /* of a mean that counts the padding, else 0 */",
    "padded_w": "int padded_w;",
    "groups": "int groups;",
    "row_words": "int row_words; /* of the bits that one output sees */",
    "first_channel": "int first_channel;",
    "weight": "const float *weight;",
    "weights": "const uint32_t *weights; /* a bit each, 1 is -1 */",
    "scale": "const float *scale;",
    "bias": "const float *bias;",
    "dot_threshold": "const int32_t *dot_threshold;",
    "slope": "const float *slope;",
    "low": "float low;",
    "high": "float high;",
    "threshold": "const float *threshold;",
    "flip": "const uint32_t *flip;",
    "residual": "int residual; /* what is added */",
    "residual_channels": "int residual_channels;",
    "real": "int real; /* where the output is, as real values */",
    "bits": "int bits; /* where the output is, as signs: 32 channels in a word, 1 is -1 */",
    "scratch": "int scratch;",
}
"""Of a row in the table, in the order in which they are declared."""


class Source:
    def __init__(
        self, network: Network, plan: Plan, name: str, input: str, arena_bytes: int, real_bits: int = 32
    ) -> None:
        self.network, self.plan, self.name, self.input = network, plan, name, input
        self.real_bits = real_bits
        self.arena_words = arena_bytes // 4
        self.names = Names()
        self.arrays: list[str] = []
        self.known: dict[bytes, str] = {}
        self.flash_bytes = 0
        self.finishes: dict[str, str] = {}
        self.parts: dict[str, None] = {}
        self.runs: set[int] = set()
        self.runs_inside: set[int] = set()
        self.rows = [row for step in plan.steps for row in self._rows(step)]
        pointers = sum(len(fields) for _, fields in self.rows)
        self.used = [field for field in FIELDS if any(field in fields for _, fields in self.rows)]
        self.flash_bytes += 4 * len(self.used) * len(self.rows) if pointers else 0

    # net.h

    def header(self) -> str:
        channels, height, width = self.network.input_shape
        guard, N = f"{self.name.upper()}_H", self.name.upper()
        n, n_pixels = self.network.n_outputs, channels * height * width
        if self.input == "u8":
            image = f"const uint8_t image[{N}_INPUTS]"
            layout = (
                f"{height} rows of {width} pixels of {channels} byte(s), as cameras and image files have them; "
                "mean and std of the training are folded in"
            )
        else:
            image = f"const float image[{N}_INPUTS]"
            layout = f"{channels} plane(s) of {height} rows of {width} values, normalised as in training{self._norm()}"
        return f"""/*
 * A packed binary network, written by `latentbit export --to c`.
 *
 * Input:  {comment(layout)}.
 * Output: {n} logits; the class is that of the largest.
 */
#ifndef {guard}
#define {guard}

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

#define {N}_INPUTS {n_pixels} /* {channels} x {height} x {width} */
#define {N}_OUTPUTS {n}
#define {N}_ARENA_BYTES {4 * self.arena_words}

/* The names of the classes. */
extern const char *const {self.name}_classes[{N}_OUTPUTS];

/*
 * Runs the network in memory of the caller: {N}_ARENA_BYTES, aligned to 4, which may be used for anything else
 * between two calls.
 */
void {self.name}_run_in(void *arena, {image}, float logits[{N}_OUTPUTS]);

/*
 * The same in an arena of its own, so not for several threads at a time. It is not there if {self.name}.c is compiled
 * with -D{N}_NO_ARENA.
 */
void {self.name}_run({image}, float logits[{N}_OUTPUTS]);

/* The index of the largest logit. */
int {self.name}_class(const float logits[{N}_OUTPUTS]);

#ifdef __cplusplus
}}
#endif

#endif
"""

    def _norm(self) -> str:
        if self.network.mean is None and self.network.std is None:
            return ""
        mean = ", ".join(f"{v:g}" for v in self.network.mean or ())
        std = ", ".join(f"{v:g}" for v in self.network.std or ())
        return f": (pixel / 255 - mean) / std, mean {mean}, std {std}"

    # net.c

    def code(self) -> str:
        N, pieces = self.name.upper(), []
        if "gather_image" in self.parts or "run_read_image" in self.parts:
            pieces.append(self._pixel())
        for part in sorted(self.parts, key=ORDER.index):
            pieces.append((PARTS / f"{part}.c").read_text(encoding="ascii"))
            if part == "count_bits":
                pieces.append(_counters(self.runs, self.runs_inside))
        # What finishes a value is called through the table, so its place among the functions is free.
        pieces += self.finishes.values()
        pieces += self.arrays
        pieces.append(self._table())
        pieces.append(self._run(N))
        top = [self._top(), self._structs()]
        if any("load(" in piece for piece in pieces):
            top.append((PARTS / f"real_{self.real_bits}.c").read_text(encoding="ascii"))
        return "\n".join(top + pieces)

    def _top(self) -> str:
        shape = " x ".join(map(str, self.network.input_shape))
        return f"""/*
 * A packed binary network, written by `latentbit export --to c`: {shape} -> {self.network.n_outputs}.
 *
 * Maps lie in the arena pixel by pixel, channels innermost: real values in {self.real_bits} bit, signs as bits, 32
 * channels in a word, where 1 means -1. Two rows of n signs that differ in d bits have the dot product n - 2 d.
 *
 * Compile as C99 (or with -ffp-contract=off) and without -ffast-math: the logits are then the same on every machine.
 */
#include "{self.name}.h"
"""

    def _structs(self) -> str:
        kind = "uint8_t" if self.input == "u8" else "float"
        fields = "\n".join(f"    {FIELDS[field]}" for field in self.used)
        return f"""typedef {"uint16_t" if self.real_bits == 16 else "float"} real_t; /* a value of a map */

struct layer;

struct memory {{
    const {kind} *image;
    real_t *maps; /* the arena, seen as what lies there */
    float *real;
    uint32_t *bits;
    int32_t *dots;
}};

struct layer {{
{fields}
}};
"""

    def _pixel(self) -> str:
        channels, height, width = self.network.input_shape
        if self.input == "f32":
            return f"""/* One value of the image. */
static inline float pixel(const struct memory *m, int channel, int position)
{{
    return m->image[channel * {height * width} + position];
}}
"""
        mean = np.asarray(self.network.mean or [0.0] * channels, np.float32)
        std = np.asarray(self.network.std or [1.0] * channels, np.float32)
        levels = np.arange(256, dtype=np.float32) / np.float32(255)
        values = np.concatenate([(levels - mean[c]) / std[c] for c in range(channels)])
        self.flash_bytes += values.nbytes
        table = array("float", "pixel_values", map(number, values), f"{channels} * 256")
        return f"""/* What each byte is worth in each channel: (byte / 255 - mean) / std. */
{table}
/* One value of the image. */
static inline float pixel(const struct memory *m, int channel, int position)
{{
    return pixel_values[channel * 256 + m->image[position * {channels} + channel]];
}}
"""

    def _table(self) -> str:
        rows = []
        for note, fields in self.rows:
            lines, line = [], "       "
            for field, value in fields.items():
                text = f" .{field} = {value},"
                if len(line) + len(text) > 116:
                    lines.append(line)
                    line = "       "
                line += text
            lines.append(line)
            rows.append(f"    {{ /* {comment(note)} */\n" + "\n".join(lines) + "\n    },")
        return (
            "/* The layers in the order in which they run. */\nstatic const struct layer layers[] = {\n"
            + ("\n".join(rows) + "\n};\n")
        )

    def _run(self, N: str) -> str:
        kind = "uint8_t" if self.input == "u8" else "float"
        last = next(step for step in self.plan.steps if step.value and step.value.name == self.plan.output)
        assert last.real is not None
        logit = (
            f"memory.real[{last.real.at} + i]" if last.wide else f"load(memory.maps[{self._at(last)} + i])"
        )
        seen_as = "        uint16_t maps[{N}_ARENA_BYTES / 2];\n" if self.real_bits == 16 else ""
        classes = self.network.classes or tuple(str(i) for i in range(self.network.n_outputs))
        listed = ", ".join(string(name) for name in classes)
        return f"""const char *const {self.name}_classes[{N}_OUTPUTS] = {{{listed}}};

void {self.name}_run_in(void *arena, const {kind} image[{N}_INPUTS], float logits[{N}_OUTPUTS])
{{
    const struct memory memory = {{image, arena, arena, arena, arena}};
    for (unsigned i = 0; i < sizeof layers / sizeof layers[0]; i++) {{
        layers[i].run(&layers[i], &memory);
    }}
    for (int i = 0; i < {N}_OUTPUTS; i++) {{
        logits[i] = {logit};
    }}
}}

#ifndef {N}_NO_ARENA
void {self.name}_run(const {kind} image[{N}_INPUTS], float logits[{N}_OUTPUTS])
{{
    static union {{
{seen_as.format(N=N)}        float real[{N}_ARENA_BYTES / 4];
        uint32_t bits[{N}_ARENA_BYTES / 4];
        int32_t dots[{N}_ARENA_BYTES / 4];
    }} arena;
    {self.name}_run_in(&arena, image, logits);
}}
#endif

int {self.name}_class(const float logits[{N}_OUTPUTS])
{{
    int best = 0;
    for (int i = 1; i < {N}_OUTPUTS; i++) {{
        if (logits[i] > logits[best]) {{
            best = i;
        }}
    }}
    return best;
}}
"""

    # Rows of the table

    def _rows(self, step: Step) -> list[tuple[str, dict[str, str]]]:
        for part in NEEDS[step.run]:
            narrow = part == "run_each_pixel" and self.real_bits == 16
            self.parts[f"{part}_16" if narrow else part] = None
        if step.run == "concat":
            return self._concat_rows(step)
        fields: dict[str, str] = {"run": step.run}
        source = step.inputs[0] if step.inputs else None
        if source is not None:
            if source.step is not None:
                fields["in"] = self._from(source)
            fields |= dict(zip(("in_channels", "in_h", "in_w"), map(str, source.shape), strict=True))
        fields |= dict(zip(("channels", "out_h", "out_w"), map(str, step.shape), strict=True))
        fields |= self._window(step)
        fields |= self._weights(step)
        if step.signs is None or step.value is not None or step.run == "each_pixel":
            if step.run not in ("flatten", "flatten_bits", "bits_pool", "binary_conv_bits"):
                fields |= self._finish(step)
        if step.real is not None:
            fields["real"] = self._at(step)
        if step.bits is not None:
            fields["bits"] = str(step.bits.at)
        if step.scratch is not None:
            fields["scratch"] = str(step.scratch.at)
        order = list(FIELDS)
        return [(self._note(step), dict(sorted(fields.items(), key=lambda item: order.index(item[0]))))]

    def _from(self, value: Value) -> str:
        """Where a step finds what it reads."""
        assert value.step is not None
        if not value.bits:
            return self._at(value.step)
        assert value.step.bits is not None
        return str(value.step.bits.at)

    def _at(self, step: Step) -> str:
        """Where the real values of a step begin, counted in values."""
        assert step.real is not None
        return str(step.real.at * (1 if step.wide else 32 // self.real_bits))

    def _concat_rows(self, step: Step) -> list[tuple[str, dict[str, str]]]:
        rows, first = [], 0
        assert step.real is not None
        for source in step.inputs:
            fields = {
                "run": "concat_part",
                "in": self._from(source),
                "in_channels": str(source.shape[0]),
                "channels": str(step.shape[0]),
                "out_h": str(step.shape[1]),
                "out_w": str(step.shape[2]),
                "first_channel": str(first),
                "real": self._at(step),
            }
            rows.append((self._note(step), fields))
            first += source.shape[0]
        return rows

    def _note(self, step: Step) -> str:
        source = "x".join(map(str, step.inputs[0].shape)) if step.inputs else "image"
        given = "x".join(map(str, step.shape))
        also = "".join(f", {name}" for name in step.also)
        return f"{step.layer.name}{also}: {step.layer.op}, {source} -> {given}"

    def _window(self, step: Step) -> dict[str, str]:
        layer, attributes = step.layer, step.layer.attributes
        if step.run not in ("conv", "binary_conv", "binary_conv_bits", "max_pool", "bits_pool", "avg_pool"):
            return {}
        kernel: Any = attributes.get("kernel", (1, 1))
        if layer.op == "global_avg_pool":
            kernel = step.inputs[0].shape[1:]
        elif layer.op == "conv":
            kernel = layer.tensors["weight"].shape[2:]
        elif layer.op == "binary_conv":
            kernel = layer.tensors["bits"].shape[1:3]
        stride, padding = attributes.get("stride", (1, 1)), attributes.get("padding", (0, 0, 0, 0))
        dilation = attributes.get("dilation", (1, 1))
        found = {"kernel_h": kernel[0], "kernel_w": kernel[1], "stride_h": stride[0], "stride_w": stride[1]}
        found |= {"pad_top": padding[0], "pad_left": padding[1]}
        if "pool" in step.run:
            if step.run == "avg_pool":
                _, height, width = step.inputs[0].shape
                include = attributes.get("count_include_pad", False)
                found["padded_h"] = height + padding[0] + padding[2] if include else 0
                found["padded_w"] = width + padding[1] + padding[3] if include else 0
        else:
            found |= {"dilation_h": dilation[0], "dilation_w": dilation[1]}
            found["groups"] = attributes.get("groups", 1)
        return {key: str(value) for key, value in found.items()}

    def _weights(self, step: Step) -> dict[str, str]:
        layer = step.layer
        if step.run == "conv":
            gather = "gather_real" if step.inputs[0].step is not None else "gather_image"
            self.parts[gather] = None
            weight = _panels(real_weight(layer), layer.attributes.get("groups", 1))
            return {
                "gather": gather,
                "weight": self._floats("weight", layer, weight),
                "bias": self._floats("bias", layer, layer.tensors["bias"]),
            }
        if step.run not in ("binary_conv", "binary_conv_bits"):
            return {}
        rows = _bit_rows(layer)
        found = {"row_words": str(rows.shape[1]), "weights": self._words("bits", layer, rows)}
        found |= self._counting(layer, rows.shape[1])
        if step.run == "binary_conv":
            found["scale"] = self._floats("scale", layer, layer.tensors["scale"])
            found["bias"] = self._floats("bias", layer, layer.tensors["bias"])
        else:
            threshold = layer.tensors["threshold"]
            found["dot_threshold"] = self._array(
                "int32_t", "threshold", layer, threshold.astype("<i4"), map(str, threshold.tolist())
            )
            found["flip"] = self._flip(layer, layer.tensors["flip"])
        return found

    def _counting(self, layer: Layer, width: int) -> dict[str, str]:
        """The functions that count differing bits of rows of `width` words."""
        n_in = layer.attributes.get("in_channels", layer.attributes.get("in_features"))
        if n_in // layer.attributes.get("groups", 1) % 32 == 0:
            self.parts["count_in_words"] = None
            self.runs |= self._run_widths(layer)
            return {"count": "count_in_words"}
        self.parts |= {"gather_bits": None, "count_in_bits": None}
        self.runs |= {width} if width <= WIDEST else set()
        self.runs_inside |= {width} if width <= WIDEST else {3}
        return {"count": "count_in_bits"}

    def _run_widths(self, layer: Layer) -> set[int]:
        """Words of the runs that a kernel row can see: all of its taps, or fewer at a border."""
        attributes, groups = layer.attributes, layer.attributes.get("groups", 1)
        tap = attributes.get("in_channels", attributes.get("in_features")) // groups // 32
        taps = layer.tensors["bits"].shape[2] if layer.op == "binary_conv" else 1
        if groups > 1 or attributes.get("dilation", (1, 1))[1] > 1:
            taps = 1
        padded = any(attributes.get("padding", (0,))) and taps > 1
        return {n * tap for n in ((taps - 1, taps) if padded else (taps,)) if n * tap <= WIDEST}

    def _finish(self, step: Step) -> dict[str, str]:
        """The function that takes the values of a pixel on to memory, and what it needs."""
        found: dict[str, str] = {}
        words = ["finish"]
        if step.affine is not None:
            words.append("affine")
            found["scale"] = self._floats("scale", step.affine, step.affine.tensors["scale"])
            found["bias"] = self._floats("bias", step.affine, step.affine.tensors["bias"])
        if step.residual is not None:
            words.append("add" if step.residual.repeats == 1 else "add_repeated")
            found["residual"] = self._from(step.residual)
            found["residual_channels"] = str(step.residual.shape[0] // step.residual.repeats)
        if step.activation is not None:
            words.append(step.activation.op)
            if step.activation.op == "prelu":
                found["slope"] = self._floats("slope", step.activation, step.activation.tensors["slope"])
            if step.activation.op == "clamp":
                found |= {end: number(step.activation.attributes[end]) for end in ("low", "high")}
        if step.real is not None:
            words.append("give" if step.wide else "keep")
        if step.sign is not None:
            sign = step.sign
            words.append("sign")
            if "threshold" in sign.tensors and sign.tensors["threshold"].any():
                words.append("at")
                found["threshold"] = self._floats("threshold", sign, sign.tensors["threshold"])
            if "flip" in sign.tensors and sign.tensors["flip"].any():
                words.append("flip")
                found["flip"] = self._flip(sign, sign.tensors["flip"])
        name = "_".join(words)
        if name not in self.finishes:
            self.finishes[name] = _finish_function(name, set(words))
        return {"finish": name, **found}

    # Arrays

    def _floats(self, role: str, layer: Layer, values: Any) -> str:
        values = np.ascontiguousarray(values, "<f4").reshape(-1)
        return self._array("float", role, layer, values, map(number, values))

    def _words(self, role: str, layer: Layer, words: Any) -> str:
        words = np.ascontiguousarray(words, "<u4").reshape(-1)
        return self._array("uint32_t", role, layer, words, (f"0x{word:08x}u" for word in words.tolist()))

    def _flip(self, layer: Layer, flip: Any) -> str:
        padded = np.zeros(32 * n_words(len(flip)), np.uint8)
        padded[: len(flip)] = flip
        return self._words("flip", layer, np.packbits(padded, bitorder="little").view("<u4"))

    def _array(self, kind: str, role: str, layer: Layer, values: Any, texts: Any) -> str:
        """The name of a constant array; what is equal is stored once."""
        key = kind.encode() + values.tobytes()
        if key not in self.known:
            self.known[key] = self.names.fresh(role, layer.name)
            self.flash_bytes += values.nbytes
            self.arrays.append(array(kind, self.known[key], texts, str(values.size)))
        return self.known[key]


def _panels(weight: Any, groups: int) -> Any:
    """Weights (O, I, kh, kw) or (O, I) in the order of the window: of four channels in turn, the rest one by one."""
    rows = weight.reshape(len(weight), -1) if weight.ndim == 2 else weight.transpose(0, 2, 3, 1)
    rows = rows.reshape(len(rows), -1)
    parts = []
    for group in np.split(rows, groups):
        whole = len(group) // 4 * 4
        parts += [block.T.reshape(-1) for block in np.split(group[:whole], whole // 4)] if whole else []
        parts.append(group[whole:].reshape(-1))
    return np.concatenate(parts)


def _bit_rows(layer: Layer) -> Any:
    """(O, words): the weights of each output without gaps, taps first, channels innermost."""
    n_in = layer.attributes.get("in_channels", layer.attributes.get("in_features"))
    signs = unpack_signs(layer.tensors["bits"], n_in // layer.attributes.get("groups", 1))
    bits = (signs.reshape(len(signs), -1) < 0).astype(np.uint8)
    padded = np.zeros((len(bits), 32 * n_words(bits.shape[1])), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.packbits(padded, axis=1, bitorder="little").view("<u4")


def _counters(widths: set[int], inside: set[int]) -> str:
    """The counting of differing bits: a loop over the channels for each of these numbers of words."""
    pieces = []
    for n in sorted({1, 3} | widths):
        pieces.append(_counter(n, "", "{x} ^ w[{i}]"))
    pieces.append(_dispatch("", ROWS, sorted({1, 3} | widths), DISPATCHES))
    if inside:
        for n in sorted({1, 3} | inside):
            pieces.append(_counter(n, "_inside", "({x} ^ w[{i}]) & mask[{i}]"))
        pieces.append(_dispatch("_inside", ROWS_INSIDE, sorted({1, 3} | inside), DISPATCHES_INSIDE))
    return "\n".join(pieces)


def _counter(n: int, suffix: str, differing: str) -> str:
    terms = []
    for first in range(0, n, 3):
        at = range(first, min(first + 3, n))
        # What x is stays in registers; with a mask there would be too many of them.
        words = (differing.format(x=f"x[{i}]" if suffix else f"x{i}", i=i) for i in at)
        terms.append(f"count_bytes{len(at)}({', '.join(words)})")
    head = (ROWS_INSIDE if suffix else ROWS).replace("int n, ", "")
    lines = [] if suffix else [f"    const uint32_t x{i} = x[{i}];" for i in range(n)]
    lines += [
        "    for (int row = 0; row < rows; row++, w += stride) {",
        f"        uint32_t bytes = {terms[0]};",
    ]
    lines += [f"        bytes += {term};" for term in terms[1:]]
    lines += ["        dots[row] -= 2 * sum_bytes(bytes);", "    }"]
    return f"static void count_rows_{n}{suffix}({head})\n{{\n" + "\n".join(lines) + "\n}\n"


def _dispatch(suffix: str, head: str, widths: list[int], comment: str) -> str:
    mask = "mask, " if suffix else ""
    cases = [
        f"    case {n}:\n        count_rows_{n}{suffix}(x, {mask}w, stride, rows, dots);\n        break;"
        for n in widths
    ]
    step = ", mask += {0}" if suffix else ""
    return f"""{comment}
static void count_rows{suffix}({head})
{{
    switch (n) {{
{chr(10).join(cases)}
    default:
        for (; n >= 3; n -= 3, x += 3, w += 3{step.format(3)}) {{
            count_rows_3{suffix}(x, {mask}w, stride, rows, dots);
        }}
        for (; n > 0; n--, x++, w++{", mask++" if suffix else ""}) {{
            count_rows_1{suffix}(x, {mask}w, stride, rows, dots);
        }}
        break;
    }}
}}
"""


SAID = {
    "affine": "scale and bias",
    "add": "plus the shortcut",
    "add_repeated": "plus the shortcut, whose channels are repeated",
    "prelu": "PReLU",
    "relu": "ReLU",
    "hardtanh": "limited to -1 and 1",
    "clamp": "limited to low and high",
    "keep": "kept",
    "give": "given as floats",
    "sign": "signs",
    "at": "at thresholds",
    "flip": "some of them flipped",
}


def _finish_function(name: str, does: set[str]) -> str:
    """What happens to the values y of one pixel, in the order of the words of its name."""
    begin, each = [], ["float v = y[c];"]
    if "affine" in does:
        each.append("v = v * l->scale[c] + l->bias[c];")
    if "add" in does or "add_repeated" in does:
        begin.append("const real_t *residual = m->maps + l->residual + pixel * l->residual_channels;")
    if "add" in does:
        each.append("v += load(residual[c]);")
    if "add_repeated" in does:
        each.append("v += load(residual[c % l->residual_channels]);")
    if "prelu" in does:
        each += ["if (v < 0.0f) {", "    v *= l->slope[c];", "}"]
    if "relu" in does:
        each += ["if (v < 0.0f) {", "    v = 0.0f;", "}"]
    if "hardtanh" in does:
        each += ["if (v < -1.0f) {", "    v = -1.0f;", "} else if (v > 1.0f) {", "    v = 1.0f;", "}"]
    if "clamp" in does:
        each += ["if (v < l->low) {", "    v = l->low;", "} else if (v > l->high) {", "    v = l->high;", "}"]
    if "keep" in does:
        begin.append("real_t *real = m->maps + l->real + pixel * l->channels;")
        each.append("real[c] = store(v);")
    if "give" in does:
        begin.append("float *real = m->real + l->real + pixel * l->channels;")
        each.append("real[c] = v;")
    if "sign" in does:
        begin.append("uint32_t *bits = m->bits + l->bits + pixel * ((l->channels + 31) / 32);")
        limit = "l->threshold[c]" if "at" in does else "0.0f"
        each += [f"if (v < {limit}) {{", "    word |= bit;", "}", "bit <<= 1;"]
    if "sign" not in does:
        loop = ["for (int c = 0; c < l->channels; c++) {", *(f"    {line}" for line in each), "}"]
    else:
        loop = [
            "for (int first = 0; first < l->channels; first += 32) {",
            "    const int end = first + 32 < l->channels ? first + 32 : l->channels;",
            "    uint32_t word = 0;",
            "    uint32_t bit = 1;",
            "    for (int c = first; c < end; c++) {",
            *(f"        {line}" for line in each),
            "    }",
            f"    bits[first / 32] = word{' ^ l->flip[first / 32]' if 'flip' in does else ''};",
            "}",
        ]
    body = "\n".join(f"    {line}" for line in [*begin, *loop])
    said = ", ".join(text for word, text in SAID.items() if word in does)
    return f"/* What happens to the values y of one pixel: {said}. */\nstatic void {name}({FINISH})\n{{\n{body}\n}}\n"
