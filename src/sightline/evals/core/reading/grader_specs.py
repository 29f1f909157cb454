"""The one reader of graders as a suite writes them: of a case, of a turn, and of a composite.

What is common to all types is read here; what belongs to one type is carried as it is, and the grader itself checks it.
"""

from typing import Annotated, ClassVar

import msgspec

from sightline.catalog.reading import REST, key
from sightline.evals.core.reading.document import Amount, Node, Share, SuiteFindings, Text
from sightline.evals.core.suite import GraderSpec
from sightline.model.json import Json


def read_graders(
    owner: Node, keys: tuple[str, ...], findings: SuiteFindings, *, is_turn: bool = False
) -> tuple[GraderSpec, ...]:
    """The graders under these keys. Bare texts are the criteria of one rubric, where the first of them stands.

    As in AgentV it weighs as much as they are many, and in a turn as much as one.
    """
    specs: list[GraderSpec] = []
    for name in keys:
        node = owner.get(name)
        if node is not None:
            specs += read_list(node, name, findings, is_turn=is_turn)
    return tuple(specs)


def read_list(node: Node, name: str, findings: SuiteFindings, *, is_turn: bool = False) -> list[GraderSpec]:
    """The graders of one list, which is called `name`."""
    specs: list[GraderSpec | None] = []
    criteria: list[Json] = []
    rubric: tuple[int, Node] | None = None
    for item in findings.items(node, name, "Begin each grader with a dash."):
        if item.text is not None:
            if not item.text.strip():
                findings.wrong(item, "the criterion is empty", "Say what has to hold, or remove it.")
                continue
            if rubric is None:
                rubric = (len(specs), item)
                specs.append(None)
            criteria.append({"id": f"rubric-{len(criteria) + 1}", "outcome": item.text})
        else:
            specs.append(_read_grader(item, findings))
    if rubric is not None:
        index, first = rubric
        weight = 1.0 if is_turn else float(len(criteria))
        specs[index] = GraderSpec(
            type="rubrics", name="rubrics", weight=weight, config={"criteria": criteria}, place=first.place
        )
    return [spec for spec in specs if spec is not None]


class GraderConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What all types of graders have in common; `config` is what belongs to one type, which reads it itself.

    AgentV drops a floor of 0. Here 0 is a number like any other: it is always reached, but the grader has to run.
    """

    TITLE: ClassVar[str] = "a grader"
    EXAMPLE: ClassVar[str] = "Write {type: contains, value: …}, or a sentence that has to hold."

    type: Annotated[Text, key(hint="Write type: contains, for example.")]
    name: str = ""
    weight: Amount = 1.0
    required: bool | Share | None = None
    min_score: Share | None = None
    negate: bool = False
    config: Annotated[dict[str, Json], REST] = {}


def _read_grader(node: Node, findings: SuiteFindings) -> GraderSpec | None:
    config = findings.read(node, GraderConfig)
    if config is None:
        return None
    return GraderSpec(
        type=config.type,
        name=config.name or config.type,
        weight=config.weight,
        required=None if config.required is False else config.required,
        min_score=config.min_score,
        negate=config.negate,
        config=config.config,
        place=node.place,
    )
