"""Reads and writes the settings of a request: plain options by table, structured output, and how much the model thinks
(`thinking` and the effort in `output_config`)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

import msgspec

from sightline.dialects.anthropic.names import NAME
from sightline.dialects.dialect import Target
from sightline.dialects.fields import compact, merge, object_at, objects_in, opt_int, opt_object, opt_str, rest
from sightline.dialects.json_schemas import JSON_SCHEMA, map_schema
from sightline.dialects.option_table import (
    OF_ANTHROPIC,
    Table,
    fit_anthropic_id,
    fit_tier,
    options_of,
    read_options,
    reasoning_of,
    same_names,
    set_path,
    top_level_keys,
    write_options,
)
from sightline.model.json import Json, JsonObject
from sightline.model.report import Report
from sightline.model.request import ADDED, JsonFormat, Options, OutputFormat, PlainFormat, Reasoning, SchemaFormat

_KEY = "additionalProperties"
_WHY = f"{NAME} keeps to schemas only whose objects are closed"
_KEYS = replace(JSON_SCHEMA, nodes=JSON_SCHEMA.nodes - {_KEY})
"""The schema of additional properties is not visited: in the end there are none."""


def close_objects(schema: JsonObject, at: str, place: str, report: Report) -> JsonObject:
    """A foreign schema with every object closed. `at` is its place in the source, `place` in the written body."""

    def close(node: JsonObject, path: str) -> JsonObject:
        if not _is_open(node):
            return node
        if _KEY in node:
            report.lose(at, f"other properties at {path or 'the root'} of the schema", _WHY, "option")
        else:
            report.add(f"{place}{path}/{_KEY}", "false", _WHY)
        return {**node, _KEY: False}

    return map_schema(schema, close, _KEYS)


def any_open(schema: JsonObject) -> bool:
    """Whether an object of this schema explicitly allows additional properties."""
    return any(_KEY in node for node in open_objects(schema).values())


def open_objects(schema: JsonObject) -> dict[str, JsonObject]:
    """The objects of a schema that are not closed, by their pointers within it."""
    found: dict[str, JsonObject] = {}

    def look(node: JsonObject, path: str) -> JsonObject:
        if _is_open(node):
            found[path] = node
        return node

    map_schema(schema, look, _KEYS)
    return found


def _is_open(node: JsonObject) -> bool:
    kind = node.get("type")
    return (kind == "object" or (isinstance(kind, list) and "object" in kind)) and node.get(_KEY) is not False


LEAST_BUDGET = 1024
_MOST_THINKING = 24_576
"""The tokens reserved for thinking without a limit, in a request that sets no limit either."""

BETWEEN_TOOLS = "between_tools"
"""The least thinking of models that cannot switch it off; from another dialect it is written only for them."""

EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})

_MODES: Mapping[str, str] = {"enabled": "on", "disabled": "off", "adaptive": "adaptive"}
_TYPES: Mapping[str, str] = {mode: word for word, mode in _MODES.items()}
_SUMMARIES: Mapping[str, str] = {"summarized": "auto", "omitted": "none"}
_DISPLAYS: Mapping[str, str] = {
    "auto": "summarized",
    "concise": "summarized",
    "detailed": "summarized",
    "none": "omitted",
}


def read_reasoning(body: JsonObject) -> Reasoning | None:
    """The thinking settings of the body; None if there are none that we know."""
    thinking = opt_object(body, "thinking", "") or {}
    config = opt_object(body, "output_config", "") or {}
    reasoning = reasoning_of(
        "/thinking" if thinking else "/output_config",
        {},
        mode=(_MODES.get(opt_str(thinking, "type", "/thinking") or ""), "/thinking/type"),
        summary=(_SUMMARIES.get(opt_str(thinking, "display", "/thinking") or ""), "/thinking/display"),
        effort=(opt_str(config, "effort", "/output_config"), "/output_config/effort"),
        budget=(opt_int(thinking, "budget_tokens", "/thinking"), "/thinking/budget_tokens"),
    )
    return reasoning if reasoning.places else None


def write_reasoning(reasoning: Reasoning, body: JsonObject, report: Report, *, same: bool) -> None:
    """Write the thinking settings into the body. Nothing is switched on that was not asked for."""
    if same:
        mode, summary = reasoning.mode, reasoning.summary
        thinking = compact(
            {
                "type": None if mode is None else _TYPES.get(mode, mode),
                "budget_tokens": reasoning.budget,
                "display": None if summary is None else _DISPLAYS.get(summary, summary),
            }
        )
        if reasoning.effort is not None:
            set_path(body, ("output_config", "effort"), reasoning.effort)
    else:
        thinking = _ForeignReasoning(reasoning, body, report).write()
    if thinking:
        body["thinking"] = thinking


class _ForeignReasoning:
    """Another dialect's reasoning settings in the terms of this one."""

    def __init__(self, reasoning: Reasoning, body: JsonObject, report: Report) -> None:
        self._reasoning = reasoning
        self._body = body
        self._report = report

    def write(self) -> JsonObject:
        """The `thinking` object; the effort goes into the body."""
        thinking = self._thinking()
        if thinking and ADDED in (self._reasoning.places.get("mode"), self._reasoning.places.get("budget")):
            why = "an effort alone does not make it think"
            self._report.add("/thinking", f"thinking {thinking['type']}", why)
        self._effort(thinking)
        if self._reasoning.summary is not None:
            self._display(self._reasoning.summary, thinking)
        return thinking

    def _thinking(self) -> JsonObject:
        mode, budget = self._reasoning.mode, self._reasoning.budget
        if mode == "off" or (mode is None and budget == 0):
            return {"type": "disabled"}
        if mode == BETWEEN_TOOLS:
            return {"type": BETWEEN_TOOLS}
        if mode == "adaptive" or (budget is not None and budget < 0):
            if budget is not None and budget >= 0:
                self._lose("budget", f"a budget of {budget}", "adaptive thinking has none")
            return self._adapt("mode" if mode == "adaptive" else "budget")
        if budget is not None:
            return self._fit_budget(budget)
        if mode == "on":
            if not self._forces_call:
                self._lose("mode", "thinking switched on", "without a budget the nearest is adaptive thinking")
            return self._adapt("mode")
        if mode is not None:
            self._lose("mode", f"thinking mode {mode!r}", f"{NAME} does not know it")
        return {}

    @property
    def _forces_call(self) -> bool:
        return object_at(self._body, "tool_choice").get("type") in ("any", "tool")

    def _adapt(self, name: str) -> JsonObject:
        if self._forces_call:
            self._lose(name, "adaptive thinking", "a forced tool call excludes it")
            return {}
        return {"type": "adaptive"}

    def _fit_budget(self, budget: int) -> JsonObject:
        if self._forces_call:
            self._lose("budget", f"a budget of {budget}", "a forced tool call excludes it")
            return {}
        limit = self._body.get("max_tokens")
        fitting = max(budget, LEAST_BUDGET)
        if isinstance(limit, int):
            fitting = min(fitting, limit - 1)
        if fitting < LEAST_BUDGET:
            self._lose("budget", f"a budget of {budget}", f"{NAME} takes {LEAST_BUDGET} at least, below max_tokens")
            return {}
        if fitting != budget:
            self._lose("budget", f"a budget of {budget}", f"the nearest that {NAME} takes is {fitting}")
        return {"type": "enabled", "budget_tokens": fitting}

    def _effort(self, thinking: JsonObject) -> None:
        effort = self._reasoning.effort
        if effort == "none":
            if thinking.setdefault("type", "disabled") != "disabled":
                self._lose("effort", "effort 'none'", "thinking is asked for beside it")
            return
        if effort == "minimal":
            self._lose("effort", "effort 'minimal'", "the nearest is low")
            effort = "low"
        if effort in EFFORTS:
            set_path(self._body, ("output_config", "effort"), effort)
        elif effort is not None:
            self._lose("effort", f"effort {effort!r}", f"{NAME} does not know it")

    def _display(self, summary: str, thinking: JsonObject) -> None:
        if thinking.get("type") not in ("enabled", "adaptive") or summary not in _DISPLAYS:
            self._lose("summary", f"reasoning summary {summary!r}", f"{NAME} says it beside its thinking setting only")
            return
        thinking["display"] = _DISPLAYS[summary]
        if _SUMMARIES[_DISPLAYS[summary]] != summary:
            self._lose("summary", f"reasoning summary {summary!r}", f"{NAME} knows one kind of summary")

    def _lose(self, name: str, what: str, why: str) -> None:
        self._report.lose(self._reasoning.places.get(name) or self._reasoning.at, what, why, "option")


