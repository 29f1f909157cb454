"""A run of a suite as facts that are only ever added, and their form in a log."""

from typing import Literal, TypeAlias

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.options import RunOptions
from sightline.evals.core.result import CaseResult
from sightline.evals.core.suite import Suite
from sightline.evals.core.target import TargetSpec
from sightline.wire.jsontext import MISFIT, decode, encode

Key: TypeAlias = tuple[str, str, int]
"""A case, a target, and a trial from 0."""

EndedWhy: TypeAlias = Literal["finished", "stopped", "budget"]


class EvalBegan(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="kind", tag="eval_began"):
    """All that the run was told: the suite with the cases that are wanted, who answers and who judges, and the hashes
    of the files that go out, by their path."""

    suite: Suite
    targets: tuple[TargetSpec, ...]
    judges: tuple[TargetSpec, ...] = ()
    options: RunOptions = RunOptions()
    files: dict[str, str] = {}
    at: float = 0.0


class EvalTaken(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="eval_taken"):
    """A process drives the run from here on."""

    by: str = ""


class CaseStarted(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="case_started"):
    """A case is under way."""

    case: str
    target: str
    trial: int = 0


class CaseDone(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="case_done"):
    """A case has a result."""

    result: CaseResult


class Reopened(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="reopened"):
    """These are to be run again; until they are, they have no result."""

    keys: tuple[Key, ...]


class EvalEnded(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="eval_ended"):
    """Nobody drives the run any more. Unless it is finished, it can be gone on with."""

    why: EndedWhy = "finished"


EvalFact: TypeAlias = EvalBegan | EvalTaken | CaseStarted | CaseDone | Reopened | EvalEnded

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(EvalFact)


def write(fact: EvalFact) -> bytes:
    """A fact as JSON."""
    try:
        return _ENCODER.encode(fact)
    except UnicodeEncodeError:  # a model may write half a character
        return encode(msgspec.to_builtins(fact))


def read(data: bytes) -> EvalFact:
    """The fact that such JSON holds."""
    fact: EvalFact
    try:
        fact = _DECODER.decode(data)
    except ValueError:
        return _read_patiently(data)
    return fact


def _read_patiently(data: bytes) -> EvalFact:
    """The same for what is no UTF-8, or no fact."""
    try:
        fact: EvalFact = msgspec.convert(decode(data), EvalFact)
    except MISFIT as error:
        hint = "It was written by another version; a run is taken up by the version that began it."
        raise Fault(Code.INVALID_REQUEST, f"not a fact of a run of evals: {error}", hint=hint) from None
    return fact
