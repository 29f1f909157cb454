"""A request on its last step before the socket: the exact body, the call that takes it, and what was lost."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

from sightline.catalog.choose import ModelChoice
from sightline.catalog.compose import Prompt, compose
from sightline.catalog.facts import Facts
from sightline.dialects.dialect import Target
from sightline.dialects.endpoint import call_to
from sightline.dialects.json_schemas import with_strict_schemas
from sightline.dialects.registry import dialect
from sightline.dialects.translate import write_request
from sightline.errors import Code, Fault
from sightline.exchange.client_request import TextHeaders
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.wire.call import RequestTemplate
from sightline.wire.jsontext import decode

SESSION = "ask"
"""How exchanges of a caller that gives them no other name are labelled."""

_MOST_BY_DEFAULT = 8192
"""The limit of a reply where the dialect demands one and none is set."""


@dataclass(frozen=True)
class Prepared:
    """What will be sent, to whom. `body` is what goes to the socket, byte for byte."""

    choice: ModelChoice
    dialect: str
    request: Request
    body: bytes
    report: Report
    call: RequestTemplate
    is_stream: bool

    @cached_property
    def sha256(self) -> str:
        """The hash of the body that is shown and sent."""
        return hashlib.sha256(self.body).hexdigest()

    def with_body(self, body: bytes) -> "Prepared":
        """The same with the body that masks made of it, to show or count it. Do not send it: masks
        would be put on it again."""
        if body == self.body:
            return self
        try:
            request = dialect(self.dialect).read_request(decode(body))
        except Fault:  # a mask may leave what the dialect cannot read; then the bytes alone tell
            request = self.request
        return replace(self, request=request, body=body, call=replace(self.call, body=body))


def prepare(prompt: Prompt, choice: ModelChoice) -> Prepared:
    """The request of one of our own callers, in the provider's dialect."""
    return write_prepared(compose_request(prompt, choice), choice, stream=prompt.stream)


def compose_request(prompt: Prompt, choice: ModelChoice) -> Request:
    """The same before it is written."""
    return compose(
        prompt,
        provider=choice.provider,
        family=choice.family,
        facts=choice.facts,
        model=choice.model,
        dialect=choice.dialect,
        support=dialect(choice.dialect).support,
    )


def write_prepared(request: Request, choice: ModelChoice, *, stream: bool) -> Prepared:
    """A request that was composed for this choice before, and may have grown since."""
    spoken, report = choice.dialect, Report()
    request = with_strict_schemas(request, spoken, report)
    body = write_request(request, spoken, replace(target_of(choice), states_tools=True), report, with_url=True)
    if choice.route is not None and choice.route.strict and report.refusals:
        lost = "; ".join(f"{loss.what}: {loss.why}" for loss in report.refusals)
        raise Fault(
            Code.TRANSLATION_LOSS,
            f"the route to {choice.provider_name} is strict, and this would be lost: {lost}",
            hint="Leave it out, or set strict = false for the route.",
        )
    call = call_to(choice.provider, spoken, choice.model, body, stream=stream)
    return Prepared(choice, spoken, request, body, report, call, stream)


def target_of(choice: ModelChoice) -> Target:
    """How this provider wants a request written."""
    route, most = choice.route, choice.facts.max_output
    return Target(
        system="in_place" if route is None else route.system,
        quirks=choice.provider.quirks,
        max_tokens=_MOST_BY_DEFAULT if most is None else min(most, _MOST_BY_DEFAULT),
        facts=facts_for(choice, ()),
        cache="auto" if route is None else route.cache,
        provider=choice.provider_name,
    )


def facts_for(choice: ModelChoice, headers: TextHeaders) -> Facts:
    """What is known of the model when it is asked with these headers of a client and those of its provider."""
    versions = dialect(choice.dialect).versions
    if versions is None:
        return choice.facts
    return versions.narrow(choice.facts, (*headers, *choice.provider.headers.items()))
