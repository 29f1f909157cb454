"""What is being intercepted: a mode and the rules, as one value that changes when something of it is used up."""

from typing import Literal, TypeAlias, get_args

import msgspec

from sightline.errors import Code, Fault
from sightline.exchange.interception.core.rules import EVERY, NO_RULES, InterceptionRule, Phase, Rules
from sightline.filters.predicate import FilterSubject
from sightline.model.json import Json, JsonObject
from sightline.wire.jsontext import MISFIT

Mode: TypeAlias = Literal["off", "next", "every", "rules"]


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mode: Mode
    before: Mode
    rules: list[Json]
    is_fresh: bool = False


class Interception(msgspec.Struct, frozen=True):
    """`off`: nothing is stopped. `next`: the next request is held, then it is as `before`. `every`: every request is
    held. `rules`: the rules decide. Tool calls of replies are always for the rules, unless it is off.

    While it `is_fresh` nobody has chosen a mode: it is off until there are rules, which then decide, and off again
    without them."""

    mode: Mode = "off"
    rules: Rules = NO_RULES
    before: Mode = "off"
    is_fresh: bool = True

    @property
    def is_idle(self) -> bool:
        """Whether nothing can be stopped."""
        return self.mode == "off" or (self.mode == "rules" and not self.rules)

    def with_mode(self, mode: str) -> "Interception":
        """In another mode."""
        if mode not in get_args(Mode):
            hint = f"Known modes: {', '.join(get_args(Mode))}."
            raise Fault(Code.INVALID_REQUEST, f"there is no mode {mode!r}", hint=hint, status=422)
        before = self.before if self.mode == "next" else self.mode
        is_fresh = self.is_fresh and mode == "next"  # which lasts for one request
        return msgspec.structs.replace(self, mode=mode, before=before, is_fresh=is_fresh)

    def with_rules(self, rules: Rules) -> "Interception":
        """With other rules."""
        if not self.is_fresh:
            return msgspec.structs.replace(self, rules=rules)
        usual: Mode = "rules" if rules else "off"
        if self.mode == "next":
            return msgspec.structs.replace(self, rules=rules, before=usual)
        return msgspec.structs.replace(self, rules=rules, mode=usual)

    def decide(
        self, subject: FilterSubject, phase: Phase, *, now: float
    ) -> tuple[InterceptionRule | None, "Interception"]:
        """The rule for this request, or for the calls of its reply, and how things stand afterwards."""
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
        """As JSON, to be kept."""
        kept: JsonObject = {"mode": self.mode, "before": self.before, "rules": self.rules.plain()}
        return {**kept, "is_fresh": True} if self.is_fresh else kept

    @classmethod
    def of(cls, value: Json) -> "Interception":
        """As it was kept; a fault if this is something else."""
        try:
            kept = msgspec.convert(value, _Kept)
        except MISFIT as error:
            raise Fault(Code.INVALID_REQUEST, str(error), status=422) from None
        return cls(kept.mode, Rules.of(kept.rules), kept.before, kept.is_fresh)
