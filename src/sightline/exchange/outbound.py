"""The request that is sent to the provider. For a client: its own bytes if nothing has to change, otherwise a
translation. For Sightline's own requests (`prepare`): the exact body of the prompt, the call that carries it, and what
was lost.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import urlencode

import msgspec

from sightline.catalog.choose import ModelChoice
from sightline.catalog.compose import Prompt, compose
from sightline.catalog.facts import Facts
from sightline.catalog.provider import Provider
from sightline.dialects.dialect import Target
from sightline.dialects.endpoint import address, call_to, in_path, raw_address
from sightline.dialects.endpoint import credential as place_of_key
from sightline.dialects.json_schemas import with_strict_schemas
from sightline.dialects.registry import dialect
from sightline.dialects.signatures import may_hold_signatures, without_foreign_signatures
from sightline.dialects.translate import RequestTranslation, translate_request, write_request
from sightline.editing.response_chain import previous_of
from sightline.errors import Code, Fault
from sightline.exchange.client_request import HOP_BY_HOP, ClientRequest, TextHeaders
from sightline.exchange.lane import LaneRoute
from sightline.exchange.routing import credential
from sightline.model.header_names import is_secret_header, is_secret_parameter
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.wire.call import HttpRequest, RequestTemplate, TemplateValue, Variable, can_stray
from sightline.wire.document import WireDocument
from sightline.wire.jsontext import decode
from sightline.wire.secrets import parameters

SESSION = "ask"
"""The session label of requests whose caller gives no other."""

_MOST_BY_DEFAULT = 8192
"""The limit on the reply's tokens if the dialect requires one and none is set."""


@dataclass(frozen=True)
class Prepared:
    """A request that is ready to be sent, and its destination. `body` is sent byte for byte."""

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
        """A copy with the body after masks, to show or count it. Do not send it: the masks would be applied again."""
        if body == self.body:
            return self
        try:
            request = dialect(self.dialect).read_request(decode(body))
        except Fault:  # a mask may leave a body that the dialect cannot read; then only the bytes change
            request = self.request
        return replace(self, request=request, body=body, call=replace(self.call, body=body))


def prepare(prompt: Prompt, choice: ModelChoice) -> Prepared:
    """One of Sightline's own requests, in the provider's dialect."""
    return write_prepared(compose_request(prompt, choice), choice, stream=prompt.stream)


def compose_request(prompt: Prompt, choice: ModelChoice) -> Request:
    """The request before it is written in the provider's dialect."""
    return compose(prompt, choice, dialect(choice.dialect).support)


def write_prepared(request: Request, choice: ModelChoice, *, stream: bool) -> Prepared:
    """Write a request that was composed for this choice, and may have grown since. Raises a fault if the route is
    strict and something would be lost."""
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
    """The provider's settings for writing a request."""
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
    """The facts about the model if it is called with these client headers and the provider's own."""
    versions = dialect(choice.dialect).versions
    if versions is None:
        return choice.facts
    return versions.narrow(choice.facts, (*headers, *choice.provider.headers.items()))


_NOT_PASSED_ON = HOP_BY_HOP | {"host", "cookie", "content-length"}
_PREFIXES = ("proxy-", "x-sightline-")
_PATH = re.compile(r"/*(?:(v\d+[a-z0-9]*)/+)*(.*?)/*")
_MODEL_IN_PATH = re.compile(r"(?:models/)?.+?(?=:\w+$)")


class Outbound(msgspec.Struct, frozen=True):
    """A request to a provider. `body` is after content decoding. `report` and `client` are set if the body was
    rewritten; `client` is the request as the client meant it."""

    request: HttpRequest
    body: bytes
    report: Report | None = None
    client: Request | None = None

    def with_body(self, body: bytes) -> "Outbound":
        """The same request with another body, after a mask or a user has changed it. It is sent without content
        encoding."""
        if body == self.body:
            return self
        headers = tuple(each for each in self.request.headers if each[0].lower() != "content-encoding")
        request = msgspec.structs.replace(self.request, headers=headers, body=body)
        return msgspec.structs.replace(self, request=request, body=body)


