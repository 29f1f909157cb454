"""The form in which a judge is asked to answer, as JSON Schema that every target takes.

Objects are closed and complete, and numbers have no bounds, which some refuse: those are held when the answer is read.
"""

from collections.abc import Sequence

from sightline.evals.core.graders.criterion import MOST_POINTS, Criterion
from sightline.model.json import Json, JsonObject


def _of(**fields: Json) -> JsonObject:
    """An object with these fields and no others."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


_TEXT: JsonObject = {"type": "string"}
_TRUTH: JsonObject = {"type": "boolean"}

FREE: JsonObject = _of(
    reasoning=_TEXT,
    assertions={"type": "array", "items": _of(text=_TEXT, passed=_TRUTH, evidence=_TEXT)},
    score={"type": "number", "description": "from 0 to 1"},
)
"""A score with what was looked at; the reasons come first, so that the score follows from them."""


def checklist_schema(criteria: Sequence[Criterion]) -> JsonObject:
    """Whether each criterion holds."""
    return _checks(_of(id=_id(criteria), reasoning=_TEXT, satisfied=_TRUTH))


def points_schema(criteria: Sequence[Criterion]) -> JsonObject:
    """How many points each criterion gets."""
    points: JsonObject = {"type": "integer", "description": f"from 0 to {MOST_POINTS}"}
    return _checks(_of(id=_id(criteria), reasoning=_TEXT, score=points))


def _checks(item: JsonObject) -> JsonObject:
    return _of(checks={"type": "array", "items": item}, overall_reasoning=_TEXT)


def _id(criteria: Sequence[Criterion]) -> JsonObject:
    return {"type": "string", "enum": [criterion.id for criterion in criteria]}
