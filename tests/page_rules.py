"""Rules that hold for every view of the page, read from the elements themselves: where they are, and what axe says."""

import tomllib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from playwright.sync_api import Page

WIDTHS = {1440: 900, 1024: 768, 768: 1024, 390: 844}
"""The height of a window by its width."""
AXE = Path(__file__).parent / "ui" / "axe"
LAWS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]

LAYOUT = """() => {
  const found = [];
  const name = (each) =>
    `${each.tagName.toLowerCase()}${each.className && typeof each.className === "string"
      ? "." + each.className.trim().split(/\\s+/).join(".") : ""} "${(each.textContent || "").trim().slice(0, 40)}"`;
  const say = (rule, each) => found.push(`${rule}: ${name(each)}`);
  const style = (each) => getComputedStyle(each);
  const isShown = (each) => each.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const scrolls = (value) => value === "auto" || value === "scroll";
  const above = function* (each) {
    for (let up = each.parentElement; up; up = up.parentElement) yield up;
  };
  const top = document.querySelector("dialog[open]:last-of-type") ?? document.body;
  const all = [...top.querySelectorAll("*")].filter((each) => isShown(each) && !each.closest("svg, .cm-editor, math"));

  // Nothing sticks out of the window, unless it can be scrolled to inside of the view.
  if (document.scrollingElement.scrollWidth > innerWidth) found.push("the page is wider than the window");
  for (const each of all) {
    const box = each.getBoundingClientRect();
    if (!box.width || !box.height || each.closest(".unseen")) continue;
    if (box.right <= innerWidth + 1 && box.left >= -1) continue;
    if (![...above(each)].some((up) => scrolls(style(up).overflowX) || style(up).overflowX === "hidden"))
      say("outside of the window", each);
  }

  // What is cut ends in an ellipsis, and there is a way to see it whole: a title, or something to open.
  for (const each of all) {
    const has = [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!has || each.closest(".unseen, textarea, [aria-hidden=true]")) continue;
    const own = style(each);
    const hides = own.overflowX === "hidden" || own.overflowX === "clip";
    if (hides && each.scrollWidth > each.clientWidth + 1 && own.display !== "inline") {
      if (own.textOverflow !== "ellipsis") say("cut without an ellipsis", each);
      each.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
      if (own.textOverflow === "ellipsis" && !each.closest("[title]"))
        say("cut without a way to see it whole", each);
    }
    if (each.matches("button, a, [role=tab], h1, h2, h3") && hides && each.scrollHeight > each.clientHeight + 3)
      say("cut at the bottom", each);
  }

  // Nothing that can be used is covered by something else.
  for (const each of top.querySelectorAll("button, a[href], input, select, textarea, [role=tab], [role=radio]")) {
    if (!isShown(each) || each.closest(".unseen, .cm-editor") || each.disabled) continue;
    const box = each.getBoundingClientRect();
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    const inside = (area) => x > area.left && x < area.right && y > area.top && y < area.bottom;
    if (!box.width || !inside({ left: 0, right: innerWidth, top: 0, bottom: innerHeight })) continue;
    const clipped = [...above(each)].some(
      (up) => style(up).overflowY !== "visible" && !inside(up.getBoundingClientRect()),
    );
    if (clipped) continue;
    const hit = document.elementFromPoint(x, y);
    if (hit && !each.contains(hit) && !hit.contains(each) && !each.closest("label")?.contains(hit))
      say(`covered by ${name(hit)}`, each);
  }

  // The header holds what is in it, one beside the other.
  const header = document.querySelector(".shell-header");
  const parts = [...header.querySelectorAll(":scope > :not(.shell-gap)")].filter(isShown);
  const frame = header.getBoundingClientRect();
  parts.forEach((each, n) => {
    const box = each.getBoundingClientRect();
    if (box.right > frame.right + 0.5 || box.bottom > frame.bottom + 0.5 || box.top < frame.top - 0.5)
      say("outside of the header", each);
    for (const other of parts.slice(0, n)) {
      const next = other.getBoundingClientRect();
      if (box.left < next.right - 0.5 && next.left < box.right - 0.5 && box.top < next.bottom - 0.5 &&
          next.top < box.bottom - 0.5) say(`over ${name(other)}`, each);
    }
  });

  // A dialog is in sight from its head to its foot.
  for (const each of document.querySelectorAll("dialog[open]")) {
    const box = each.getBoundingClientRect();
    if (box.bottom > innerHeight + 1 || box.top < -1 || box.right > innerWidth + 1 || box.left < -1)
      say("a dialog outside of the window", each);
  }
  return [...new Set(found)];
}"""

CHECK = """async (laws) => {
  const { violations } = await axe.run(document, {
    runOnly: { type: "tag", values: laws },
    resultTypes: ["violations"],
  });
  return violations.flatMap((each) =>
    each.nodes.map((node) => `${each.id} (${each.help}): ${node.html.slice(0, 160)} ${node.any[0]?.message ?? ""}`),
  );
}"""


def axe_source() -> str:
    """axe-core as it was vendored."""
    told, code = tomllib.loads((AXE / "VENDOR.toml").read_text("utf-8")), (AXE / "axe.min.js").read_bytes()
    assert sha256(code).hexdigest() == told["sha256"], "run tools/vendor.py"
    return code.decode()


STILL = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("* { transition: none !important; animation: none !important; }");
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}"""
SETTLED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def problems(page: Page) -> Iterator[str]:
    """What is in the wrong place in any width, and what axe finds against WCAG A and AA, in both themes."""
    if not page.evaluate("() => 'axe' in globalThis"):
        page.evaluate(axe_source())
        page.evaluate(STILL)
    for width, scheme in ((1440, "light"), (1024, "dark"), (768, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": WIDTHS[width]})
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.evaluate(SETTLED)
        found: list[str] = page.evaluate(LAYOUT)
        if width in (1440, 390):
            found += page.evaluate(CHECK, LAWS)
        yield from (f"{width} {scheme}: {each}" for each in found)
