"""What is known of a model, from its own entry or from its family. None and empty mean: not known."""

from typing import Annotated, Literal, TypeAlias

import msgspec

Tokenizer: TypeAlias = Literal[
    "", "cl100k_base", "deepseek_v3", "gemma3", "gemma4", "glm4", "gpt_oss", "kimi_k2", "kimi_k3", "llama3",
    "mistral_v1", "mistral_v2", "mistral_v3", "o200k_base", "phi4", "qwen3", "smollm2",
]  # fmt: skip
"""The public vocabularies with which tokens can be counted; SmolLM2's is in the weights of the embedded model."""

Modality: TypeAlias = Literal["text", "image", "pdf", "audio", "video"]
Sampler: TypeAlias = Literal[
    "temperature", "top_p", "top_k", "stop", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs",
    "top_logprobs",
]  # fmt: skip
"""Options of a request that some models refuse, under their canonical names."""

PartRule: TypeAlias = Literal["assistant_documents", "user_citations"]
"""Parts that a version of an API refuses in certain places: files in assistant messages, and citations on user text."""

ThinkingMode: TypeAlias = Literal["adaptive", "between_tools", "budget", "off"]
"""The thinking modes of Claude models: adaptive, only between tool calls, up to a budget, or off."""

ToolKindName: TypeAlias = Literal["custom", "local_shell", "web_search"]
"""Kinds of tools besides functions: free text, commands that the client runs, and a search that the provider runs."""

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Limit: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Dollars: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
Ratio: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
Month: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^(\d{4}-\d{2})?$", description="a month such as 2026-11")]


