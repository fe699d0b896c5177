"""Open pages of `wsjax report` in a real browser and use them: `make browser` (needs chromium).

Makes a sweep of a million rows, a validation and a calibration's report, writes their pages, and
looks at each: how long until it can be used, that nothing is fetched, filters, hovering, sorting,
a click, the dark theme, print, texts that overlap. With a directory as argument, pages and pictures
stay there.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from invented import calibration_report
from paths import DATA
from playwright.sync_api import (  # pyright: ignore[reportMissingImports] (in group browser)
    Browser,
    Page,
    sync_playwright,
)

import wsjax
from wsjax.fit.reports import write_validation

READY_MS = 3_000
MADE_S = 20
SIZE_MB = 8
SPEC = """
name = "million"
hardware = ["h200"]
[columns]
m = { from = 1, to = 8192, factor = 2 }
n = [1024, 2048, 3072, 4096, 6144, 8192, 14336, 28672]
k = [1024, 2048, 4096, 8192]
block_m = [64, 128]
block_n = { from = 64, to = 256, step = 32 }
block_k = [64, 128]
stages = { from = 2, to = 7, step = 1 }
mma_in_flight = [0, 1]
schedule = ["serial", "persistent", "pingpong", "cooperative"]
group_m = [1, 2, 4, 8]
"""
OVERLAPS = """() => {
  const texts = [...document.querySelectorAll(".figure svg text")].filter((text) =>
    text.textContent.trim() && text.getClientRects().length && !text.closest(".hoverlayer"));
  const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
  const found = [];
  boxes.forEach(([one, a], i) => boxes.slice(i + 1).forEach(([other, b]) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 2 && high > 3) found.push(`${one} / ${other}`);
  }));
  return found;
}"""
SCROLL = """async () => {
  for (let y = 0; y < document.body.scrollHeight; y += 500) {
    scrollTo(0, y);
    await new Promise((done) => setTimeout(done, 100));
  }
  scrollTo(0, 0);
}"""
failures: list[str] = []


def check(holds: bool, text: str) -> None:
    """Print what was looked at, and remember what does not hold."""
    print(f"{'ok  ' if holds else 'FAIL'} {text}")
    if not holds:
        failures.append(text)


@contextmanager
def opened(browser: Browser, path: Path, **options) -> Iterator[Page]:
    """A page that is ready; complains of errors and of whatever it fetches."""
    page = browser.new_page(viewport={"width": 1280, "height": 900}, **options)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    yield page
    check(not said, f"{path.name}: no errors {said or ''}")
    outside = [url for url in fetched if not url.startswith(("file:", "data:", "blob:"))]
    check(not outside, f"{path.name}: fetches nothing {outside or ''}")
    page.close()


def hover(page: Page, section: str) -> str:
    """What hovering over the middle of a section's figure says, or over a mark near it."""
    page.locator(f"#{section}").scroll_into_view_if_needed()
    page.wait_for_selector(f"#{section} .cartesianlayer")
    box = page.locator(f"#{section} .nsewdrag").first.bounding_box()
    assert box is not None
    for across in range(2, 19):
        for down in range(2, 19):
            x, y = box["x"] + box["width"] * across / 20, box["y"] + box["height"] * down / 20
            page.mouse.move(x, y)
            page.wait_for_timeout(30)
            texts = page.locator(f"#{section} .hoverlayer .hovertext").all_text_contents()
            if texts:
                return " ".join(texts)
    return ""


def numbers_of(page: Page, section: str, trace: int = 0, field: str = "z") -> str:
    """A trace's numbers as text, to see whether they change."""
    return page.evaluate(
        "([place, i, field]) => JSON.stringify(document.querySelector(place).data[i][field])",
        [f"#{section} .figure", trace, field],
    )


def ready_ms(page: Page) -> int:
    """How long after it was asked for the page could be used."""
    return int(page.locator("html").get_attribute("data-ready") or 0)


def look(browser: Browser, path: Path, shots: Path | None, use: Callable[[Page], None]) -> None:
    """All that must hold of any page, and what `use` does with this one."""
    with opened(browser, path) as page:
        times = [ready_ms(page)]
        use(page)
    for _ in range(2):
        with opened(browser, path) as page:
            times.append(ready_ms(page))
    check(min(times) < READY_MS, f"{path.name}: ready after {min(times)} ms (of {times})")
    for scheme in ("light", "dark"):
        with opened(browser, path, color_scheme=scheme) as page:
            page.evaluate(SCROLL)
            overlaps = page.evaluate(OVERLAPS)
            check(not overlaps, f"{path.name}, {scheme}: no texts overlap {overlaps[:4] or ''}")
            wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
            check(not wide, f"{path.name}, {scheme}: nothing sticks out")
            ink, paper = page.evaluate(
                "[getComputedStyle(document.querySelector('.figure .xtick text')).fill,"
                " getComputedStyle(document.body).backgroundColor]"
            )
            light = [sum(map(int, color[4:-1].split(","))) > 380 for color in (ink, paper)]
            check(light == [scheme == "dark", scheme == "light"], f"{path.name}: {scheme} colours")
            if shots:
                page.screenshot(path=shots / f"{path.stem}-{scheme}.png", full_page=True)
    with opened(browser, path) as page:
        pdf = page.pdf(path=shots and shots / f"{path.stem}.pdf", format="A4")
        check(pdf.startswith(b"%PDF") and len(pdf) > 20_000, f"{path.name}: prints")
    with opened(browser, path) as page:
        page.set_viewport_size({"width": 400, "height": 800})
        page.wait_for_timeout(300)
        wide = page.evaluate("document.documentElement.scrollWidth > innerWidth + 1")
        check(not wide, f"{path.name}: fits a narrow window")


