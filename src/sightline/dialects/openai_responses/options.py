"""Options of the Responses API: where each stands, and those that have a shape: format, reasoning, logprobs."""

from collections.abc import Mapping

from sightline.catalog.fitting import effort_for
from sightline.dialects.fields import as_object, compact, merge, opt_bool, opt_object, opt_str, rest, str_of
from sightline.dialects.json_schemas import fit_strict
from sightline.dialects.openai_chat.options import RESPONSE_NAME, lose_reasoning
from sightline.dialects.openai_responses.names import LOGPROBS, NAME
from sightline.dialects.option_table import (
    OF_RESPONSES,
    Table,
    fit_openai_ids,
    fit_tier,
    options_of,
    read_options,
    top_level_keys,
    write_options,
)
from sightline.model.json import Json, JsonObject
from sightline.model.options import JsonFormat, Options, OutputFormat, PlainFormat, Reasoning, SchemaFormat
from sightline.model.report import Report

TABLE: Table = {
    "max_tokens": (("max_output_tokens",),),
    "temperature": (("temperature",),),
    "top_p": (("top_p",),),
    "top_logprobs": (("top_logprobs",),),
    "verbosity": (("text", "verbosity"),),
    "cache_key": (("prompt_cache_key",),),
    "cache_retention": (("prompt_cache_retention",),),
    "store": (("store",),),
    "include": (("include",),),
    "previous_response_id": (("previous_response_id",),),
    "metadata": (("metadata",),),
    "user": (("user",),),
    "safety_identifier": (("safety_identifier",),),
    "service_tier": (("service_tier",),),
    "stream": (("stream",),),
}

OPTION_KEYS = top_level_keys(TABLE) | {"text", "reasoning"}

_TEXT = frozenset({"format", "verbosity"})
_SCHEMA = frozenset({"type", "name", "schema", "strict", "description"})
_TYPE = frozenset({"type"})
_UNASKED: Mapping[str, object] = {
    "n": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "logprobs": False,
    "stop": (),
    "logit_bias": {},
}
"""Options that have no place here, with the values that say what the API does anyway."""
_OFF = "none"


def read_all(document: JsonObject) -> tuple[Options, JsonObject]:
    """Every option, and what the `text` object holds besides."""
    found, places = read_options(document, TABLE)
    # The word of `include` that asks for logprobs is an option of its own in every other dialect.
    include = found.get("include")
    if isinstance(include, tuple) and LOGPROBS in include:
        place = include.index(LOGPROBS)
        found["include"] = (*include[:place], *include[place + 1 :]) or None
        found["logprobs"] = True
        if len(include) == 1:
            del places["include"]
        places["logprobs"] = f"/include/{place}"
    text = opt_object(document, "text", "")
    extras: JsonObject = {}
    if text is not None:
        spare = rest(text, _TEXT)
        output_format = read_format(text.get("format"), "/text/format")
        if output_format is not None:
            found["format"] = output_format
        elif text.get("format") is not None:
            spare = {**spare, "format": text["format"]}
        if spare or not text:
            extras = {"text": spare}
    found["reasoning"] = read_reasoning(document)
    return options_of(found, places), extras


def read_format(value: Json, at: str) -> OutputFormat | None:
    """`text.format`; None for a kind that we do not know."""
    if value is None:
        return None
    holder = as_object(value, at)
    match str_of(holder, "type", at):
        case "text":
            return PlainFormat(at=at, extras=rest(holder, _TYPE))
        case "json_object":
            return JsonFormat(at=at, extras=rest(holder, _TYPE))
        case "json_schema":
            return SchemaFormat(
                as_object(holder.get("schema"), f"{at}/schema"),
                opt_str(holder, "name", at),
                opt_str(holder, "description", at),
                opt_bool(holder, "strict", at),
                at=at,
                extras=rest(holder, _SCHEMA),
            )
        case _:
            return None


def read_reasoning(document: JsonObject) -> Reasoning | None:
    """`reasoning`. Its `mode` is not ours, so it stays among the extras; an effort of none is thinking switched off."""
    holder = opt_object(document, "reasoning", "")
    if holder is None:
        return None
    at = "/reasoning"
    effort = opt_str(holder, "effort", at)
    key = "summary" if holder.get("summary") is not None else "generate_summary"
    summary = opt_str(holder, key, at)
    mode = "off" if effort == _OFF else None
    values = {"mode": mode, "effort": None if mode else effort, "summary": summary}
    homes = {"mode": f"{at}/effort", "effort": f"{at}/effort", "summary": f"{at}/{key}"}
    return Reasoning(
        mode=mode,
        effort=values["effort"],
        summary=summary,
        places={name: homes[name] for name, value in values.items() if value is not None},
        at=at,
        extras=rest(holder, frozenset({"effort", key})),
    )


def write_all(options: Options, document: JsonObject, report: Report, *, same: bool) -> None:
    """Every option in its place; report the ones that have none."""
    skip = {"include_usage", "logprobs"}  # usage always comes; logprobs are a word of `include`
    if not same:
        options = fit_tier(fit_openai_ids(options, report, NAME), OF_RESPONSES, report, NAME)
    for name, usual in _UNASKED.items():
        if getattr(options, name) == usual:
            skip.add(name)
            report.lose(options.places.get(name, f"/{name}"), name, f"{NAME} does so unasked", "identity")
    if options.include_usage is not None and not same:
        place = options.places.get("include_usage", "/include_usage")
        report.lose(place, "token counts requested", f"{NAME} always sends them", "identity")
    write_options(options, TABLE, document, report, dialect=NAME, same=same, skip=frozenset(skip))
    if options.logprobs:
        include: list[Json] = list(options.include or ())
        index = options.places.get("logprobs", "").removeprefix("/include/")
        include.insert(int(index) if index.isdigit() else len(include), LOGPROBS)
        document["include"] = include
    if options.format is not None:
        text = as_object(document.setdefault("text", {}), "/text")
        text["format"] = write_format(options.format, report, same=same)
    if options.reasoning is not None:
        reasoning = write_reasoning(options.reasoning, report, same=same)
        if reasoning or same:
            document["reasoning"] = reasoning


def write_format(value: OutputFormat, report: Report, *, same: bool) -> JsonObject:
    """The same as `text.format`."""
    extras = value.extras if same else {}
    if isinstance(value, PlainFormat):
        return {"type": "text", **extras}
    if isinstance(value, JsonFormat):
        return {"type": "json_object", **extras}
    document: JsonObject = {
        "type": "json_schema",
        "name": value.name,
        "description": value.description,
        "strict": value.strict if same else fit_strict(value, report, NAME),
    }
    if value.name is None and not same:
        document["name"] = RESPONSE_NAME
        report.add("/text/format/name", "name of the schema", f"{NAME} demands one", "identity")
    return merge({**compact(document), "schema": value.schema}, extras)


def write_reasoning(reasoning: Reasoning, report: Report, *, same: bool) -> JsonObject:
    """The same as `reasoning`: an effort, and a summary unless there is to be none."""
    effort = reasoning.effort
    if effort is None and reasoning.mode == "off":
        effort = _OFF
    elif effort is None and reasoning.budget is not None:
        effort = effort_for(reasoning.budget)
    if same:
        key = reasoning.places.get("summary", "summary").rpartition("/")[2]
        return merge(compact({"effort": effort, key: reasoning.summary}), reasoning.extras)
    lose_reasoning(reasoning, report, NAME, summary=False)
    return compact({"effort": effort, "summary": None if reasoning.summary == _OFF else reasoning.summary})
