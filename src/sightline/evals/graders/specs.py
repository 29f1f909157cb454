"""Graders as a suite writes them, one after another in a list, to specifications."""

from collections.abc import Sequence

from sightline.evals.graders.fields import Fields, Readers, shown
from sightline.evals.place import Place, Problem
from sightline.evals.suite import GraderSpec
from sightline.model.json import Json, JsonObject

COMMON = ("type", "name", "weight", "required", "min_score", "negate")
RENAMED = {"rubric": "rubrics", "llm-judge": "llm-grader", "code-judge": "code-grader"}
_IN_NAMES = ("value", "skill")
_LONGEST_PATTERN = 30


def kind_of(word: str) -> str:
    """The type that a word names: older suites write underscores."""
    return word.replace("_", "-")


def read_specs(
    values: Sequence[Json], place: Place, path: str, readers: Readers
) -> tuple[tuple[GraderSpec, ...], tuple[Problem, ...]]:
    """The specifications of a list. Its texts are together one rubric, which weighs as much as they are many."""
    specs: list[GraderSpec] = []
    problems: list[Problem] = []
    texts = [each for each in values if isinstance(each, str)]
    told = False
    for index, value in enumerate(values):
        fields = Fields(value if isinstance(value, dict) else {}, place, f"{path}[{index}]", readers)
        if isinstance(value, dict):
            specs.append(_spec(value, fields))
        elif not isinstance(value, str):
            fields.tell("", f"a grader or a text is expected, not {shown(value)}")
        elif not value.strip():
            fields.tell("", "an empty text is no criterion", "Say what the answer must be like, or take it out.")
        elif not told:
            told = True
            criteria: list[Json] = [text for text in texts if text.strip()]
            specs.append(
                GraderSpec(
                    type="rubrics",
                    name="rubrics",
                    weight=float(len(criteria)),
                    config={"criteria": criteria},
                    place=place,
                )
            )
        problems += fields.problems
    return tuple(specs), tuple(problems)


def _spec(value: JsonObject, fields: Fields) -> GraderSpec:
    kind = kind_of(fields.text("type", needed=True, why=f"One of: {', '.join(fields.readers)}."))
    weight = fields.number("weight")
    return GraderSpec(
        type=kind,
        name=fields.text("name") or name_of(kind, value),
        weight=1.0 if weight is None else weight,
        required=_required(fields),
        min_score=fields.number("min_score", most=1.0, above=True),
        negate=fields.flag("negate"),
        config={name: inner for name, inner in value.items() if name not in COMMON},
        place=fields.place,
    )


def _required(fields: Fields) -> float | None:
    value = fields.raw("required")
    if value is None or isinstance(value, bool):
        return 0.0 if value else None
    return fields.number("required", most=1.0, above=True)


def name_of(kind: str, config: JsonObject) -> str:
    """The name of a grader to which nobody gave one: its type, and what it looks for."""
    value = next((config[name] for name in _IN_NAMES if name in config), None)
    if isinstance(value, list):
        return f"{kind}-{len(value)}"
    if not isinstance(value, str):
        return kind
    return f"{kind}-{value[:_LONGEST_PATTERN] if kind == 'regex' else value}"
