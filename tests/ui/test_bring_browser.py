"""Models brought while the page is open, in a real browser, from a stand-in Hub; and why one does not come."""

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.files import tiny_model
from tests.checkpoints.servers import Hub, out_of_reach, serving
from tests.ui.conftest import running
from tests.ui.test_browser import generate

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]
SMALL = "import app, specdec.serving.bringing as it; it.available_bytes = lambda: 4 << 30; raise SystemExit(app.main())"
TOO_LARGE = r"gpt2-xl needs 6,833 MiB of memory \(1,557,611,200 parameters as float32\), 4,\d{3} MiB are available\."


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A stand-in Hub in which a small model goes by the name of distilgpt2's repository."""
    folder = tiny_model(tmp_path_factory.mktemp("hub") / "tiny")
    with serving(Hub("distilbert/distilgpt2", {path.name: path.read_bytes() for path in folder.iterdir()})) as hub:
        yield hub


@pytest.fixture(scope="module")
def bare(hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`python app.py` with empty caches, which takes that for the Hub."""
    with pytest.MonkeyPatch.context() as patch:
        out_of_reach(tmp_path_factory.mktemp("bare"), patch)
        patch.setenv("HF_ENDPOINT", hub.endpoint)
        with running("app.py", "--port", "PORT") as address:
            yield address


def open_tab(page: Any) -> None:
    """Go to the tab and wait for its list."""
    page.get_by_role("tab", name="Models").click()
    page.wait_for_selector("[data-model=gpt2]")


def option(page: Any, name: str, text: str) -> Any:
    """An entry of a list that is opened for it as a user does."""
    page.locator(f"#{name} input").click()
    entry = page.get_by_role("option", name=text)
    entry.wait_for()
    return entry


def test_code_needs_a_model_that_is_not_there(bare: str, visit: Visit):
    """The prompt is filled in, the models stay, and a sentence says what to bring."""
    page = visit(bare)
    page.get_by_role("button", name="A stack").click()
    page.wait_for_function("document.querySelector('.sd-note').textContent.includes('smollm2-135m-instruct')")
    assert "class Stack" in page.locator("#prompt textarea").input_value()
    assert page.locator("#target input").input_value().startswith("specdec-target-8x384")
    page.get_by_role("button", name="A rainy day").click()
    page.wait_for_function("!document.querySelector('.sd-note').textContent")
    assert page.locator(".sd-note").is_hidden()


def test_a_model_is_fetched_and_can_be_chosen_at_once(bare: str, hub: Hub, visit: Visit):
    """By keyboard: its button, bytes while it comes, then it is a target without a reload, also after one."""
    page = visit(bare)
    open_tab(page)
    page.get_by_label("Another one").fill("distilbert/distilgpt2")
    gate = hub.held["model.safetensors"] = threading.Event()
    page.keyboard.press("Enter")
    page.wait_for_selector(".br[data-state=fetching]")
    page.wait_for_function(
        "/^distilbert.distilgpt2: [0-9.]+ MB of [0-9.]+ MB$/.test(document.querySelector('.br-said').textContent)"
    )
    assert page.locator(".br progress").is_visible()
    assert page.get_by_role("button", name="Fetch gpt2", exact=True).is_disabled()
    gate.set()
    page.wait_for_selector(".br[data-state=done]")
    assert page.locator(".br-said").inner_text() == "distilbert/distilgpt2 is in the lists of models now."
    page.wait_for_function("document.querySelectorAll('.br-models button:disabled').length === 0")
    option(page, "target", "distilbert/distilgpt2 · 8.75 K params")
    other = visit(bare)
    option(other, "target", "distilbert/distilgpt2 · 8.75 K params").click()
    other.wait_for_function("document.querySelector('#draft input').value.startsWith('n-gram')")
    generate(other, "Once", 6)
    other.wait_for_selector(".sd[data-state=done]")
    assert "distilbert/distilgpt2" in other.locator(".sd-about").inner_text()


def test_a_known_model_that_is_here_is_offered_by_its_button(bare: str, visit: Visit):
    """Fetched before by its repository's name, it needs no download; it becomes a draft."""
    page = visit(bare)
    open_tab(page)
    page.get_by_role("button", name="distilgpt2").click()
    page.wait_for_selector("[data-model=distilgpt2] .br-here")
    assert page.get_by_role("button", name="distilgpt2").count() == 0


def test_a_download_can_be_cancelled(bare: str, hub: Hub, visit: Visit):
    """The button beside the bar; nothing is added, and the buttons can be pressed again."""
    hub.repository = "openai-community/gpt2"
    gate = hub.held["model.safetensors"] = threading.Event()
    page = visit(bare)
    open_tab(page)
    page.get_by_role("button", name="Fetch gpt2", exact=True).click()
    page.wait_for_selector(".br[data-state=fetching]")
    page.get_by_role("button", name="Cancel").click()
    gate.set()
    page.wait_for_selector(".br[data-state=cancelled]")
    assert page.locator(".br-said").inner_text() == "Cancelled."
    page.wait_for_selector("button[value=gpt2]:enabled")


def test_offline_and_hostile_names_get_a_sentence(bare: str, hub: Hub, visit: Visit):
    """A name the Hub does not know, a name that is none, and markup in it: text, and the page goes on."""
    page = visit(bare)
    open_tab(page)
    field = page.get_by_label("Another one")
    for name, said in [
        ("../../etc/passwd", "There is no model folder or .gguf file"),
        ("https://example.org/x", "No model is called"),
        ("<img src=x onerror=window.hit=1>", "No model is called"),
    ]:
        field.fill(name)
        page.keyboard.press("Enter")
        page.wait_for_function("said => document.querySelector('.br-alert').textContent.startsWith(said)", arg=said)
    assert page.locator(".br :is(img, script)").count() == 0
    field.fill("nobody/nothing")
    page.keyboard.press("Enter")
    page.wait_for_selector(".br[data-state=failed]")
    assert page.locator(".br-said").inner_text() == "The Hugging Face Hub has no public model nobody/nothing."


def test_without_a_network_the_page_says_so(visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """On a phone: no Hub, one sentence; no sideways scrolling. What 4 GiB do not hold cannot be asked for."""
    out_of_reach(tmp_path, monkeypatch)
    with running("-c", SMALL, "--port", "PORT") as address:
        page = visit(address, viewport={"width": 390, "height": 844}, has_touch=True)
        open_tab(page)
        page.wait_for_selector("[data-model=gpt2]")
        page.get_by_role("button", name="Fetch gpt2", exact=True).click()
        page.wait_for_selector(".br[data-state=failed]")
        assert "the Hugging Face Hub is out of reach" in page.locator(".br-said").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert re.fullmatch(TOO_LARGE, page.locator("[data-model=gpt2-xl] .br-refused").inner_text())
        page.wait_for_selector("[data-model=gpt2-xl] button:disabled")
        refused = page.locator(".br-models li:has(.br-refused)")
        assert refused.evaluate_all("lines => lines.map(line => line.dataset.model)") == [
            "smollm2-1.7b-instruct",
            "gpt2-xl",
        ]
        page.close()
