"""Styles of one view stay in it: a class that stands alone in a selector is styled by one view only."""

import re
from collections import defaultdict
from pathlib import Path

UI = Path("src/sightline/ui")
VIEWS = sorted(path for path in (UI / "views").iterdir() if path.name != "shell")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
ALONE = re.compile(r"\.([\w-]+)(?:[.:][\w-]+(?:\([^)]*\))?)*")
BETWEEN_SELECTORS = re.compile(r",(?![^()]*\))")


def bare_classes(css: str) -> set[str]:
    """The classes that a rule styles wherever they stand: the whole of an outermost selector."""
    found: set[str] = set()
    enclosing: list[str] = []
    text = ""
    for token in re.split(r"([{};])", COMMENT.sub("", css)):
        match token:
            case "{":
                enclosing.append(text)
                is_outermost = all(each.startswith("@") for each in enclosing[:-1])
                if is_outermost and not text.startswith("@"):
                    alone = (ALONE.fullmatch(each.strip()) for each in BETWEEN_SELECTORS.split(text))
                    found |= {each[1] for each in alone if each is not None}
            case "}":
                enclosing.pop()
            case ";":
                pass
            case _:
                text = token.strip()
    return found


def test_bare_classes_are_found_in_nested_layers_and_lists() -> None:
    css = "@layer a { @media (x) { .one, .two:is(.a, .b) { & .three { color: red; } } } .four .five { top: 0; } }"
    assert bare_classes(css) == {"one", "two"}


def test_every_stylesheet_is_in_the_kit_or_in_a_view_and_the_page_loads_it() -> None:
    folders = {UI / "kit", UI / "views/shell", *VIEWS}
    sheets = sorted(path for path in UI.rglob("*.css"))
    assert {path.parent for path in sheets} <= folders
    page = (UI / "index.html").read_text("utf-8")
    assert sorted(re.findall(r"{ui}/([\w/-]+\.css)", page)) == [path.relative_to(UI).as_posix() for path in sheets]


def test_no_class_is_styled_bare_by_two_views() -> None:
    owners: dict[str, set[str]] = defaultdict(set)
    for view in VIEWS:
        for sheet in view.glob("*.css"):
            for each in bare_classes(sheet.read_text("utf-8")):
                owners[each].add(view.name)
    assert {name: sorted(views) for name, views in owners.items() if len(views) > 1} == {}
