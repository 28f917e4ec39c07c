"""Every Python snippet of docs/ runs, in a folder that holds a model.lbit of a 3 x 32 x 32 network."""

import importlib.util
import os
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn

from latentbit import binarize_, lbit, methods, models, pack
from latentbit.errors import LatentbitError

DOCS = Path(__file__).parents[1] / "docs"
ELSEWHERE = {"extending.md": "needs a package of its own: see tests/test_extending.py"}
PAGES = {
    path.name: re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
    for path in sorted(DOCS.glob("*.md"))
    if path.name not in ELSEWHERE
}


def _run(code: str, name: str) -> dict[str, object]:
    found: dict[str, object] = {}
    exec(compile(code, name, "exec"), found)
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    model = models.create("resnet18_compact", widths=[8, 16]).eval()
    binarize_(model)
    lbit.write(pack(model, torch.zeros(1, 3, 32, 32)), tmp_path / "model.lbit")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", [name for name, snippets in PAGES.items() if snippets])
def test_snippets_run_as_they_stand(name: str, folder: Path) -> None:
    for code in PAGES[name]:
        _run(code, name)


def test_the_engine_gives_what_its_page_says(folder: Path) -> None:
    found = _run(PAGES["engine.md"][0], "engine.md")
    logits, steps = found["logits"], found["steps"]
    assert logits.dtype == "float32" and logits.shape == (4, 10)  # type: ignore[attr-defined]
    assert all(isinstance(name, str) and us > 0 for name, _, us in steps)  # type: ignore[attr-defined]


ROOT = DOCS.parent


@pytest.mark.parametrize(
    "page", ["README.md", "SECURITY.md", *(f"docs/{path.name}" for path in sorted(DOCS.glob("*.md")))]
)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
    local = [link for link in found if "://" not in link]
    assert [link for link in local if not ((ROOT / page).parent / link).exists()] == []


def _generator(name: str) -> ModuleType:
    """docs/NAME.py, which writes docs/NAME.md."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["api", "methods"])
def test_generated_pages_are_those_of_the_docstrings(name: str) -> None:
    made = _generator(name)
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), f"python docs/{name}.py"


@pytest.mark.parametrize("name", methods.names())
def test_a_method_packs_if_and_only_if_it_says_so(name: str) -> None:
    says = _generator("methods").facts(methods.manual(name))["Packs"]
    model = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)).eval()
    binarize_(model, name, keep=[])
    try:
        pack(model, torch.zeros(1, 8, 4, 4))
    except LatentbitError:
        assert says.startswith("no, ")
    else:
        assert says.startswith("yes")


def test_a_docstring_without_its_lines_is_named() -> None:
    made = _generator("methods")
    text = "Name: what.\n\nSource: a, which\n    goes on.\nExact: b.\nDiffers: c.\nPacks: yes.\n"
    assert made.facts(text) == {
        "Source": "a, which goes on.",
        "Exact": "b.",
        "Differs": "c.",
        "Packs": "yes.",
    }
    with pytest.raises(
        made.NoFacts, match=r'no line "Differs: ..." in the docstring that begins \'Name: what'
    ):
        made.facts(text.replace("Differs", "Different"))


def test_the_slurm_script_starts_a_run_and_goes_on_with_it(tmp_path: Path) -> None:
    """With stand-ins for SLURM's commands, of which srun prints what it would start."""
    (script,) = re.findall(r"```bash\n(.*?)```", (DOCS / "scaling.md").read_text(encoding="utf-8"), re.DOTALL)
    for name, text in {"srun": 'printf "%s\\n" "$@"', "scontrol": "printf 'n1\\nn2\\n'"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    run = tmp_path / "my run"
    slurm = {"JOB_NODELIST": "n[1-2]", "NNODES": "2", "GPUS_ON_NODE": "8", "JOB_ID": "7"}
    around = {f"SLURM_{key}": value for key, value in slurm.items()} | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "RUN": str(run),
    }

    def started() -> list[str]:
        done = subprocess.run(["bash", "-c", script], env=around, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    first = started()
    assert first[0] == "torchrun" and first[first.index("--rdzv-endpoint") + 1] == "n1:29500"
    assert first[first.index("train") + 1 :] == [
        "imagenet_resnet18",
        "root=/data/imagenet",
        "workers=8",
        "--out",
        str(run),
    ]
    run.mkdir()
    (run / "recipe.toml").touch()
    assert started()[-3:] == ["train", "--resume", str(run)]
