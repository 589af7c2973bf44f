"""Take the documentation's pictures anew (a minute; wants the test packages).

    python scripts/pictures.py                     the page, for the README
    python scripts/pictures.py bench/report.html   two charts of a benchmark's report, for docs/benchmarks.md

`page.png` is a finished run with a token's tooltip; `strip.png` shows the race, a round, a sweep and a phone at night.
"""

import base64
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "assets" / "pictures"
PORT = 17_861
QUERY = "?seed=7&max_tokens=96"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
DESKTOP, PHONE = {"width": 1280, "height": 1000}, {"width": 390, "height": 760}
STRIP = """<body style="margin:0;padding:14px;display:flex;gap:14px;background:#e7e5e0;width:max-content">{}</body>"""
CHARTS = {
    "Speed-up against the lookahead k": "lookahead.png",
    "Time to the first token against the length of the prompt": "first-token.png",
}
TILE = '<img src="data:image/png;base64,{}" style="height:520px;border-radius:10px;box-shadow:0 1px 6px #0003">'


def main(reports: Sequence[str]) -> None:
    """Take the pictures of the page, or of the reports given."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        for report in reports:
            _charts(chromium, Path(report).resolve())
        if not reports:
            _page(chromium)


def _charts(chromium: Any, report: Path) -> None:
    """The speed-up by lookahead, and the time to the first token by the prompt's length."""
    page = chromium.new_context(viewport={"width": 900, "height": 700}).new_page()
    page.goto(report.as_uri())
    _rest(page)
    for heading, name in CHARTS.items():
        page.locator(f"figure[aria-label='{heading}']").screenshot(path=PICTURES / name)


def _page(chromium: Any) -> None:
    with _served() as address:
        page = _finished_run(chromium, address, viewport=DESKTOP)
        page.locator(".sd-token[data-kind=rejected]:visible").nth(-4).hover()
        page.wait_for_selector(".sd-tip:not([hidden])")
        page.screenshot(path=PICTURES / "page.png")
        tiles = [_race(page), _round(page), _sweep(page)]
        tiles.append(_finished_run(chromium, address, viewport=PHONE, color_scheme="dark").screenshot())
        _save_strip(chromium, tiles)


@contextmanager
def _served() -> Iterator[str]:
    address = f"http://127.0.0.1:{PORT}/"
    with subprocess.Popen([sys.executable, "app.py", "--port", str(PORT)], cwd=ROOT) as demo:
        try:
            while not _answers(address):
                time.sleep(0.1)
            yield address
        finally:
            demo.terminate()


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _finished_run(chromium: Any, address: str, **settings: Any) -> Any:
    """A page in which a run has just ended."""
    page = chromium.new_context(**settings).new_page()
    page.set_default_timeout(120_000)
    page.goto(address + QUERY)
    page.wait_for_selector(".sd[data-state=idle]")
    page.wait_for_function("document.querySelector('#max-tokens input[type=number]').value === '96'")
    page.get_by_role("button", name="Generate").click()
    page.wait_for_selector(".sd[data-state=done]")
    _rest(page)
    return page


def _race(page: Any) -> bytes:
    _open(page, "Race", "#race-start")
    page.wait_for_selector(".sd-race[data-state=done]")
    return _tile(page)


def _round(page: Any) -> bytes:
    """The last round in which a draft was refused."""
    _open(page, "Step through", None)
    page.keyboard.press("End")
    while not page.locator(".st-verdict.st-rejected:visible").count():
        page.keyboard.press("ArrowLeft")
    return _tile(page)


def _sweep(page: Any) -> bytes:
    _open(page, "Explore", "#explore-start")
    page.wait_for_selector(".sd-explore[data-state=done]")
    return _tile(page)


def _open(page: Any, view: str, start: str | None) -> None:
    page.get_by_role("tab", name=view, exact=True).click()
    if start:
        page.locator(start).click()


def _tile(page: Any) -> bytes:
    """The view that is open, from its tabs on."""
    _rest(page)
    box = page.locator("#views").bounding_box()
    top = box["y"] + page.evaluate("scrollY")
    clip = {"x": box["x"] - 12, "y": top - 6, "width": box["width"] + 24, "height": 740}
    picture: bytes = page.screenshot(clip=clip, full_page=True)
    return picture


def _rest(page: Any) -> None:
    """Until fades and the last frames of charts are over."""
    page.wait_for_timeout(2_000)


def _save_strip(chromium: Any, tiles: list[bytes]) -> None:
    page = chromium.new_context(viewport={"width": 3_200, "height": 548}).new_page()
    page.set_content(STRIP.format("".join(TILE.format(base64.b64encode(tile).decode()) for tile in tiles)))
    page.locator("body").screenshot(path=PICTURES / "strip.png")


if __name__ == "__main__":
    main(sys.argv[1:])