def pass_through(client_request: ClientRequest, route: LaneRoute, variables: Mapping[str, str]) -> Outbound:
    """The request for a provider of the client's own dialect."""
    choice = route.choice
    body, report = _same_dialect_body(client_request, choice)
    is_untouched = body is client_request.body
    known = route.sent.get(is_untouched)
    if known is not None:
        sent = client_request.coded if is_untouched and client_request.coded is not None else body
        return Outbound(known.with_body(sent), body, report)
    request = own_call(client_request, choice, variables, body).fill(variables)
    if not choice.provider.embedded:  # its address changes
        route.sent[is_untouched] = request.with_body(b"")
    return Outbound(request, body, report)


def own_call(request: ClientRequest, choice: ModelChoice, variables: Mapping[str, str], body: bytes) -> RequestTemplate:
    """The call that carries `body`, the client's or a changed one, to a provider of the client's dialect."""
    provider, spoken = choice.provider, choice.dialect
    is_untouched = body is request.body
    headers = _headers(request, provider, spoken, variables, is_untouched=is_untouched)
    return RequestTemplate(
        "POST",
        _url_as_meant(request) if request.upstream else address(provider, spoken, *_path_after_base(request, choice)),
        tuple(headers),
        request.coded if is_untouched and request.coded is not None else body,
        is_passed_on=True,
    )


def raw_call(request: ClientRequest, choice: ModelChoice, variables: Mapping[str, str]) -> RequestTemplate:
    """The call that passes on a raw request. Its body is sent separately."""
    provider = choice.provider
    if can_stray(request.path):
        raise _path_fault()
    query = _query(request, provider)
    url = raw_address(provider, f"{request.path}?{query}" if query else request.path)
    return RequestTemplate(
        request.method,
        _url_as_meant(request) if request.upstream else url,
        tuple(_headers(request, provider, choice.dialect, variables, is_untouched=True)),
        b"",
        is_passed_on=True,
    )


def body_of(client_request: ClientRequest, choice: ModelChoice) -> bytes:
    """The body for the provider, before masks. This needs neither an address nor a key."""
    if choice.dialect == client_request.dialect:
        return _same_dialect_body(client_request, choice)[0]
    return _translate(client_request, choice).data


def _translate(client_request: ClientRequest, choice: ModelChoice) -> RequestTranslation:
    """The body for a provider of another dialect, and the request as the client meant it. Raises a fault if something
    would be lost and the route or the client is strict."""
    spoken = choice.dialect
    client = dialect(client_request.dialect).read_request(decode(client_request.http_body or client_request.body))
    _refuse_provider_state(client_request, client)
    request = msgspec.structs.replace(client, model=choice.model)
    if client_request.is_stream:  # some clients ask for a stream only in the URL
        options = msgspec.structs.replace(request.options, stream=True)
        request = msgspec.structs.replace(request, options=options)
    report = Report()
    body = write_request(request, spoken, target_of(choice), report, with_url=True)
    _report_betas(client_request, spoken, report)
    is_strict = client_request.strict or (choice.route is not None and choice.route.strict)
    if is_strict and report.refusals:
        raise _lossy(report, spoken)
    return RequestTranslation(body, report, _with_previous_id(client, client_request))


def _with_previous_id(client: Request, came: ClientRequest) -> Request:
    """The request with its `previous_response_id` restored: its history was inserted in place of that, and the response
    repeats the id."""
    if came.http_body is None or not (before := previous_of(came.body)):
        return client
    return msgspec.structs.replace(client, options=msgspec.structs.replace(client.options, previous_response_id=before))


def outbound_for(request: ClientRequest, route: LaneRoute, variables: Mapping[str, str]) -> Outbound:
    """The client's request in the dialect of the provider. Everything except the body is reused from earlier requests
    of the route."""
    written = _translate_body(request, route)
    known = route.translated.get(request.is_stream)
    if known is None:
        known = _call_for(request, route.choice).fill(variables)
        if not route.choice.provider.embedded:  # its address changes
            route.translated[request.is_stream] = known
    return Outbound(known.with_body(written.data), written.data, written.report, written.request)


