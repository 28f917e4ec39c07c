"""The numbers that the paper prints, each with the recipe that gives ours.

Xu et al., "Improving Binary Neural Networks through Fully Utilizing Latent Weights", ICCV 2021. Layer errors
are R_l (Eq. 10); everything else is per cent on the CIFAR-10 test set. Inference costs are in cost.py.
"""

from dataclasses import dataclass

from latentbit.views.numbers import NUMBERS, W_DAGGER, B, W

COMPACT = "cifar10_resnet18_compact"


@dataclass(frozen=True)
class Printed:
    """One number of a table. `metric` is a key of metrics.jsonl, "error" (1 - B), "layer N" or "average"."""

    row: str
    column: str
    recipe: str
    metric: str
    paper: float


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper, in reading order."""

    title: str
    numbers: tuple[Printed, ...]


def _table1() -> PaperTable:
    printed = zip(NUMBERS, (82.37, 41.13, 80.89), strict=True)
    return PaperTable(
        "Table 1: accuracy of B, W and W† (compact ResNet-18, baseline)",
        tuple(
            Printed("top-1, %", number.name, f"{COMPACT}_baseline", number.metric, paper)
            for number, paper in printed
        ),
    )


_LAYER_ERRORS = {
    "baseline": (
        "0.00541 0.00968 0.01322 0.01462 0.01673 0.01715 0.01991 0.02136 "
        "0.02531 0.03109 0.03478 0.04134 0.05082 0.06010 0.06300 0.09141",
        0.03225,
        82.37,
    ),
    "min_fre": (
        "0.00088 0.00121 0.00145 0.00157 0.00175 0.00194 0.00217 0.00240 "
        "0.00338 0.00390 0.00446 0.00489 0.00695 0.00899 0.01211 0.01938",
        0.00484,
        69.25,
    ),
    "label_aware": (
        "0.00186 0.00291 0.00361 0.00427 0.00529 0.00601 0.00691 0.00823 "
        "0.00866 0.00989 0.01167 0.01237 0.01762 0.02097 0.02525 0.03669",
        0.01138,
        85.10,
    ),
}


def _table2() -> PaperTable:
    numbers = []
    for strategy, (errors, average, accuracy) in _LAYER_ERRORS.items():
        recipe = f"{COMPACT}_{strategy}"
        for i, error in enumerate(errors.split()):
            numbers.append(Printed(f"Conv{i + 2}", strategy, recipe, f"layer {i}", float(error)))
        numbers.append(Printed("average", strategy, recipe, "average", average))
        numbers.append(Printed("B, %", strategy, recipe, B.metric, accuracy))
    title = "Table 2: feature reconstruction error by layer, and accuracy (compact ResNet-18)"
    return PaperTable(title, tuple(numbers))


def _table3() -> PaperTable:
    # The baseline keeps no statistics for W, so its W is the stale one; the other two train W's own.
    strategies = (
        ("baseline", W.metric, 41.13, 82.37),
        ("instance", W_DAGGER.metric, 81.60, 82.26),
        ("label_aware", W_DAGGER.metric, 84.77, 85.10),
    )
    numbers = []
    for strategy, metric, latent, binary in strategies:
        recipe = f"{COMPACT}_{strategy}"
        numbers.append(Printed(strategy, "W, %", recipe, metric, latent))
        numbers.append(Printed(strategy, "B, %", recipe, B.metric, binary))
    return PaperTable("Table 3: three training strategies (compact ResNet-18)", tuple(numbers))


def _lambda() -> PaperTable:
    weights = ("1e-5", "1e-4", "1e-3", "1e-2")
    printed = {"ResNet-18": (15.11, 14.90, 15.73, 17.09), "WRN-22": (6.89, 6.70, 7.35, 8.00)}
    recipes = {"ResNet-18": COMPACT, "WRN-22": "cifar10_wrn22"}
    return PaperTable(
        "Error (%) over lambda, the weight of the label-aware loss",
        tuple(
            Printed(network, weight, f"{recipes[network]} latent_weight={weight}", "error", error)
            for network, errors in printed.items()
            for weight, error in zip(weights, errors, strict=True)
        ),
    )


def _projection() -> PaperTable:
    return PaperTable(
        "Error (%) with and without the projection layer (compact ResNet-18)",
        (
            Printed("error, %", "with", COMPACT, "error", 14.90),
            Printed("error, %", "without", f"{COMPACT}_no_projection", "error", 15.95),
        ),
    )


def _cifar10() -> PaperTable:
    networks = (
        ("VGG-small", "cifar10_vgg_small", 91.7, 91.2),
        ("ResNet-18 compact", COMPACT, 90.77, 85.10),
        ("ResNet-20", "cifar10_resnet20", 91.7, 88.6),
        ("WRN-22", "cifar10_wrn22", 95.75, 93.30),
    )
    numbers = []
    for network, recipe, full, binary in networks:
        numbers.append(Printed(network, "real, %", f"{recipe}_fp32", B.metric, full))
        numbers.append(Printed(network, "binary, %", recipe, B.metric, binary))
    return PaperTable("Accuracy on CIFAR-10 with the label-aware loss", tuple(numbers))


TABLES = {
    "table1": _table1(),
    "table2": _table2(),
    "table3": _table3(),
    "lambda": _lambda(),
    "projection": _projection(),
    "cifar10": _cifar10(),
}
COMPLEXITY = "complexity"
NAMES = (*TABLES, COMPLEXITY)
