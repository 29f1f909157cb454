"""Styles of a view reach nothing outside of it: each rule is inside a scope that names the view."""

import re
from pathlib import Path

import pytest

UI = Path("src/sightline/ui")
VIEWS = sorted(path.name for path in (UI / "views").iterdir())
SHEETS = sorted(UI.rglob("*.css"))
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
SCOPE = re.compile(r':where\((\[data-view~="\w+"\](?:, \[data-view~="\w+"\])*)\)')


def outer_selectors(css: str) -> list[str]:
    """The selectors of the outermost rules; what stands around them is only at-rules, and keyframes have none."""
    found: list[str] = []
    enclosing: list[str] = []
    text = ""
    for token in re.split(r"([{};])", COMMENT.sub("", css)):
        match token:
            case "{":
                is_outermost = all(each.startswith("@") for each in enclosing)
                if is_outermost and not text.startswith("@") and not any("@keyframes" in each for each in enclosing):
                    found.append(" ".join(text.split()))
                enclosing.append(text)
            case "}":
                enclosing.pop()
            case ";":
                pass
            case _:
                text = token.strip()
    return found


def reaches_out(view: str, selector: str) -> bool:
    """Whether an outermost rule of a view's stylesheet could style another view. The frame around all views styles
    itself by names of its own."""
    scope = SCOPE.fullmatch(selector)
    if scope is not None:
        return view not in re.findall(r'~="(\w+)"', scope[1])
    return not (view == "shell" and re.fullmatch(r"\.shell(-view|-frame)?", selector))


def test_outer_selectors_are_found_in_nested_layers() -> None:
    css = "@layer a { @keyframes k { to { top: 0; } } @media (x) { .one, .two { & .three { top: 0; } } } .four { } }"
    assert outer_selectors(css) == [".one, .two", ".four"]


def test_a_rule_without_the_scope_of_its_view_reaches_out() -> None:
    assert reaches_out("evals", ".cell")
    assert reaches_out("evals", ':where([data-view~="traffic"])')
    assert not reaches_out("runs", ':where([data-view~="runs"], [data-view~="chat"])')
    assert not reaches_out("shell", ".shell-view")


def test_every_stylesheet_is_in_the_kit_or_in_a_view_and_the_page_loads_it() -> None:
    assert {path.parent for path in SHEETS} <= {UI / "kit", *(UI / "views" / view for view in VIEWS)}
    page = (UI / "index.html").read_text("utf-8")
    assert sorted(re.findall(r"{ui}/([\w/-]+\.css)", page)) == [path.relative_to(UI).as_posix() for path in SHEETS]


@pytest.mark.parametrize("path", [path for path in SHEETS if path.parent != UI / "kit"], ids=lambda path: path.stem)
def test_styles_of_a_view_stay_in_it(path: Path) -> None:
    view = path.parent.name
    css = path.read_text("utf-8")
    assert [each for each in outer_selectors(css) if reaches_out(view, each)] == []
    layers = re.findall(r"@layer (\w+) {", css)
    assert layers == ["shell" if view == "interception" else view]
