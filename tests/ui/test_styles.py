"""Styles of one view stay in it: a class that stands alone in a selector is styled by one view only."""

import re
from collections import defaultdict
from pathlib import Path

STYLES = Path("src/sightline/ui/styles")
VIEWS = {
    "chat": ("chat", "chat-pairs", "chat-panels", "panels-chat"),
    "evals": ("evals", "evals-case", "evals-plots"),
    "request": ("request", "sections", "wire", "exhibits", "panels", "narrow"),
    "runs": ("runs", "run-card"),
    "traffic": ("traffic", "traffic-states"),
}
SHARED = {"answer", "dialogs", "editor", "elements", "overlays", "shell", "text", "tokens", "widgets"}
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


def test_every_stylesheet_belongs_to_a_view_or_to_all() -> None:
    of_views = {name for names in VIEWS.values() for name in names}
    assert of_views | SHARED == {path.stem for path in STYLES.glob("*.css")}


def test_no_class_is_styled_bare_by_two_views() -> None:
    owners: dict[str, set[str]] = defaultdict(set)
    for view, names in VIEWS.items():
        for name in names:
            for each in bare_classes((STYLES / f"{name}.css").read_text("utf-8")):
                owners[each].add(view)
    assert {name: sorted(views) for name, views in owners.items() if len(views) > 1} == {}
