"""Takes pictures of the built site, to be looked at: wide and narrow screens, light and dark.

``make screenshots`` builds the site and writes them to ``docs/_build/screenshots``. A page whose
contents are wider than its screen is named, and is an error. Needs Chromium and its driver (Debian:
``apt-get install chromium chromium-driver``); without them it says so and does nothing.
"""

from __future__ import annotations

import base64
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse
from selenium import webdriver

import ucle

BUILT = Path(__file__).parent / "_build" / "html"
PICTURES = BUILT.parent / "screenshots"

PROGRAM = BUILT.parent / "program.html"
"""What a notebook shows of a program, a tensor and a result, on a page like a notebook's."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TALLEST = 6000
"""Pixels of a page that are taken."""


@dataclass(frozen=True)
class Screen:
    """A way to look at a page."""

    name: str
    width: int
    dark: bool = False


SCREENS = (
    Screen("wide", 1400),
    Screen("narrow", 390),
    Screen("dark", 1400, dark=True),
    Screen("dark-narrow", 390, dark=True),
)


def main(names: list[str]) -> int:
    """Take pictures of the pages of these names, or of all; 1 if one of them overflows."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        print("no pictures: there is no Chromium, or not its driver (chromedriver)")
        return 0
    write_program()
    pages = [PROGRAM] if not names or PROGRAM.stem in names else []
    pages += [
        page
        for page in sorted(BUILT.rglob("*.html"))
        if "_" not in page.relative_to(BUILT).parts[0][:1] and (not names or page.stem in names)
    ]
    PICTURES.mkdir(parents=True, exist_ok=True)
    overflowing = 0
    with running(browser, driver) as chromium:
        for page in pages:
            for screen in SCREENS:
                picture = PICTURES / f"{_title(page)}-{screen.name}.png"
                if over := take(chromium, page, screen, picture):
                    overflowing += 1
                    print(f"{page.name} is {over} pixels wider than a screen of {screen.width}")
    print(f"{len(pages) * len(SCREENS)} pictures in {PICTURES}")
    return 1 if overflowing or not pages else 0


def _title(page: Path) -> str:
    """Return a page's name with its folder, as several are called index."""
    folder = page.parent.relative_to(BUILT).parts if page.is_relative_to(BUILT) else ()
    return "-".join((*folder, page.stem))


def write_program() -> None:
    """Write the page of two layers of a graph convolution: program, result and a lazy tensor."""
    sizes = {"A": (3000, 3000), "H": (3000, 256), "V": (256, 64), "W": (64, 16)}
    random = np.random.default_rng(0)
    program = ucle.einsum_program(
        "T[i,n] = relu(A[i,l] * H[l,m] * V[m,n]); Z[i,c] = relu(A[i,l] * T[l,n] * W[n,c])",
        inputs={
            name: scipy.sparse.random_array(s, density=0.01, rng=random)
            for name, s in sizes.items()
        },
    )
    edges = ucle.tensor("edges.parquet", axes=("src", "dst"))
    features = ucle.tensor("features.parquet", axes=("dst", "feature"))
    with program.execute() as result:
        pages = (program.explain("html"), result, (edges @ features).relu())
        parts = [page if isinstance(page, str) else page._repr_html_() for page in pages]
    PROGRAM.write_text(
        "<!DOCTYPE html><meta charset='utf-8'><meta name='color-scheme' content='light dark'>"
        "<meta name='viewport' content='width=device-width'><title>program</title>"
        # Jupyter keeps outputs beside a margin, and lets what is too wide scroll.
        "<body style='margin: 1em 1em 1em 4em; font: 14px sans-serif'><div style='overflow: auto'>"
        f"{'<hr>'.join(parts)}</div>",
        encoding="utf-8",
    )


@contextmanager
def running(browser: str, driver: str) -> Iterator[webdriver.Chrome]:
    """A browser without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    chromium = webdriver.Chrome(options, webdriver.ChromeService(driver))
    try:
        yield chromium
    finally:
        chromium.quit()


def take(chromium: webdriver.Chrome, page: Path, screen: Screen, picture: Path) -> int:
    """Take a picture of a page; returns by how many pixels its contents leave the screen."""
    size = {"width": screen.width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    scheme = {"name": "prefers-color-scheme", "value": "dark" if screen.dark else "light"}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    chromium.get(page.as_uri())
    wide, tall = chromium.execute_script(
        "const e = document.documentElement; return [e.scrollWidth, e.scrollHeight]"
    )
    clip = {"x": 0, "y": 0, "width": screen.width, "height": min(tall, TALLEST), "scale": 1}
    taken = chromium.execute_cdp_cmd(
        "Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True}
    )
    picture.write_bytes(base64.b64decode(taken["data"]))
    return max(0, wide - screen.width)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
