"""Rules that hold for every view of the page, read from the elements themselves: where they are, and what axe says.

`docs/design/014-look.md` has the reasons for geometry in place of stored pictures.
"""

import json
import os
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from playwright.sync_api import Page
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

WIDTHS = {1440: 900, 1024: 768, 768: 1024, 390: 844}
"""The height of a window by its width."""
AXE = Path(__file__).parent / "ui" / "axe"
LAWS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]

FRAMES = Path(__file__).parent / "ui" / "frames.json"
"""Where the chief parts of each view are, by the width of the window: left edge and width in pixels."""
SLACK = 0.05
"""By so much of the window a part may stand elsewhere: fonts are not the same on every machine."""

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

  // Nothing scrolls sideways but what is as wide as its data: code, tables of data, answers side by side.
  for (const each of all) {
    if (!scrolls(style(each).overflowX) || each.scrollWidth <= each.clientWidth + 1) continue;
    if (!each.closest("pre, textarea, input, .table-scroll, .matrix-scroll, .results, .json, .wire-rows, .formula"))
      say("scrolls sideways", each);
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
    if (hit?.closest(".dialog-foot")) continue; // the body of the dialog scrolls below its foot
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

THEMES = """() => {
  const root = document.documentElement;
  const before = root.dataset.theme;
  const boxes = () =>
    [...document.querySelectorAll("body *")].map((each) => {
      const { left, top, width, height } = each.getBoundingClientRect();
      return [left, top, width, height].map(Math.round).join(" ");
    });
  root.dataset.theme = "light";
  const light = boxes();
  root.dataset.theme = "dark";
  const dark = boxes();
  if (before === undefined) delete root.dataset.theme;
  else root.dataset.theme = before;
  return [...document.querySelectorAll("body *")]
    .filter((_, index) => light[index] !== dark[index])
    .slice(0, 5)
    .map((each) => `elsewhere in the dark theme: ${each.outerHTML.slice(0, 120)}`);
}"""

PARTS = """() => {
  const found = {};
  const parts = "main, header, nav, aside, table, footer, form, section, [role=tablist], [role=grid], [role=search]";
  for (const each of document.querySelectorAll(parts)) {
    const box = each.getBoundingClientRect();
    const name = `${each.tagName.toLowerCase()}.${each.classList[0] ?? each.getAttribute("role") ?? ""}`;
    if (!box.width || !box.height || name in found || each.closest("article, li, tr, .unseen, dialog")) continue;
    found[name] = [Math.round(box.left), Math.round(box.width)];
  }
  return found;
}"""

HAS_PARTS = f"(names) => {{ const found = ({PARTS})(); return names.every((name) => name in found); }}"
CHECK = """async ({ laws, only, within }) => {
  const { violations } = await axe.run(document.querySelector(within) ?? document, {
    runOnly: only.length ? { type: "rule", values: only } : { type: "tag", values: laws },
    resultTypes: ["violations"],
  });
  return violations.flatMap((each) =>
    each.nodes.map((node) => `${each.id} (${each.help}): ${node.html.slice(0, 160)} ${node.any[0]?.message ?? ""}`),
  );
}"""
COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules of axe that a theme can break."""


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


def problems(page: Page, *, is_whole: bool = True, with_axe: bool = True, view: str = "") -> Iterator[str]:
    """What is in the wrong place in any width and either theme, and what axe finds against WCAG A and AA; with the name
    of a view also which of its chief parts are not where they are on record.

    axe takes most of the time. If not `is_whole`, it looks at the view alone, whose frame another state has shown, and
    in the dark theme at the colours alone; the themes are compared in these two widths.
    """
    if not page.evaluate("() => 'axe' in globalThis"):
        page.evaluate(axe_source())
        page.evaluate(STILL)
    record: dict[str, Any] = json.loads(FRAMES.read_text("utf-8"))
    found: list[str]
    seen: dict[str, dict[str, list[int]]] = {}
    page.emulate_media(color_scheme="light")
    for width, height in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": height})
        if width == 390:
            page.emulate_media(color_scheme="dark")
        page.evaluate(SETTLED)
        if view:  # a part may need a second answer of the API; one that never comes is told below
            with suppress(PlaywrightTimeoutError):
                page.wait_for_function(HAS_PARTS, arg=[*record.get(view, {}).get(str(width), ())])
        themes = f"...({THEMES})()" if is_whole or width in (1440, 390) else ""
        # In one call: each took as long to go to the page and back as to look at it.
        found, seen[str(width)] = page.evaluate(f"() => [[...({LAYOUT})(), {themes}], ({PARTS})()]")
        if with_axe and width in (1440, 390):
            only = COLOURS if width == 390 and not is_whole else []
            within = "html" if is_whole else ".shell-view"
            found += page.evaluate(CHECK, {"laws": LAWS, "only": only, "within": within})
        yield from (f"{width}: {each}" for each in found)
    if view:
        yield from moved_parts(view, seen, record)


def moved_parts(view: str, seen: dict[str, dict[str, list[int]]], record: dict[str, Any]) -> Iterator[str]:
    """Chief parts that were seen elsewhere than on record. FRAMES=record writes the record anew."""
    if os.environ.get("FRAMES") == "record":
        record[view] = seen
        lines = (f"{json.dumps(name)}: {json.dumps(record[name], sort_keys=True)}" for name in sorted(record))
        FRAMES.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
        return
    for wide, parts in record.get(view, {}).items():
        for name, place in parts.items():
            now = seen[wide].get(name)
            slack = int(wide) * SLACK
            if now is None:
                yield f"{wide}: {name} is not there any more"
            elif any(abs(old - new) > slack for old, new in zip(place, now, strict=True)):
                yield f"{wide}: {name} was at {place[0]}, {place[1]} wide; it is at {now[0]}, {now[1]} wide"