class LongPrices(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """The prices of a whole request whose prompt has more than `above` tokens."""

    above: Limit
    input: Dollars | None = None
    output: Dollars | None = None
    cached: Dollars | None = None
    cache_write: Dollars | None = None
    cache_write_1h: Dollars | None = None


class Charges(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """What a provider charges in addition to its models' prices. `tiers` and `regions` are factors for the prices of a
    request that was answered there; a tier or region that a reply names and that is not listed here has no known price.
    `hosts` maps globs of the hosts that requests must be sent to for a region to that region: there a model costs more
    only if its region is listed here. `tools` are dollars per thousand calls of the provider's own tools. `source` is
    the page with its prices."""

    tiers: dict[str, Dollars] = {}
    regions: dict[str, Dollars] = {}
    hosts: dict[str, str] = {}
    tools: dict[str, Dollars] = {}
    as_of: Month = ""
    source: str = ""


class Prices(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """US dollars per million tokens, and the month in which they were looked up. `long` are those of long prompts.

    `cache_write_1h` is the price of tokens that the cache keeps for an hour. `providers` are those that charge these
    prices; without it, the model's providers. `tiers`, `regions`, `tools` and `source` take precedence over those of
    the provider (`Charges`). `hosts` come from there, and `region` follows from the host that requests are sent to.
    """

    input: Dollars | None = None
    output: Dollars | None = None
    cached: Dollars | None = None
    cache_write: Dollars | None = None
    cache_write_1h: Dollars | None = None
    audio_input: Dollars | None = None
    audio_output: Dollars | None = None
    image_output: Dollars | None = None
    tiers: dict[str, Dollars] = {}
    regions: dict[str, Dollars] = {}
    tools: dict[str, Dollars] = {}
    long: LongPrices | None = None
    as_of: Month = ""
    source: str = ""
    providers: tuple[str, ...] = ()
    hosts: dict[str, str] = {}
    region: str = ""


class ImageCost(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """How a provider counts the tokens of an image.

    `tiles`: `base` plus `tile` for each 512-pixel square after scaling. `patches`: squares of `patch` pixels times
    `factor`, after scaling to `longest` and to `limit` squares. `area`: width times height over `divisor`, after
    scaling to `longest` and to `limit` tokens. `squares`: `tile` for a small image, otherwise `tile` for each 768-pixel
    crop. `flat`: `base`, whatever it shows. 0 means no bound.
    """

    kind: Literal["tiles", "patches", "area", "squares", "flat"]
    base: Count = 0
    tile: Count = 0
    patch: Limit = 32
    factor: Ratio = 1.0
    divisor: Limit = 750
    longest: Count = 0
    limit: Count = 0


class ChatTemplate(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """The text that an open model reads: each message with `{role}` and `{text}` filled in, what begins the reply, and
    the system message of a conversation that has none. Tools and schemas are not part of it."""

    message: str
    reply: str = ""
    system: str = ""

    def frame(self, role: str, text: str) -> str:
        """A message as the model reads it."""
        return self.message.replace("{role}", role).replace("{text}", text)

    @property
    def end(self) -> str:
        """What follows the text of a message."""
        return self.message.partition("{text}")[2]


class Facts(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """What budgets, checks and displays need to know of a model.

    `tokenizer` names the model's own encoding; if that is not public, `nearest_tokenizer` names one that comes close
    and `chars_per_token` is used. `message_tokens`, `name_tokens` and `reply_tokens` are what the provider adds for
    each message, each name, and once. Limits are per minute (`rpm`, `tpm`) and per day (`rpd`, `tpd`).

    If `nearest_tokenizer` is used, its count is multiplied by `token_ratio`, plus or minus the share `token_spread`. A
    role is one token in addition to `message_tokens`; `assistant_tokens` are added for an assistant message, and
    `tools_tokens` (`chat_tools_tokens` through Chat Completions), `schema_tokens` and `thinking_tokens` once for a
    request with tools, with an output schema, or with reasoning on. `tool_kinds` are those that it takes besides
    functions. With a `template` and its own `tokenizer`, texts are counted as the model reads them.

    What the model rejects with an error: the options in `refuses`, with `refuses_defaults` even if they have the
    default value; the parts in `refuses_parts`; the options in `refuses_while_reasoning` unless its effort is none
    (`reasons_unasked` is whether it reasons if a request names no effort); with `one_sampler` temperature and top_p
    together; a thinking mode that is not in `thinking`; without `forced_tools` a tool choice that forces a call;
    without `inline_system` a system message inside the conversation; without `prefill` a final assistant message; with
    `signed_calls` calls of the current turn without a thought signature; with `max_completion_tokens` the older
    `max_tokens` of Chat Completions.

    `cache_minimum` is the length in tokens of the shortest prompt that its provider caches, `cache_lifetime` the
    seconds for which it is cached at least unless a request asks for something else, and `cache_marks` whether it is
    cached only at marks, although its API does not require them.
    """

    title: str = ""
    context_window: Limit | None = None
    max_output: Limit | None = None
    input: tuple[Modality, ...] | None = None
    tools: bool | None = None
    tool_kinds: tuple[ToolKindName, ...] | None = None
    reasoning: bool | None = None
    efforts: tuple[str, ...] | None = None
    verbosity: bool | None = None
    structured_output: bool | None = None
    refuses: tuple[Sampler, ...] | None = None
    refuses_while_reasoning: tuple[Sampler, ...] | None = None
    refuses_defaults: bool | None = None
    refuses_parts: tuple[PartRule, ...] | None = None
    reasons_unasked: bool | None = None
    one_sampler: bool | None = None
    thinking: tuple[ThinkingMode, ...] | None = None
    forced_tools: bool | None = None
    inline_system: bool | None = None
    prefill: bool | None = None
    signed_calls: bool | None = None
    max_completion_tokens: bool | None = None
    cache_minimum: Count | None = None
    cache_lifetime: Count | None = None
    cache_marks: bool | None = None
    tokenizer: Tokenizer = ""
    nearest_tokenizer: Tokenizer = ""
    chars_per_token: Ratio | None = None
    message_tokens: Count | None = None
    name_tokens: Count | None = None
    reply_tokens: Count | None = None
    token_ratio: Ratio | None = None
    token_spread: Share | None = None
    assistant_tokens: int | None = None
    tools_tokens: Count | None = None
    chat_tools_tokens: Count | None = None
    schema_tokens: Count | None = None
    thinking_tokens: Count | None = None
    template: ChatTemplate | None = None
    image: ImageCost | None = None
    prices: Prices | None = None
    rpm: Limit | None = None
    tpm: Limit | None = None
    rpd: Limit | None = None
    tpd: Limit | None = None


class Family(Facts, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """Facts that models share, and what our own requests to them contain.

    `match` are globs for model names; `providers` serve a matching model of which nothing else is known.
    `base_instructions` are the instructions of a request that has none; `tool_instructions` are added to them if
    `needs_special_apply_patch_instructions` is set and no tool of that name is offered.
    """

    match: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    base_instructions: str = ""
    tool_instructions: str = ""
    supports_reasoning_summaries: bool = False
    needs_special_apply_patch_instructions: bool = False
    default_effort: str = ""
    default_verbosity: Literal["", "low", "medium", "high"] = ""


class Model(Facts, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A model: the providers that serve it, its family if the name does not show it, other names under which providers
    know it, and its own facts."""

    providers: tuple[str, ...] = ()
    family: str = ""
    aliases: tuple[str, ...] = ()