TABLE: Table = {
    **same_names("max_tokens", "temperature", "top_p", "top_k", "service_tier", "stream"),
    "stop": (("stop_sequences",),),
    # Claude Code's id is a JSON text of device, account and session, and has to stay as it is.
    "user": (("metadata", "user_id"),),
}

SERVICE_TIERS = frozenset({"auto", "standard_only"})

LEAST_TOP_P = 0.95
"""The lowest value that is allowed together with a thinking budget."""

_FORMATS = ("/output_config/format", "/output_format")
_FORMAT = frozenset({"type", "schema"})
_NESTED = frozenset({"metadata", "thinking", "output_config"})
"""The objects that hold options."""

MODELLED = top_level_keys(TABLE) | _NESTED | {"output_format"}
"""The top-level fields that this module handles, including their unmodelled members."""

_API_DEFAULTS: Mapping[str, object] = {
    "n": 1,
    "logprobs": False,
    "top_logprobs": 0,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "logit_bias": {},
    "safety_settings": [],
    "verbosity": "medium",
}
"""Settings that ask for what this API does anyway: losing them changes no answer."""

_NARROWED_OPTIONS = frozenset({"temperature", "stop"})
"""Options for which this API takes fewer values than others."""


def read_settings(body: JsonObject) -> tuple[Options, JsonObject]:
    """Every option that the body sets, with its place, and the unread members of the objects that hold options."""
    holders = {name: holder for name in _NESTED if (holder := opt_object(body, name, "")) is not None}
    found, places = read_options(body, TABLE)
    output, reasoning = _read_format(body), read_reasoning(body)
    if output is not None:
        places["format"] = output.at
    options = msgspec.structs.replace(options_of(found, places), format=output, reasoning=reasoning)
    return options, _unread(body, holders, options)


