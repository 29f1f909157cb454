"""The names of graders: of their types, older ones included, and of those to which the suite gives none."""

from sightline.model.json import JsonObject

RENAMED = {"rubric": "rubrics", "llm-judge": "llm-grader", "code-judge": "code-grader"}
_IN_NAMES = ("value", "skill")
_LONGEST_PATTERN = 30


def kind_of(word: str) -> str:
    """The type that a word names: older suites write underscores."""
    return word.replace("_", "-")


def name_of(kind: str, config: JsonObject) -> str:
    """The name of a grader to which nobody gave one: its type, and what it looks for."""
    value = next((config[name] for name in _IN_NAMES if name in config), None)
    if isinstance(value, list):
        return f"{kind}-{len(value)}"
    if not isinstance(value, str):
        return kind
    return f"{kind}-{value[:_LONGEST_PATTERN] if kind == 'regex' else value}"
