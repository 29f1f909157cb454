"""Reads and writes options, output format and thinking; nearly all of them are in `generationConfig`."""

from collections.abc import Mapping
from itertools import product

from sightline.dialects.fields import opt_bool, opt_int, opt_object, opt_str, rest
from sightline.dialects.gemini.field_names import NAME, SNAKE, both, read_enum, restore_extras, spelling_of
from sightline.dialects.gemini.tools import read_schema, strip_refused, write_schema
from sightline.dialects.option_table import (
    OF_GEMINI,
    Path,
    Table,
    fit_stops,
    fit_tier,
    reasoning_of,
    set_path,
    write_options,
)
from sightline.model.json import JsonObject
from sightline.model.report import Report
from sightline.model.request import ADDED, JsonFormat, Options, OutputFormat, PlainFormat, Reasoning, SchemaFormat

_CONFIG = "generationConfig"
STOP_LIMIT = 5


def _in_config(name: str) -> tuple[Path, ...]:
    containers = (_CONFIG, SNAKE[_CONFIG])
    return tuple(product(containers, (name, SNAKE[name]) if name in SNAKE else (name,)))


TABLE: Table = {
    "max_tokens": _in_config("maxOutputTokens"),
    "temperature": _in_config("temperature"),
    "top_p": _in_config("topP"),
    "top_k": _in_config("topK"),
    "stop": _in_config("stopSequences"),
    "seed": _in_config("seed"),
    "presence_penalty": _in_config("presencePenalty"),
    "frequency_penalty": _in_config("frequencyPenalty"),
    "logprobs": _in_config("responseLogprobs"),
    "top_logprobs": _in_config("logprobs"),
    "n": _in_config("candidateCount"),
    "service_tier": (("serviceTier",), ("service_tier",)),
    "safety_settings": (("safetySettings",), ("safety_settings",)),
    "store": (("store",),),
}
CONFIG_KEYS = both("thinkingConfig") | {path[1] for paths in TABLE.values() for path in paths if len(path) == 2}
"""The members of `generationConfig` whose whole value is read."""
_FORMAT = both("responseMimeType", "responseSchema", "responseJsonSchema")
_HANDLED_SEPARATELY = frozenset({"stream"})
"""Streaming is requested by the URL."""
_API_DEFAULTS: Mapping[str, object] = {"logit_bias": {}, "verbosity": "medium"}

_THINKING = both("includeThoughts", "thinkingBudget", "thinkingLevel")
_LEVELS: Mapping[str, str] = {
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "HIGH",
    "max": "HIGH",
}
_NUMBERED_LEVELS = ("THINKING_LEVEL_UNSPECIFIED", "LOW", "MEDIUM", "HIGH")
_MODES: Mapping[str | None, int] = {"off": 0, "adaptive": -1, "on": -1}
_INCLUDE_THOUGHTS: Mapping[str, bool] = {"auto": True, "concise": True, "detailed": True, "none": False}


def read_format(config: JsonObject, at: str) -> tuple[OutputFormat | None, frozenset[str]]:
    """The format of the answer, and the members of `generationConfig` that define it.

    For a schema without a media type, a silent null records that.
    """
    kind_key = spelling_of(config, "responseMimeType")
    kind = opt_str(config, kind_key, at)
    for name in ("responseJsonSchema", "responseSchema"):
        key = spelling_of(config, name)
        wire = opt_object(config, key, at)
        if wire is not None:
            if kind not in (None, "application/json"):
                return None, frozenset()
            schema = read_schema(wire, name, is_openapi=name == "responseSchema")
            extras: JsonObject = {"responseMimeType": None} if kind is None else {}
            return SchemaFormat(schema, at=f"{at}/{key}", extras=extras), both(name, "responseMimeType")
    place = f"{at}/{kind_key}"
    if kind == "application/json":
        return JsonFormat(at=place), _FORMAT
    if kind == "text/plain":
        return PlainFormat(at=place), _FORMAT
    return None, frozenset()


def read_reasoning(config: JsonObject, at: str) -> Reasoning | None:
    """The settings of `thinkingConfig`; for a level in lower case, a silent null records that."""
    key = spelling_of(config, "thinkingConfig")
    thinking = opt_object(config, key, at)
    if thinking is None:
        return None
    at = f"{at}/{key}"
    extras = rest(thinking, _THINKING)
    level_key, budget_key, shown_key = (
        spelling_of(thinking, name) for name in ("thinkingLevel", "thinkingBudget", "includeThoughts")
    )
    level = read_enum(thinking, level_key, _NUMBERED_LEVELS, at)
    budget = opt_int(thinking, budget_key, at)
    shown = opt_bool(thinking, shown_key, at)
    mode = {0: "off", -1: "adaptive"}.get(budget) if budget is not None else None
    if level is not None and level == level.lower():
        extras = {**extras, "thinkingLevel": None}
    return reasoning_of(
        at,
        extras,
        effort=(None if level is None else level.lower(), f"{at}/{level_key}"),
        mode=(mode, f"{at}/{budget_key}"),
        budget=(None if mode else budget, f"{at}/{budget_key}"),
        summary=(None if shown is None else "auto" if shown else "none", f"{at}/{shown_key}"),
    )


