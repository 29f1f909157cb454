"""What OpenAI's own servers refuse in a request of Chat Completions or Responses, although other servers of these APIs
often take it: tools, schemas, grammars and the ranges of options (developers.openai.com, API reference, 2026-11)."""

import re
from collections.abc import Iterator, Mapping

from sightline.dialects.dialect import CacheDiagnosis, CacheRules, Problem
from sightline.dialects.fields import object_at, objects_in
from sightline.dialects.json_schemas import strict_problems, type_problems
from sightline.dialects.option_table import OPENAI_LIMITS, USER_ID, Tiers
from sightline.dialects.validity import TOOL_NAME
from sightline.model.json import Json, JsonObject

TOOL_FORM, GRAMMAR, RANGE = "tool_form", "grammar_syntax", "range"
"""The rules whose violations an edit can fix."""

SYNTAXES = ("lark", "regex")
RANGES: Mapping[str, tuple[int, int]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
    "top_logprobs": (0, 20),
    "n": (1, 128),
}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
KINDS = ("function", "custom")
_NOT_AT_ROOT = ("oneOf", "anyOf", "allOf", "enum", "not")


def option_problems(body: JsonObject, tiers: Tiers) -> Iterator[Problem]:
    """Options whose values are out of range, too long or unknown."""
    for name, (least, most) in RANGES.items():
        value = body.get(name)
        if type(value) in (int, float) and not least <= value <= most:  # type: ignore[operator] # it is a number
            yield Problem(f"/{name}", f"{name} must be between {least} and {most}", rule=RANGE)
    for name, limit in OPENAI_LIMITS.items():
        value = body.get(name)
        if isinstance(value, str) and len(value) > limit:
            yield Problem(f"/{name}", f"{name} has {len(value)} characters, at most {limit} are taken", rule=USER_ID)
    tier = body.get("service_tier")
    if isinstance(tier, str) and tiers.get(tier) != tier:
        known = ", ".join(dict.fromkeys(word for word in tiers.values() if word is not None))
        yield Problem("/service_tier", f"there is no service tier {tier!r}: there are {known}")


def tool_problems(tools: Json, at: str, *, is_nested: bool) -> Iterator[Problem]:
    """What is wrong with a list of tools. `is_nested`: a tool's fields are under its kind, as in Chat Completions."""
    for index, tool in objects_in(tools):
        place, kind = f"{at}/{index}", tool.get("type")
        if kind in KINDS:
            yield from _tool_problems(tool, str(kind), place, is_nested=is_nested)
        elif kind == "namespace" and not is_nested:
            yield from tool_problems(tool.get("tools"), f"{place}/tools", is_nested=False)


def choice_problems(choice: Json, *, is_nested: bool) -> Iterator[Problem]:
    """A choice of one tool in the form of the other API."""
    kind = choice.get("type") if isinstance(choice, dict) else None
    if isinstance(choice, dict) and kind in KINDS:
        yield from _form_problems(choice, str(kind), "/tool_choice", "choice of a {} tool", is_nested=is_nested)


def _form_problems(holder: JsonObject, kind: str, at: str, what: str, *, is_nested: bool) -> Iterator[Problem]:
    if isinstance(holder.get(kind), dict) != is_nested:
        form = f"under {kind!r}" if is_nested else f"beside its type, not under {kind!r}"
        yield Problem(at, f"the fields of a {what.format(kind)} stand {form}", rule=TOOL_FORM)


def _tool_problems(tool: JsonObject, kind: str, place: str, *, is_nested: bool) -> Iterator[Problem]:
    inner = tool.get(kind)
    yield from _form_problems(tool, kind, place, "{} tool", is_nested=is_nested)
    if isinstance(inner, dict):
        tool, place = inner, f"{place}/{kind}"
    yield from name_problems(tool.get("name"), place, "tool name")
    if kind == "custom":
        yield from _grammar_problems(object_at(tool, "format"), f"{place}/format")
    else:
        yield from _parameter_problems(
            object_at(tool, "parameters"), f"{place}/parameters", is_strict=tool.get("strict") is True
        )


def name_problems(name: Json, at: str, what: str) -> Iterator[Problem]:
    """A name that no tool could have; `at` is the place of the object that holds it."""
    if isinstance(name, str) and not _NAME.fullmatch(name):
        yield Problem(f"{at}/name", f"the {what} {name!r} must match {_NAME.pattern}", rule=TOOL_NAME)


def _parameter_problems(schema: JsonObject, at: str, *, is_strict: bool) -> Iterator[Problem]:
    yield from type_problems(schema, at)
    for key in _NOT_AT_ROOT:
        if key in schema:
            yield Problem(f"{at}/{key}", f"the parameters of a function cannot have {key} at the top")
    if is_strict and schema:
        yield from strict_problems(schema, at)


def _grammar_problems(output: JsonObject, at: str) -> Iterator[Problem]:
    if output.get("type") != "grammar":
        return
    inner = output.get("grammar")  # Chat Completions has one more level
    holder, place = (inner, f"{at}/grammar") if isinstance(inner, dict) else (output, at)
    syntax = holder.get("syntax")
    if syntax not in SYNTAXES:
        known = " and ".join(SYNTAXES)
        yield Problem(f"{place}/syntax", f"there is no grammar syntax {syntax!r}: there are {known}", rule=GRAMMAR)


def format_problems(output: JsonObject, at: str) -> Iterator[Problem]:
    """What is wrong with a schema for the answer; `at` is the place of the object that holds the name and the
    schema."""
    schema = object_at(output, "schema")
    yield from name_problems(output.get("name"), at, "name")
    yield from type_problems(schema, f"{at}/schema")
    if output.get("strict") is True and schema:
        if "anyOf" in schema:
            yield Problem(f"{at}/schema/anyOf", "the root of a strict schema must be an object, not anyOf")
        yield from strict_problems(schema, f"{at}/schema")


_CACHE_LIFETIME = {"": 300.0, "in_memory": 300.0, "30m": 1800.0, "24h": 86_400.0}
"""For how many seconds a prompt is cached, by what the request asks for. The usual cache is cleared after 5 to 10
minutes without use, and after an hour in any case: from 5 minutes on, that is the most likely cause of a miss. Later
models keep it longer, which is `cache_lifetime` in the catalogue."""


def cache_rules(diagnosis: CacheDiagnosis | None = None) -> CacheRules:
    """How OpenAI caches prompts ("Prompt caching", developers.openai.com, 2026-11).

    Models before GPT-5.6 cache any prefix, in steps of 128 tokens. Later ones cache at marks: one of their own at the
    end of the newest message, unless the request asks for `explicit`, and up to three marks of the request.
    """
    return CacheRules(
        step=128,
        lifetime=_CACHE_LIFETIME,
        keeps_last_marks=True,
        mark_field="prompt_cache_breakpoint",
        only_marked=(("prompt_cache_options", "mode"), "explicit"),
        accounts=("openai-organization", "openai-project"),
        betas=("openai-beta",),
        diagnosis=diagnosis,
    )