def _translate_body(request: ClientRequest, route: LaneRoute) -> RequestTranslation:
    """The same as `_translate`, but fast if this body differs from recent bodies of the route only in its texts."""
    choice, source = route.choice, dialect(request.dialect)
    is_usual = request.http_body is None and not request.strict
    if not is_usual or source.plain_texts is None or dialect(choice.dialect).plain_texts is None:
        return _translate(request, choice)  # we do not know what third-party dialects look at

    def translate(body: bytes) -> RequestTranslation:
        return _translate(request if body is request.body else msgspec.structs.replace(request, body=body), choice)

    return route.templates.translate(request.body, translate, source.unread.private_lines)


def _call_for(request: ClientRequest, choice: ModelChoice) -> RequestTemplate:
    """The call that carries a translated request to its provider, without its body."""
    provider, spoken = choice.provider, choice.dialect
    call = call_to(provider, spoken, choice.model, b"", stream=request.is_stream)
    headers = list(call.headers)
    if "user-agent" not in {name.lower() for name, _ in headers}:
        headers += [(name, value) for name, value in request.headers if name.lower() == "user-agent"]
    return replace(call, headers=(*headers, *own_key(request, choice)))


def own_key(request: ClientRequest, choice: ModelChoice) -> TextHeaders:
    """The client's own credential in the header of a provider of another dialect; empty if the client sends none, or
    the provider has its own."""
    endpoint = dialect(request.caller or request.dialect).endpoint
    own = credential(request, "" if endpoint is None else endpoint.credential[0])
    if not own or choice.provider.has_credential:
        return ()
    name, prefix = place_of_key(choice.provider, choice.dialect)
    return ((name, f"{prefix}{own}"),)


def secrets_of_provider(provider: Provider, variables: Mapping[str, str]) -> tuple[str, ...]:
    """The secrets in a provider's settings, which may be sent only to this provider."""
    named = (variables.get(name, "").strip() for name in provider.secret_variables)
    headers = (value for name, value in provider.headers.items() if is_secret_header(name))
    query = (value for name, value in provider.query.items() if is_secret_parameter(name) or is_secret_header(name))
    return tuple(value for value in (*named, *headers, *query) if value)


# --- the same dialect -------------------------------------------------------------------------------


def _same_dialect_body(request: ClientRequest, choice: ModelChoice) -> tuple[bytes, Report | None]:
    """The client's bytes, with another model name if the route sets one."""
    body = request.body if request.http_body is None else request.http_body
    if choice.route is not None and choice.route.system != "in_place":
        rewritten = translate_request(
            body, request.dialect, request.dialect, model=choice.model, settings=target_of(choice)
        )
        return rewritten.data, rewritten.report
    body, report = _own_signatures(body, request.dialect)
    if choice.model == request.model or dialect(request.dialect).model_in_path:
        return body, report
    return WireDocument(body).set("/model", choice.model).data, report


def _own_signatures(body: bytes, spoken: str) -> tuple[bytes, Report | None]:
    """The client's bytes, without signatures that another provider put into a translated turn."""
    if not may_hold_signatures(body, is_coded=dialect(spoken).rules.codes_signatures):
        return body, None
    report = Report()
    try:
        own = without_foreign_signatures(WireDocument(body), spoken, report).data
    except Fault:  # not JSON; the provider decides whether to accept it
        return body, None
    return (body, None) if own == body else (own, report)


def _url_as_meant(request: ClientRequest) -> str:
    """The client's own URL, as the client wrote it."""
    return f"{request.upstream}{request.path}{'?' if request.query else ''}{request.query}"


def _path_after_base(request: ClientRequest, choice: ModelChoice) -> tuple[str, str]:
    """The path and query after the base URL, and the API version that the client named."""
    found = _PATH.fullmatch(request.path)
    version, path = (found[1], found[2]) if found else ("", request.path.lstrip("/"))
    if choice.model != request.model and dialect(request.dialect).model_in_path:
        path = _MODEL_IN_PATH.sub(lambda _: f"models/{in_path(choice.model)}", path, count=1)
    if can_stray(path):
        raise _path_fault()
    query = _query(request, choice.provider)
    return f"/{path}?{query}" if query else f"/{path}", f"/{version}" if version else ""