def write_all(options: Options, document: JsonObject, report: Report, *, same: bool) -> None:
    """Put every option into the document, in the one place and spelling that we write."""
    if not same:
        options = fit_tier(fit_stops(options, STOP_LIMIT, report, NAME), OF_GEMINI, report, NAME)
    write_options(
        options, TABLE, document, report, dialect=NAME, same=False, skip=_HANDLED_SEPARATELY, defaults=_API_DEFAULTS
    )
    if options.format is not None:
        _write_format(options, options.format, document, report, same=same)
    if options.reasoning is not None:
        thinking = _thinking_unchanged(options.reasoning) if same else _thinking(options.reasoning, report)
        if same or thinking:
            set_path(document, (_CONFIG, "thinkingConfig"), thinking)


def _write_format(options: Options, chosen: OutputFormat, document: JsonObject, report: Report, *, same: bool) -> None:
    kind = "text/plain" if isinstance(chosen, PlainFormat) else "application/json"
    if not same or "responseMimeType" not in chosen.extras:
        set_path(document, (_CONFIG, "responseMimeType"), kind)
    if not isinstance(chosen, SchemaFormat):
        return
    if same:
        key, schema = write_schema(chosen.schema, "responseJsonSchema")
        set_path(document, (_CONFIG, key), schema)
        return
    at = chosen.at or options.places.get("format", "/format")
    place = f"/{_CONFIG}/responseJsonSchema"
    set_path(document, (_CONFIG, "responseJsonSchema"), strip_refused(chosen.schema, at, place, report))
    if chosen.name is not None:
        report.lose(at, "name of the schema", "gemini has no names for schemas", "identity")
    if chosen.description is not None:
        report.lose(at, "description of the schema", "gemini has none beside a schema", "option")
    if chosen.strict is not None:
        report.lose(at, "strict", "gemini always keeps to the schema", "identity")


def _thinking_unchanged(reasoning: Reasoning) -> JsonObject:
    thinking: JsonObject = {}
    if reasoning.effort is not None:
        is_small = "thinkingLevel" in reasoning.extras
        thinking["thinkingLevel"] = reasoning.effort if is_small else reasoning.effort.upper()
    budget = _MODES.get(reasoning.mode, reasoning.budget)
    if budget is not None:
        thinking["thinkingBudget"] = budget
    if reasoning.summary is not None:
        thinking["includeThoughts"] = _INCLUDE_THOUGHTS.get(reasoning.summary, True)
    return restore_extras(thinking, {key: value for key, value in reasoning.extras.items() if value is not None})


def _thinking(reasoning: Reasoning, report: Report) -> JsonObject:
    """The nearest setting that the API has; a level and a budget exclude each other."""

    def lose(name: str, why: str) -> None:
        report.lose(reasoning.places.get(name, reasoning.at or "/reasoning"), f"reasoning {name}", why, "option")

    thinking: JsonObject = {}
    effort = reasoning.effort
    if reasoning.mode == "off" or effort == "none":
        thinking["thinkingBudget"] = 0
        if effort not in (None, "none"):
            lose("effort", "gemini has no effort without thinking")
    elif effort is not None and effort in _LEVELS:
        thinking["thinkingLevel"] = _LEVELS[effort]
        if effort in ("xhigh", "max"):
            lose("effort", f"gemini goes up to high, not {effort}")
        if reasoning.budget is not None:
            lose("budget", "gemini takes a level or a budget, not both")
    else:
        if effort is not None:
            lose("effort", f"gemini has no level {effort!r}")
        budget = _MODES.get(reasoning.mode) if reasoning.budget is None else reasoning.budget
        if budget is not None:
            thinking["thinkingBudget"] = budget
    if reasoning.summary is not None and reasoning.summary in _INCLUDE_THOUGHTS:
        thinking["includeThoughts"] = _INCLUDE_THOUGHTS[reasoning.summary]
        if reasoning.places.get("summary") == ADDED:
            place = f"/{_CONFIG}/thinkingConfig/includeThoughts"
            report.add(place, "thoughts in the reply", "the client shows what the model thinks")
    if reasoning.summary not in (None, "auto", "none"):
        lose("summary", "gemini shows its thoughts or does not")
    return thinking