def _read_format(body: JsonObject) -> OutputFormat | None:
    config = object_at(body, "output_config")
    for holder, above, key in ((config, "/output_config", "format"), (body, "", "output_format")):
        at = f"{above}/{key}"
        value = opt_object(holder, key, above)
        if value is not None and value.get("type") == "json_schema":
            schema = opt_object(value, "schema", at)
            if schema is not None:
                return SchemaFormat(schema, at=at, extras=rest(value, _FORMAT))
    return None


def _unread(body: JsonObject, holders: dict[str, JsonObject], options: Options) -> JsonObject:
    """The members of option objects that are not modelled or whose value is unknown, each in its object."""
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
    """Write every option into the body, and report the ones that the API does not have."""
    if same:
        write_options(options, TABLE, body, report, dialect=NAME, same=True)
    else:
        _write_foreign(options, target, body, report)
    if options.format is not None:
        _write_format(options.format, body, report, same=same)
    if options.reasoning is not None:
        write_reasoning(options.reasoning, body, report, same=same)
        if not same:
            _lose_late_thinking(options.reasoning, body, report)
            # Thinking does not allow sampling settings ("Extended thinking", platform.claude.com, 2026-11):
            # "temperature may only be set to 1 when thinking is enabled or in adaptive mode".
            if object_at(body, "thinking").get("type") in ("enabled", "adaptive"):
                for name in options_thinking_excludes(options):
                    del body[name]
                    report.lose(options.place(name), name, "thinking excludes it", "option")


