"""Every Python snippet of docs/ runs, in a folder that holds a model.lbit of a 3 x 32 x 32 network."""

import importlib.util
import re
from pathlib import Path

import pytest
import torch

from latentbit import binarize_, lbit, models, pack

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


def test_the_reference_is_that_of_the_docstrings() -> None:
    spec = importlib.util.spec_from_file_location("docs_api", DOCS / "api.py")
    assert spec is not None and spec.loader is not None
    api = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(api)
    assert api.PAGE.read_text(encoding="utf-8") == api.page(), "python docs/api.py"
