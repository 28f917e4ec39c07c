"""The page in a real browser: strokes, keys and files, the engine's logits to the last bit, no request to anyone."""

import base64
import io
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from export_networks import clamp_network, geometry_network, real_network
from lbit_examples import every_op, tiny
from lbit_networks import PLAIN, compact_network, random_network
from PIL import Image

from latentbit.engine import Engine
from latentbit.export import ExportError, export
from latentbit.export.html import Html, script_ops
from latentbit.lbit import Layer, Network, checked, to_bytes

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: the page was not opened in a browser")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, "--disable-sync"])
        yield opened
        opened.close()


def open_page(browser: Any, network: Network, **context: Any) -> Any:
    """The page of a network; a request or an error in it fails the test."""
    folder = Path(tempfile.mkdtemp())
    export(network, "html", folder / "net.html")
    page = browser.new_context(**context).new_page()
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda note: page.problems.append(note.text) if note.type == "error" else None)
    page.on(
        "request",
        lambda request: page.problems.append(request.url) if not request.url.startswith("file:") else None,
    )
    page.goto(f"file://{folder}/net.html")
    return page


def settle(page: Any) -> None:
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.problems == []


def test_every_op_of_the_format_has_its_function() -> None:
    ops = {
        layer.op
        for network in (every_op(), geometry_network(), real_network(), tiny())
        for layer in network.layers
    }
    assert ops <= script_ops()


# The networks are read by the page itself, so that one page can run them all.
RUN = """([model, images, n]) => {
  const bytes = Uint8Array.from(atob(model), (letter) => letter.charCodeAt(0));
  const network = readNetwork(bytes.buffer), last = network.layers[network.layers.length - 1].name;
  const out = [];
  for (let i = 0; i < n; i++) {
    const size = images.length / n, image = Float32Array.from(images.slice(i * size, (i + 1) * size));
    out.push(...runNetwork(network, image).get(last).data);
  }
  return out;
}"""


def test_logits_are_the_engines_to_the_last_bit(browser: Any) -> None:
    page = open_page(browser, compact_network())
    networks = [every_op(), tiny(), geometry_network(), real_network(), clamp_network(), compact_network()]
    for network in [*networks, random_network(3, PLAIN), random_network(7, PLAIN)]:
        images = np.random.default_rng(1).normal(size=(2, *network.input_shape)).astype(np.float32)
        model = base64.b64encode(to_bytes(network)).decode()
        last = images.transpose(0, 2, 3, 1).ravel().astype(float).tolist()
        found = np.array(page.evaluate(RUN, [model, last, 2]), np.float32).reshape(2, -1)
        np.testing.assert_array_equal(found, Engine(network, isa="scalar")(images))
    assert page.problems == []


def answer(page: Any, network: Network) -> None:
    """What the page shows is what the engine says about the bytes that the page took from its pad."""
    settle(page)
    channels, height, width = network.input_shape
    pixels = np.array(page.evaluate("Array.from(latentbit.pixels())"), np.uint8)
    assert pixels.max() > 0
    logits = Engine(network, isa="scalar")(pixels.reshape(1, height, width, channels), "nhwc")[0]
    shares = np.exp(logits - logits.max())
    shares /= shares.sum()
    assert page.text_content("#best") == str(int(logits.argmax()))
    shown = [float(text.split()[0]) for text in page.locator(".number").all_text_contents()]
    np.testing.assert_allclose(shown, 100 * shares, atol=0.051)


def test_mouse_touch_keys_and_files(browser: Any) -> None:
    network = compact_network()
    page = open_page(browser, network, viewport={"width": 1280, "height": 900})
    settle(page)
    assert page.text_content("#best") == "\u2013" and page.is_visible("#hint")
    box = page.locator("#pad").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.8, steps=5)
    page.mouse.up()
    answer(page, network)
    assert not page.is_visible("#hint") and page.locator("#bits figure").count() == 12
    page.click("#clear")
    settle(page)
    assert page.text_content("#best") == "\u2013"
    page.focus("#pad")
    for key in [" ", *["ArrowDown"] * 6, *["ArrowRight"] * 4]:
        page.keyboard.press(key)
    answer(page, network)
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)).save(file, "PNG")
    page.set_input_files("#file", {"name": "a.png", "mimeType": "image/png", "buffer": file.getvalue()})
    page.wait_for_function("document.getElementById('best').textContent !== ''")
    answer(page, network)
    page.set_input_files("#file", {"name": "a.txt", "mimeType": "image/png", "buffer": b"no image"})
    page.wait_for_selector("#error:not([hidden])")
    assert "a.txt cannot be read as an image" in page.text_content("#error")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone(browser: Any, scheme: str) -> None:
    network = compact_network()
    phone = {
        "viewport": {"width": 390, "height": 844},
        "has_touch": True,
        "is_mobile": True,
        "color_scheme": scheme,
    }
    page = open_page(browser, network, **phone)
    box = page.locator("#pad").bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    answer(page, network)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    small = page.evaluate(
        "[...document.querySelectorAll('button')].filter((b) => b.offsetHeight < 40).length"
    )
    assert small == 0
    page.screenshot(full_page=True)


def test_colour_images(browser: Any) -> None:
    network = compact_network((8, 16), n_in=3, side=16, blocks=1)
    page = open_page(browser, network)
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 30, 3), np.uint8)).save(file, "PNG")
    page.set_input_files("#file", {"name": "a.png", "mimeType": "image/png", "buffer": file.getvalue()})
    page.wait_for_selector("#hint", state="hidden")
    answer(page, network)


def test_the_page_is_small_and_closed() -> None:
    text = Html(compact_network()).page()
    assert len(text) < 120_000
    assert "default-src 'none'" in text and not re.search(r"(src|href)=.http", text)
    assert not re.search(r"@(CSS|FACTS|MODEL|NETWORK|PAGE)\b", text)


def test_names_in_a_file_cannot_become_markup(browser: Any) -> None:
    network = compact_network((8,), blocks=1)
    evil = "</script><script>window.bad = 1</script><img src=x onerror='window.bad = 1'>"
    source = {"recipe": evil}
    classes = tuple(f"{evil}{i}" for i in range(10))
    page = open_page(browser, checked(Network(network.input_shape, network.layers, classes, source=source)))
    settle(page)
    assert page.evaluate("window.bad") is None and evil in page.text_content("#about")


def test_other_than_images_is_refused(tmp_path: Path) -> None:
    layers = (Layer("global_avg_pool", "pool", ("input",)),)
    with pytest.raises(ExportError, match="takes 2 channels; images on a page have 1 or 3"):
        export(checked(Network((2, 4, 4), layers)), "html", tmp_path / "x.html")
