"""Options of Chat Completions: where each stands, and the two that have a shape, output format and reasoning."""

from collections.abc import Mapping

from sightline.catalog.fitting import effort_for
from sightline.dialects.fields import as_object, compact, merge, opt_bool, opt_object, opt_str, rest, str_of, unknown
from sightline.dialects.json_schemas import fit_strict
from sightline.dialects.openai_chat.names import NAME
from sightline.dialects.option_table import Table, top_level_keys
from sightline.model.json import Json, JsonObject
from sightline.model.report import Report
from sightline.model.request import JsonFormat, Options, OutputFormat, PlainFormat, Reasoning, SchemaFormat

TABLE: Table = {
    "max_tokens": (("max_completion_tokens",), ("max_tokens",)),
    "temperature": (("temperature",),),
    "top_p": (("top_p",),),
    "stop": (("stop",),),
    "seed": (("seed",),),
    "presence_penalty": (("presence_penalty",),),
    "frequency_penalty": (("frequency_penalty",),),
    "logit_bias": (("logit_bias",),),
    "logprobs": (("logprobs",),),
    "top_logprobs": (("top_logprobs",),),
    "n": (("n",),),
    "verbosity": (("verbosity",),),
    "cache_key": (("prompt_cache_key",),),
    "cache_retention": (("prompt_cache_retention",),),
    "store": (("store",),),
    "metadata": (("metadata",),),
    "user": (("user",),),
    "safety_identifier": (("safety_identifier",),),
    "service_tier": (("service_tier",),),
    "stream": (("stream",),),
    "include_usage": (("stream_options", "include_usage"),),
}

READ_TABLE: Table = {**TABLE, "top_k": (("top_k",),)}
"""Many servers of this dialect take `top_k`; the vendor's own refuses it, so it is understood and never introduced."""

OPTION_KEYS = top_level_keys(READ_TABLE)

RENAMED: Mapping[str, str] = {"max_tokens_field": "max_completion_tokens"}
"""The quirks that give a field another name, each with the usual one. Both are in the table, so that either is read."""
OTHER_NAMES = tuple((name, path[0]) for name, paths in READ_TABLE.items() for path in paths[1:])
"""The second names of options."""

RESPONSE_NAME = "response"


def read_format(value: Json, at: str) -> tuple[OutputFormat | None, JsonObject]:
    """`response_format`, and what stands beside a schema in it that we do not model."""
    if value is None:
        return None, {}
    holder = as_object(value, at)
    kind = str_of(holder, "type", at)
    if kind == "text":
        return PlainFormat(at=at, extras=rest(holder, frozenset({"type"}))), {}
    if kind == "json_object":
        return JsonFormat(at=at, extras=rest(holder, frozenset({"type"}))), {}
    if kind != "json_schema":
        raise unknown(kind, f"{at}/type", "response format", ("text", "json_object", "json_schema"))
    inner_at = f"{at}/json_schema"
    inner = as_object(holder.get("json_schema"), inner_at)
    output = SchemaFormat(
        opt_object(inner, "schema", inner_at) or {},
        opt_str(inner, "name", inner_at),
        opt_str(inner, "description", inner_at),
        opt_bool(inner, "strict", inner_at),
        at=inner_at,
        extras=rest(inner, frozenset({"name", "description", "strict", "schema"})),
    )
    return output, rest(holder, frozenset({"type", "json_schema"}))


def write_format(value: OutputFormat, report: Report, *, same: bool) -> JsonObject:
    """The same as `response_format`."""
    extras = value.extras if same else {}
    if isinstance(value, PlainFormat):
        return {"type": "text", **extras}
    if isinstance(value, JsonFormat):
        return {"type": "json_object", **extras}
    inner: JsonObject = {
        "name": value.name,
        "description": value.description,
        "strict": value.strict if same else fit_strict(value, report, NAME),
        "schema": value.schema or None,
    }
    if value.name is None:
        inner["name"] = RESPONSE_NAME
        report.add("/response_format/json_schema/name", "name of the schema", f"{NAME} demands one", "identity")
    return {"type": "json_schema", "json_schema": merge(compact(inner), extras)}


def write_reasoning(options: Options, report: Report) -> str | None:
    """The effort word; what else was asked about reasoning has no place here."""
    reasoning = options.reasoning
    if reasoning is None:
        return None
    effort = "none" if reasoning.mode == "off" and reasoning.effort is None else reasoning.effort
    if effort is None and reasoning.budget is not None:
        effort = effort_for(reasoning.budget)
    lose_reasoning(reasoning, report, NAME, summary=True)
    return effort


def lose_reasoning(reasoning: Reasoning, report: Report, dialect: str, *, summary: bool) -> None:
    """Report what an effort word does not say."""
    places = reasoning.places
    if reasoning.budget is not None:
        instead = f"the nearest effort is {effort_for(reasoning.budget)}"
        report.lose(
            places.get("budget", reasoning.at),
            f"reasoning budget of {reasoning.budget} tokens",
            f"{dialect} takes an effort; {instead}",
            "option",
        )
    if reasoning.mode in ("on", "adaptive") and reasoning.effort is None and reasoning.budget is None:
        report.lose(
            places.get("mode", reasoning.at), f"reasoning {reasoning.mode}", f"{dialect} takes an effort only", "option"
        )
    elif reasoning.mode is not None and reasoning.effort is not None:
        report.lose(
            places.get("mode", reasoning.at),
            f"reasoning {reasoning.mode}",
            f"{dialect} says it by the effort",
            "identity",
        )
    if summary and reasoning.summary not in (None, "none"):
        report.lose(places.get("summary", reasoning.at), "reasoning summary", f"{dialect} cannot ask for one", "option")
