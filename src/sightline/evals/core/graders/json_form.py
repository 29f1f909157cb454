"""The grader that wants JSON, and may hold it to a schema. Nothing is fetched: a schema stands on its own."""

import re
from collections.abc import Iterator

from jsonschema.exceptions import SchemaError
from jsonschema.validators import Draft202012Validator, validator_for
from referencing.exceptions import Unresolvable
from referencing.jsonschema import EMPTY_REGISTRY

from sightline.errors import Fault
from sightline.evals.core.graders.fields import Fields
from sightline.evals.core.graders.finding import GraderFinding, Run, at_once, finding_without_score, of_one
from sightline.evals.core.graders.repetition import is_bounded
from sightline.evals.core.graders.subject import GradingSubject
from sightline.evals.core.score import Check
from sightline.model.json import Json, JsonObject
from sightline.wire import pointer
from sightline.wire.jsontext import decode

MOST_ERRORS = 10
_LONGEST_ERROR = 240


def is_json(fields: Fields) -> Run:
    """The answer is one JSON text, and fits the schema where there is one."""
    schema = fields.mapping("schema", "value")
    fields.close()
    if schema and (problem := _schema_problem(schema)):
        fields.tell("schema", problem, "Schemas are those of JSON Schema; the draft is 2020-12 unless it says another.")

    def look(subject: GradingSubject) -> GraderFinding:
        try:
            value = decode(subject.text)
        except Fault as fault:
            return of_one("is JSON", held=False, evidence=fault.message)
        if not schema:
            return of_one("is JSON", held=True)
        if any(not is_bounded(each, re.NOFLAG, subject.text) for each in _patterns(schema)):
            return finding_without_score("a pattern of the schema could take without end on this answer")
        return _validate(schema, value)

    return at_once(look)


def _validate(schema: JsonObject, value: Json) -> GraderFinding:
    validator = validator_for(schema, default=Draft202012Validator)(schema, registry=EMPTY_REGISTRY)
    try:
        errors = [
            f"{pointer.join('', *error.absolute_path) or 'the whole'}: {error.message[:_LONGEST_ERROR]}"
            for error in validator.iter_errors(value)
        ]
    except (Unresolvable, RecursionError):
        return finding_without_score("the schema refers to something that cannot be followed")
    checks = (Check("is JSON", True), *(Check("fits the schema", False, error) for error in errors[:MOST_ERRORS]))
    if not errors:
        checks = (*checks, Check("fits the schema", True))
    return GraderFinding(score=float(not errors), checks=checks)


def _schema_problem(schema: JsonObject) -> str:
    if not isinstance(schema.get("$schema", ""), str):
        return "$schema is no text"
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return f"this is no schema: {pointer.join('', *error.absolute_path)}: {error.message[:_LONGEST_ERROR]}"
    except RecursionError:
        return "this schema is nested too deep"
    return ""


def _patterns(value: Json) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _patterns(each)
    elif isinstance(value, dict):
        if isinstance(pattern := value.get("pattern"), str):
            yield pattern
        if isinstance(by_pattern := value.get("patternProperties"), dict):
            yield from by_pattern
        for each in value.values():
            yield from _patterns(each)
