"""The numbers that the paper prints, each with the recipe that gives ours.

Xu et al., "Improving Binary Neural Networks through Fully Utilizing Latent Weights", ICCV 2021. Layer errors
are R_l (Eq. 10), ours behind BatchNorm and activation; everything else is per cent, on the CIFAR-10 test set or,
in table 8, on ImageNet's validation images.
Inference costs are in cost.py.
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
    """Empty where the paper quotes others and there is no recipe of theirs here."""
    metric: str
    paper: float


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper, in reading order."""

    title: str
    numbers: tuple[Printed, ...]
    images: str = ""
    """A data set that nobody may download for the user, who names its folder, or has runs of it already."""


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
    title = "Table 2: accuracy, and feature reconstruction error behind BatchNorm and activation (compact ResNet-18)"
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
    recipes = {"ResNet-18": f"{COMPACT}_label_aware", "WRN-22": "cifar10_wrn22"}
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
            Printed("error, %", "with", f"{COMPACT}_label_aware", "error", 14.90),
            Printed("error, %", "without", f"{COMPACT}_no_projection", "error", 15.95),
        ),
    )


def _cifar10() -> PaperTable:
    networks = (
        ("VGG-small", "cifar10_vgg_small", "", 91.7, 91.2),
        ("ResNet-18 compact", COMPACT, "_label_aware", 90.77, 85.10),
        ("ResNet-20", "cifar10_resnet20", "", 91.7, 88.6),
        ("WRN-22", "cifar10_wrn22", "", 95.75, 93.30),
    )
    numbers = []
    for network, recipe, label_aware, full, binary in networks:
        numbers.append(Printed(network, "real, %", f"{recipe}_fp32", B.metric, full))
        numbers.append(Printed(network, "binary, %", f"{recipe}{label_aware}", B.metric, binary))
    return PaperTable("Accuracy on CIFAR-10 with the label-aware loss", tuple(numbers))


def _imagenet() -> PaperTable:
    """Every top-1 and top-5 that the table prints, the quoted ones too."""
    quoted = {
        18: "Bi-Real 56.4 79.5, PCNN 57.3 80.0, Si-BNN 59.7 81.8, CI-BNN 59.9 84.2, IR-Net 58.1 80.0, RBNN 59.9 81.9, "
        "SA-BNN 61.7 82.8, label-aware 63.4 84.6, label-aware and KD 63.8 84.9, real 69.3 89.2",
        34: "Bi-Real 62.2 83.9, IR-Net 62.9 84.1, Si-BNN 63.3 84.4, CI-BNN 64.9 86.6, RBNN 63.1 84.4, "
        "SA-BNN 65.5 85.8, label-aware 67.0 86.8, label-aware and KD 67.3 87.0, real 73.3 91.3",
    }
    # Recipes by the releases of Bi-Real Net and Si-BNN are there for ResNet-18 only. The paper's real networks are
    # those of a model zoo, with one skip per two convolutions.
    recipes = {
        (18, "Bi-Real"): "imagenet_resnet18_bireal",
        (18, "Si-BNN"): "imagenet_resnet18_sibnn",
        (18, "real"): "imagenet_resnet34_standard network=resnet18_standard",
        (34, "real"): "imagenet_resnet34_standard",
    }
    for depth in quoted:
        recipes[depth, "label-aware"] = f"imagenet_resnet{depth}"
        recipes[depth, "label-aware and KD"] = f"imagenet_resnet{depth}_kd"
    numbers = []
    for depth, text in quoted.items():
        for entry in text.split(", "):
            method, top1, top5 = entry.rsplit(" ", 2)
            recipe = recipes.get((depth, method), "")
            for column, metric, paper in (("top-1, %", B.metric, top1), ("top-5, %", "top5_b", top5)):
                numbers.append(Printed(f"ResNet-{depth} {method}", column, recipe, metric, float(paper)))
    title = "Table 8: accuracy on ImageNet, ours where there is a run, the methods that the paper quotes beside it"
    return PaperTable(title, tuple(numbers), images="ImageNet")


IMAGENET_CLASSES = 1000

TABLES = {
    "table1": _table1(),
    "table2": _table2(),
    "table3": _table3(),
    "lambda": _lambda(),
    "projection": _projection(),
    "cifar10": _cifar10(),
    "table8": _imagenet(),
}
COMPLEXITY = "complexity"
NAMES = (*TABLES, COMPLEXITY)
