"""Rules: filters that decide which requests, or which replies with tool calls, are held, passed or dropped."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import msgspec

from sightline.catalog.reading import read_value
from sightline.errors import Code, Fault
from sightline.filters.expression import And, Expression, Not, Or, TextTerm
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.filters.predicate import FilterSubject, matches
from sightline.model.json import Json, JsonObject
from sightline.wire.jsontext import MISFIT

Action: TypeAlias = Literal["hold", "pass", "drop"]
Phase: TypeAlias = Literal["request", "tool_calls"]
OnTimeout: TypeAlias = Literal["send", "drop"]

MOST_RULES = 1000
_LONGEST_WAIT = 7 * 24 * 3600.0
_HINT = (
    'A rule is {"filter", "action": "hold"|"pass"|"drop", "phase": "request"|"tool_calls", "once": true|false, '
    '"timeout_s": seconds or null, "on_timeout": "send"|"drop"}.'
)


class InterceptionRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens to everything that the filter matches. Without `timeout_s`, a hold has no limit."""

    filter: str = ""
    action: Action = "hold"
    phase: Phase = "request"
    once: bool = False
    timeout_s: float | None = None
    on_timeout: OnTimeout = "send"


EVERY = InterceptionRule()
"""Holds everything."""


class Rules:
    """An ordered list of rules; the first that matches decides, separately for each phase."""

    def __init__(self, read: Sequence[tuple[InterceptionRule, Expression]]) -> None:
        self.rules = tuple(rule for rule, _ in read)
        self._read = tuple(read)

    @classmethod
    def of(cls, value: Json) -> "Rules":
        """The rules of a JSON list, all of them or none. Raises a fault that names the rule that is wrong."""
        if not isinstance(value, list) or len(value) > MOST_RULES:
            message = f"the rules are a JSON list of at most {MOST_RULES}"
            raise Fault(Code.INVALID_REQUEST, message, hint=_HINT, status=422)
        return cls([_rule(each, number) for number, each in enumerate(value, 1)])

    def __bool__(self) -> bool:
        return bool(self.rules)

    def plain(self) -> Json:
        """As JSON."""
        plain: list[Json] = [msgspec.to_builtins(rule) for rule in self.rules]
        return plain

    def decide(self, subject: FilterSubject, phase: Phase, *, now: float) -> tuple[InterceptionRule | None, "Rules"]:
        """The rule that decides, None if there is none, and the rules from then on: a one-time rule is removed."""
        for index, (rule, expression) in enumerate(self._read):
            if rule.phase == phase and matches(expression, subject, now=now):
                return rule, Rules((*self._read[:index], *self._read[index + 1 :])) if rule.once else self
        return None, self

    def may_want_calls(self, subject: FilterSubject, *, now: float) -> bool:
        """Whether the tool calls of the reply to this request may be stopped: a filter about the tools that the reply
        calls can only be evaluated when it has arrived."""
        for rule, expression in self._read:
            if rule.phase == "tool_calls":
                if _asks_for_tools(expression):
                    return True
                if matches(expression, subject, now=now):
                    return rule.action != "pass"
        return False


NO_RULES = Rules(())


def _rule(value: Json, number: int) -> tuple[InterceptionRule, Expression]:
    try:
        rule: InterceptionRule = read_value(value, InterceptionRule, subject="it", hint=_HINT, status=422)
        expression = parse(rule.filter, scope=FilterScope.RULES)
    except Fault as fault:
        raise Fault(
            Code.INVALID_REQUEST, f"rule {number}: {fault.message}", hint=fault.hint, details=fault.details, status=422
        ) from None
    if rule.timeout_s is not None and not 0 < rule.timeout_s <= _LONGEST_WAIT:
        message = f"rule {number}: timeout_s is more than 0 and at most {_LONGEST_WAIT:.0f} seconds"
        raise Fault(Code.INVALID_REQUEST, message, hint="Leave it out for a hold without a limit.", status=422)
    return rule, expression


def _asks_for_tools(expression: Expression) -> bool:
    match expression:
        case Not(part=part):
            return _asks_for_tools(part)
        case And(parts=parts) | Or(parts=parts):
            return any(map(_asks_for_tools, parts))
        case TextTerm(field=field):
            return field == "tool"
        case _:
            return False


Mode: TypeAlias = Literal["off", "next", "every", "rules"]


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mode: Mode
    before: Mode
    rules: list[Json]
    is_fresh: bool = False


class Interception(msgspec.Struct, frozen=True):
    """The mode and the rules. `off`: nothing is stopped. `next`: the next request is held, then the mode is `before`
    again. `every`: every request is held. `rules`: the rules decide. The tool calls of replies are always decided by
    the rules, unless the mode is off.

    While `is_fresh` is set, no mode was chosen: it is "rules" while there are rules, and "off" otherwise.
    """

    mode: Mode = "off"
    rules: Rules = NO_RULES
    before: Mode = "off"
    is_fresh: bool = True

    @property
    def is_idle(self) -> bool:
        """Whether nothing can be stopped."""
        return self.mode == "off" or (self.mode == "rules" and not self.rules)

    def with_mode(self, mode: str) -> "Interception":
        """The same with another mode. Raises a fault if there is no such mode."""
        if mode not in get_args(Mode):
            hint = f"Known modes: {', '.join(get_args(Mode))}."
            raise Fault(Code.INVALID_REQUEST, f"there is no mode {mode!r}", hint=hint, status=422)
        before = self.before if self.mode == "next" else self.mode
        is_fresh = self.is_fresh and mode == "next"  # "next" lasts for one request
        return msgspec.structs.replace(self, mode=mode, before=before, is_fresh=is_fresh)

    def with_rules(self, rules: Rules) -> "Interception":
        if not self.is_fresh:
            return msgspec.structs.replace(self, rules=rules)
        usual: Mode = "rules" if rules else "off"
        if self.mode == "next":
            return msgspec.structs.replace(self, rules=rules, before=usual)
        return msgspec.structs.replace(self, rules=rules, mode=usual)

    def decide(
        self, subject: FilterSubject, phase: Phase, *, now: float
    ) -> tuple[InterceptionRule | None, "Interception"]:
        """The rule for this request, or for the calls of its reply, None if there is none; and the state afterwards."""
        if phase == "request" and self.mode in ("next", "every"):
            after = self if self.mode == "every" else msgspec.structs.replace(self, mode=self.before)
            return EVERY, after
        if not self._has_rules:
            return None, self
        rule, rules = self.rules.decide(subject, phase, now=now)
        return rule, self if rules is self.rules else self.with_rules(rules)

    def may_want_calls(self, subject: FilterSubject, *, now: float) -> bool:
        """Whether the tool calls of the reply to this request may be stopped."""
        return self._has_rules and self.rules.may_want_calls(subject, now=now)

    @property
    def _has_rules(self) -> bool:
        return "off" not in (self.mode, self.before if self.mode == "next" else "")

    def plain(self) -> JsonObject:
        """As JSON, to be stored."""
        kept: JsonObject = {"mode": self.mode, "before": self.before, "rules": self.rules.plain()}
        return {**kept, "is_fresh": True} if self.is_fresh else kept

    @classmethod
    def of(cls, value: Json) -> "Interception":
        """From stored JSON. Raises a fault if it is not valid."""
        try:
            kept = msgspec.convert(value, _Kept)
        except MISFIT as error:
            raise Fault(Code.INVALID_REQUEST, str(error), status=422) from None
        return cls(kept.mode, Rules.of(kept.rules), kept.before, kept.is_fresh)
