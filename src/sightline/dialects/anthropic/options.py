"""The settings of a request, both ways: plain options by table, structured output, and how much the model thinks."""

from collections.abc import Mapping
from typing import assert_never

import msgspec

from sightline.dialects.anthropic.names import NAME
from sightline.dialects.anthropic.schema import close_objects
from sightline.dialects.anthropic.thinking import read_reasoning, write_reasoning
from sightline.dialects.dialect import Target
from sightline.dialects.fields import merge, opt_object, rest
from sightline.dialects.option_table import Table, options_of, read_options, set_path, top_level_keys, write_options
from sightline.dialects.option_values import OF_ANTHROPIC, fit_anthropic_id, fit_tier
from sightline.model.json import Json, JsonObject
from sightline.model.options import JsonFormat, Options, OutputFormat, PlainFormat, Reasoning, SchemaFormat
from sightline.model.report import Report

TABLE: Table = {
    "max_tokens": (("max_tokens",),),
    "temperature": (("temperature",),),
    "top_p": (("top_p",),),
    "top_k": (("top_k",),),
    "stop": (("stop_sequences",),),
    "user": (("metadata", "user_id"),),
    "service_tier": (("service_tier",),),
    "stream": (("stream",),),
}

SERVICE_TIERS = frozenset({"auto", "standard_only"})

LEAST_TOP_P = 0.95
"""The least that may be set beside thinking with a budget."""

_FORMATS = ("/output_config/format", "/output_format")
_FORMAT = frozenset({"type", "schema"})
_NESTED = frozenset({"metadata", "thinking", "output_config"})
"""The objects that hold options."""

MODELLED = top_level_keys(TABLE) | _NESTED | {"output_format"}
"""The top-level fields that this module accounts for, extras of theirs included."""

_AS_IT_IS: Mapping[str, object] = {
    "n": 1,
    "logprobs": False,
    "top_logprobs": 0,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "logit_bias": {},
    "safety_settings": [],
    "verbosity": "medium",
}
"""Settings that say what happens here anyway: losing them changes no answer."""


def read_settings(body: JsonObject) -> tuple[Options, JsonObject]:
    """Every option that the body sets, with its place, and what else is in the objects that hold options."""
    holders = {name: holder for name in _NESTED if (holder := opt_object(body, name, "")) is not None}
    found, places = read_options(body, TABLE)
    output, reasoning = _read_format(body), read_reasoning(body)
    if output is not None:
        places["format"] = output.at
    options = msgspec.structs.replace(options_of(found, places), format=output, reasoning=reasoning)
    return options, _unread(body, holders, options)


def _read_format(body: JsonObject) -> OutputFormat | None:
    for at in _FORMATS:
        value = _format_at(body, at)
        if value is not None and value.get("type") == "json_schema":
            schema = opt_object(value, "schema", at)
            if schema is not None:
                return SchemaFormat(schema, at=at, extras=rest(value, _FORMAT))
    return None


def _format_at(body: JsonObject, at: str) -> JsonObject | None:
    if at == "/output_format":
        return opt_object(body, "output_format", "")
    return opt_object(opt_object(body, "output_config", "") or {}, "format", "/output_config")


def _unread(body: JsonObject, holders: dict[str, JsonObject], options: Options) -> JsonObject:
    """The members of option objects that we do not model or whose value we do not know, each in its object."""
    reasoning, output = options.reasoning or Reasoning(), options.format
    read: dict[str, dict[str, object]] = {
        "metadata": {"user_id": options.user},
        "thinking": {"type": reasoning.mode, "budget_tokens": reasoning.budget, "display": reasoning.summary},
        "output_config": {
            "effort": reasoning.effort,
            "format": output if output is not None and output.at == _FORMATS[0] else None,
        },
    }
    extras: JsonObject = {}
    for name, holder in holders.items():
        unread: JsonObject = {key: value for key, value in holder.items() if read[name].get(key) is None}
        if unread or not holder:
            extras[name] = unread
    if body.get("output_format") is not None and (output is None or output.at != _FORMATS[1]):
        extras["output_format"] = body["output_format"]
    return extras


def write_settings(options: Options, target: Target, body: JsonObject, report: Report, *, same: bool) -> None:
    """Put every option into the body, and report the ones that the API does not have."""
    if same:
        write_options(options, TABLE, body, report, dialect=NAME, same=True, skip=frozenset())
    else:
        _write_foreign(options, target, body, report)
    if options.format is not None:
        _write_format(options.format, body, report, same=same)
    if options.reasoning is not None:
        write_reasoning(options.reasoning, body, report, same=same)
        if not same:
            _drop_sampling(options, body, report)


def _write_foreign(options: Options, target: Target, body: JsonObject, report: Report) -> None:
    options = fit_tier(fit_anthropic_id(options, report, NAME), OF_ANTHROPIC, report, NAME)
    skip = {"temperature", "stop"}
    for name, value in _AS_IT_IS.items():
        if getattr(options, name) == value:
            skip.add(name)
            report.lose(options.places.get(name, f"/{name}"), name, f"{NAME} does so by default", "identity")
    write_options(options, TABLE, body, report, dialect=NAME, same=False, skip=frozenset(skip))
    if options.max_tokens is None:
        body["max_tokens"] = target.max_tokens
        report.add("/max_tokens", f"max_tokens {target.max_tokens}", f"{NAME} demands a limit")
    if options.temperature is not None:
        body["temperature"] = min(options.temperature, 1)
        if options.temperature > 1:
            at = options.places.get("temperature", "/temperature")
            report.lose(at, f"temperature {options.temperature}", f"{NAME} takes 1 at most", "option")
    if options.stop is not None:
        kept: list[Json] = [text for text in options.stop if text.strip()]
        if len(kept) < len(options.stop):
            at = options.places.get("stop", "/stop")
            report.lose(at, "a blank stop sequence", f"{NAME} rejects it", "option")
        body["stop_sequences"] = kept


def _drop_sampling(options: Options, body: JsonObject, report: Report) -> None:
    """Thinking with a budget leaves no say in how tokens are drawn."""
    thinking = body.get("thinking")
    if isinstance(thinking, dict) and thinking.get("type") == "enabled":
        for name, excluded in (
            ("temperature", options.temperature not in (None, 1)),
            ("top_k", options.top_k is not None),
            ("top_p", options.top_p is not None and options.top_p < LEAST_TOP_P),
        ):
            if excluded:
                del body[name]
                report.lose(options.places.get(name, f"/{name}"), name, "thinking with a budget excludes it", "option")


def _write_format(output: OutputFormat, body: JsonObject, report: Report, *, same: bool) -> None:
    match output:
        case SchemaFormat(schema):
            at = "/output_config/format/schema"
            written: JsonObject = {
                "type": "json_schema",
                "schema": schema if same else close_objects(schema, output.at, at, report),
            }
            if same:
                merge(written, output.extras)
            path = ("output_format",) if same and output.at == _FORMATS[1] else ("output_config", "format")
            set_path(body, path, written)
            _lose_format_members(output, report)
        case JsonFormat():
            report.lose(output.at, "JSON without a schema", f"{NAME} has no such mode", "option")
        case PlainFormat():
            pass
        case unreachable:
            assert_never(unreachable)


def _lose_format_members(output: SchemaFormat, report: Report) -> None:
    why = f"{NAME} takes the schema alone"
    for name, value in (("name", output.name), ("description", output.description)):
        if value is not None:
            report.lose(output.at, f"{name} of the output format", why, "identity")
    if output.strict is not None:
        why = f"{NAME} always keeps to the schema"
        report.lose(output.at, "strict of the output format", why, "identity")