def _query(request: ClientRequest, provider: Provider) -> str:
    """The client's query, with configured parameters replacing its own."""
    pieces = [piece for name, piece in parameters(request.query) if not _is_ours(name, provider)]
    if provider.query:
        pieces.append(urlencode(provider.query))
    return "&".join(pieces)


def _path_fault() -> Fault:
    hint = "Send the path without dot segments, backslashes and control characters."
    return Fault(Code.INVALID_REQUEST, "the path leads out of the provider's API", hint=hint, status=400)


def _is_ours(parameter: str, provider: Provider) -> bool:
    """Whether a parameter of the client's query is replaced by the configuration."""
    is_configured = parameter in {each.lower() for each in provider.query}
    return is_configured or (provider.has_credential and is_secret_parameter(parameter))


def _headers(
    request: ClientRequest, provider: Provider, spoken: str, variables: Mapping[str, str], *, is_untouched: bool
) -> list[tuple[str, TemplateValue]]:
    """The client's headers in order; configured headers replace those of the same name."""
    ours: list[tuple[str, TemplateValue]] = list(provider.headers.items())
    ours += [(name, Variable(each)) for name, each in provider.env_headers.items() if variables.get(each, "").strip()]
    gone = {name.lower() for name, _ in ours}
    if provider.has_credential:
        # Any other credential of the client was meant for another provider: this one gets only the configured key.
        gone |= {each.lower() for each, _ in request.headers if is_secret_header(each)}
    if provider.key_env:
        name, prefix = place_of_key(provider, spoken)
        gone.add(name.lower())
        if name.lower() not in {each.lower() for each in provider.headers}:
            ours.append((name, Variable(provider.key_env, prefix, help=provider.key_help)))
    if not is_untouched:
        gone.add("content-encoding")
    passed: list[tuple[str, TemplateValue]] = [
        (name, value)
        for name, value in end_to_end(request.headers, with_cookies=bool(request.upstream))
        if name.lower() not in gone
    ]
    return [*passed, *ours]


def end_to_end(headers: tuple[tuple[str, str], ...], *, with_cookies: bool = False) -> list[tuple[str, str]]:
    """The headers that a client means for the provider; cookies only with `with_cookies`, if the client itself has
    connected to the provider."""
    named = {
        word.strip().lower() for name, value in headers if name.lower() == "connection" for word in value.split(",")
    }
    return [
        (name, value)
        for name, value in headers
        if ((low := name.lower()) not in _NOT_PASSED_ON or (with_cookies and low == "cookie"))
        and low not in named
        and not low.startswith(_PREFIXES)
    ]


# --- another dialect --------------------------------------------------------------------------------


def _refuse_provider_state(request: ClientRequest, client: Request) -> None:
    """Raise a fault for a request that leaves most of the conversation to its provider: it cannot go to another one.

    The message is the one upon which the client sends the whole conversation again; it differs by dialect.
    """
    kept = sorted(dialect(request.dialect).unread.stateful & client.extras.keys())
    if client.options.previous_response_id is not None:
        kept.append("previous_response_id")
    if not kept:
        return
    raise dialect(request.dialect).clients.state_fault(kept[0])


def _report_betas(request: ClientRequest, spoken: str, report: Report) -> None:
    """Report the beta features that the client requests in its dialect's header as lost: no other provider has them."""
    header = dialect(request.dialect).clients.beta_header
    value = request.headers_by_name().get(header, "")
    for beta in filter(None, map(str.strip, value.split(","))):
        report.lose("", f"{header}: {beta}", f"{spoken} has no such feature", "identity")


def _lossy(report: Report, spoken: str) -> Fault:
    losses = report.refusals
    listed = "; ".join(f"{loss.pointer or '/'} ({loss.what}: {loss.why})" for loss in losses[:10])
    more = f"; and {len(losses) - 10} more" if len(losses) > 10 else ""
    return Fault(
        Code.TRANSLATION_LOSS,
        f"{len(losses)} of its parts cannot be carried to {spoken}: {listed}{more}",
        hint="Change the request, choose another provider, or do without strict.",
    )