def use_sweep(page: Page) -> None:
    """Filters, hovering, sorting, and a click on a problem."""
    count = page.locator("#count")
    before = count.inner_text()
    page.locator("#tiles").scroll_into_view_if_needed()
    all_tiles = numbers_of(page, "tiles")
    began = time.perf_counter()
    page.fill("#words", "m=16")
    page.wait_for_timeout(600)
    check(count.inner_text() != before, f"sweep: filter shows {count.inner_text()}")
    check(numbers_of(page, "tiles") != all_tiles, "sweep: the heat map follows the filter")
    page.fill("#words", "")
    page.wait_for_timeout(600)
    check(numbers_of(page, "tiles") == all_tiles, "sweep: and comes back")
    check(time.perf_counter() - began < 5, "sweep: filters answer")
    page.select_option("#filters select", label="pingpong")
    check("pingpong" in count.inner_text(), f"sweep: schedule shows {count.inner_text()}")
    check(numbers_of(page, "tiles") != all_tiles, "sweep: the heat map follows the schedule")
    page.select_option("#filters select", label="any")
    for section in ("tiles", "roofline", "limits", "waves"):
        said = hover(page, section)
        check(bool(said), f"sweep: hovering over {section} says {said[:70]!r}")
    page.click("#best th:has-text('TFLOP/s') button")
    page.click("#best th:has-text('TFLOP/s') button")
    sort = page.locator("#best th[aria-sort]").get_attribute("aria-sort")
    check(sort == "descending", "sweep: a heading sorts")
    page.locator("#best td button").first.click()
    check(
        page.locator("#best th:has-text('over')").count() == 1, "sweep: a click shows one problem"
    )
    check(" problems" not in count.inner_text(), f"sweep: that is {count.inner_text()}")


def use_spread(page: Page) -> None:
    """A filter, and hovering."""
    page.locator("#spread").scroll_into_view_if_needed()
    page.wait_for_selector("#spread .cartesianlayer")
    medians = numbers_of(page, "spread", 0, "median")
    page.fill("#words", "m=16")
    page.wait_for_timeout(600)
    said = page.locator("#count").inner_text()
    check(said == "32 of 448 rows", f"spread: filter shows {said}")
    check(numbers_of(page, "spread", 0, "median") != medians, "spread: boxes follow the filter")
    said = hover(page, "spread")
    check(bool(said), f"spread: hovering says {said[:70]!r}")


def use_rows(page: Page) -> None:
    """Filters and hovering."""
    count = page.locator("#count")
    before = count.inner_text()
    page.locator("#residuals").scroll_into_view_if_needed()
    page.wait_for_selector("#residuals .cartesianlayer")
    boxes = numbers_of(page, "residuals", 0, "median")
    page.select_option("#filters label:has-text('limiter') select", index=1)
    check(count.inner_text() != before, f"rows: filter shows {count.inner_text()}")
    check(numbers_of(page, "residuals", 0, "median") != boxes, "rows: errors follow the filter")
    page.select_option("#filters label:has-text('limiter') select", index=0)
    page.select_option("#filters label:has-text('compare') select", label="tile")
    check("×" in numbers_of(page, "residuals", 0, "y"), "rows: compared by tile")
    for section in ("parity", "residuals", "coverage", "regret"):
        said = hover(page, section)
        check(bool(said), f"rows: hovering over {section} says {said[:70]!r}")


def use_calibration(page: Page) -> None:
    """Its own figures, and those of rows."""
    use_rows(page)
    for section in ("parameters", "correlations", "ablations"):
        said = hover(page, section)
        check(bool(said), f"calibration: hovering over {section} says {said[:70]!r}")


def main(folder: Path) -> None:
    """Make the pages in `folder` and look at them."""
    (folder / "million.toml").write_text(SPEC)
    summary = wsjax.sweep(folder / "million.toml", folder / "million")
    check(summary.rows >= 10**6, f"sweep: {summary.rows:,} rows")
    began = time.perf_counter()
    million = wsjax.report(folder / "million").path
    seconds = time.perf_counter() - began
    check(seconds < MADE_S, f"{million.name}: made in {seconds:.1f} s")
    (folder / "spread.toml").write_text(f'{SPEC}[output]\nkeep = "quantiles"\n')
    wsjax.sweep(folder / "spread.toml", folder / "spread")
    (folder / "validation").mkdir(exist_ok=True)
    found = wsjax.validate(DATA / "h200_gemm_ws_excerpt.csv.gz", "h200-gluon")
    write_validation(found, folder / "validation")
    calibration_report(folder / "calibration")
    pages = {
        million: use_sweep,
        wsjax.report(folder / "spread").path: use_spread,
        wsjax.report(folder / "validation").path: use_rows,
        wsjax.report(folder / "calibration").path: use_calibration,
    }
    shots = folder if len(sys.argv) > 1 else None
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for path, use in pages.items():
            size = path.stat().st_size / 1e6
            check(size < SIZE_MB, f"{path.name}: {size:.1f} MB")
            look(browser, path, shots, use)
        browser.close()
    if failures:
        sys.exit(f"{len(failures)} do not hold")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