def options_thinking_excludes(options: Options) -> tuple[str, ...]:
    """The sampling options that a request may not have if the model thinks."""
    excluded = {
        "temperature": options.temperature not in (None, 1),
        "top_k": options.top_k is not None,
        "top_p": options.top_p is not None and options.top_p < LEAST_TOP_P,
    }
    return tuple(name for name, is_excluded in excluded.items() if is_excluded)


def _lose_late_thinking(reasoning: Reasoning, body: JsonObject, report: Report) -> None:
    """Remove a thinking budget within a turn whose thinking was not sent back, which clients of other dialects may
    drop: "a final assistant message must start with a thinking block". Adaptive thinking is exempt from this rule."""
    if object_at(body, "thinking").get("type") != "enabled":
        return
    spoken = [message for _, message in objects_in(body.get("messages")) if message["role"] != "system"]
    if len(spoken) < 2:
        return
    *_, turn, answer = spoken
    kinds = [block["type"] for _, block in objects_in(turn["content"])]
    is_going_on = any(block["type"] == "tool_result" for _, block in objects_in(answer["content"]))
    if is_going_on and kinds[:1] not in (["thinking"], ["redacted_thinking"]):
        del body["thinking"]
        why = "the turn that goes on has begun without thinking"
        report.lose(reasoning.places.get("budget") or reasoning.at, "thinking with a budget", why, "option")


def _write_foreign(options: Options, target: Target, body: JsonObject, report: Report) -> None:
    options = fit_tier(fit_anthropic_id(options, report, NAME), OF_ANTHROPIC, report, NAME)
    write_options(
        options, TABLE, body, report, dialect=NAME, same=False, skip=_NARROWED_OPTIONS, defaults=_API_DEFAULTS
    )
    if options.max_tokens is None:
        limit = target.max_tokens + _room_to_think(options.reasoning)
        if target.facts is not None and target.facts.max_output is not None:
            limit = min(limit, max(target.facts.max_output, target.max_tokens))
        body["max_tokens"] = limit
        report.add("/max_tokens", f"max_tokens {limit}", f"{NAME} demands a limit")
    if options.temperature is not None:
        body["temperature"] = min(options.temperature, 1)
        if options.temperature > 1:
            at = options.place("temperature")
            report.lose(at, f"temperature {options.temperature}", f"{NAME} takes 1 at most", "option")
    if options.stop is not None:
        kept: list[Json] = [text for text in options.stop if text.strip()]
        if len(kept) < len(options.stop):
            report.lose(options.place("stop"), "a blank stop sequence", f"{NAME} rejects it", "option")
        body["stop_sequences"] = kept


def _room_to_think(reasoning: Reasoning | None) -> int:
    """The tokens that a limit needs in addition to those of the answer, because thinking counts too."""
    if reasoning is None or reasoning.mode == "off":
        return 0
    if reasoning.budget is not None and reasoning.budget >= 0:
        return reasoning.budget
    return _MOST_THINKING if reasoning.mode is not None or reasoning.budget is not None else 0


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
            why = f"{NAME} takes the schema alone"
            for name, value in (("name", output.name), ("description", output.description)):
                if value is not None:
                    report.lose(output.at, f"{name} of the output format", why, "identity")
            if output.strict is not None:
                why = f"{NAME} always keeps to the schema"
                report.lose(output.at, "strict of the output format", why, "identity")
        case JsonFormat():
            report.lose(output.at, "JSON without a schema", f"{NAME} has no such mode", "option")
        case PlainFormat():
            pass
        case unreachable:
            assert_never(unreachable)
