"""The one reader of graders as a suite writes them: of a case, of a turn, and of a composite.

What is common to all types is read here; what belongs to one type is carried as it is, and the grader itself checks it.
"""

from sightline.evals.core.reading.findings import SuiteFindings
from sightline.evals.core.reading.node import Node
from sightline.evals.core.suite import GraderSpec
from sightline.model.json import Json

_COMMON = ("type", "name", "weight", "required", "min_score", "negate")


def read_graders(
    owner: Node, keys: tuple[str, ...], findings: SuiteFindings, *, is_turn: bool = False
) -> tuple[GraderSpec, ...]:
    """The graders under these keys. Bare texts are the criteria of one rubric, where the first of them stands.

    As in AgentV it weighs as much as they are many, and in a turn as much as one.
    """
    specs: list[GraderSpec] = []
    for key in keys:
        node = owner.get(key)
        if node is not None:
            specs += read_list(node, key, findings, is_turn=is_turn)
    return tuple(specs)


def read_list(node: Node, key: str, findings: SuiteFindings, *, is_turn: bool = False) -> list[GraderSpec]:
    """The graders of one list, which is called `key`."""
    specs: list[GraderSpec | None] = []
    criteria: list[Json] = []
    rubric: tuple[int, Node] | None = None
    for item in findings.items(node, key, "Begin each grader with a dash."):
        if item.text is not None:
            if not item.text.strip():
                findings.wrong(item, "the criterion is empty", "Say what has to hold, or remove it.")
                continue
            if rubric is None:
                rubric = (len(specs), item)
                specs.append(None)
            criteria.append({"id": f"rubric-{len(criteria) + 1}", "outcome": item.text})
        elif findings.is_mapping(item, "a grader", "Write {type: contains, value: …}, or a sentence that has to hold."):
            specs.append(_read_grader(item, findings))
    if rubric is not None:
        index, first = rubric
        weight = 1.0 if is_turn else float(len(criteria))
        specs[index] = GraderSpec(
            type="rubrics", name="rubrics", weight=weight, config={"criteria": criteria}, place=first.place
        )
    return [spec for spec in specs if spec is not None]


def _read_grader(node: Node, findings: SuiteFindings) -> GraderSpec:
    kind = findings.text(node, "type")
    if not kind:
        findings.wrong(node, "the grader has no type", "Write type: contains, for example.")
    weight = findings.number(node, "weight", least=0)
    return GraderSpec(
        type=kind,
        name=findings.text(node, "name") or kind,
        weight=1.0 if weight is None else weight,
        required=_read_required(node, findings),
        min_score=findings.number(node, "min_score", least=0, most=1),
        negate=bool(findings.flag(node, "negate")),
        config={
            key: each.json for key, each in node.members.items() if key not in _COMMON and not key.startswith("x-")
        },
        place=node.place,
    )


def _read_required(node: Node, findings: SuiteFindings) -> bool | float | None:
    required = node.get("required")
    if required is None or required.value is False:
        return None
    if required.value is True:
        return True
    # AgentV drops a floor of 0. Here 0 is a number like any other: it is always reached, but the grader has to run.
    least = findings.number(node, "required", least=0, most=1)
    return None if least is None else float(least)
