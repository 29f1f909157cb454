"""What is known of a model, of itself or through its family. None and empty mean: not known."""

from typing import Annotated, Literal, TypeAlias

import msgspec

Tokenizer: TypeAlias = Literal[
    "", "cl100k_base", "deepseek_v3", "gemma3", "gemma4", "glm4", "gpt_oss", "kimi_k2", "kimi_k3", "llama3",
    "mistral_v1", "mistral_v2", "mistral_v3", "o200k_base", "phi4", "qwen3", "smollm2",
]  # fmt: skip
"""The public vocabularies that tokens can be counted with; that of SmolLM2 is in the weights of the embedded model."""

Modality: TypeAlias = Literal["text", "image", "pdf", "audio", "video"]
Sampler: TypeAlias = Literal[
    "temperature", "top_p", "top_k", "stop", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs",
    "top_logprobs",
]  # fmt: skip
"""Options of a request that some models refuse, under their canonical names."""

PartRule: TypeAlias = Literal["assistant_documents", "user_citations"]
"""Parts that a version of an API refuses where they stand: files in a message of the assistant's, and citations on the
words of the user."""

ThinkingMode: TypeAlias = Literal["adaptive", "between_tools", "budget", "off"]
"""The thinking modes of Claude models: as it sees fit, between tool calls only, up to a budget, or not at all."""

ToolKindName: TypeAlias = Literal["custom", "local_shell", "web_search"]
"""Kinds of tools beside functions: free text, commands that the client runs, and a search that the provider runs."""

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Limit: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Dollars: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
Ratio: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
Month: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^(\d{4}-\d{2})?$", description="a month such as 2026-11")]


class LongPrices(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """What a whole request costs whose prompt has more than `above` tokens."""

    above: Limit
    input: Dollars | None = None
    output: Dollars | None = None
    cached: Dollars | None = None
    cache_write: Dollars | None = None
    cache_write_1h: Dollars | None = None


class Charges(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """What a provider charges otherwise than by its models' prices. `tiers` and `regions` multiply the prices of a
    request that was answered there; a tier or a region that a reply names and that is not here has no known price.
    `hosts` are globs of the hosts that a request has to be sent to for a region: there a model is charged more only if
    its region is here. `tools` are dollars for a thousand calls of the provider's own tools. `source` is the page that
    has its prices."""

    tiers: dict[str, Dollars] = {}
    regions: dict[str, Dollars] = {}
    hosts: dict[str, str] = {}
    tools: dict[str, Dollars] = {}
    as_of: Month = ""
    source: str = ""


class Prices(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """US dollars for a million tokens, and the month in which they were looked up. `long` are those of long prompts.

    `cache_write_1h` is what tokens cost that the cache keeps for an hour. `providers` are those whose prices these are;
    without it, the model's providers. `tiers`, `regions`, `tools` and `source` go before those of the provider
    (`Charges`), from which `hosts` are and, by the host that requests are sent to, `region`.
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
    """How a provider counts an image.

    `tiles`: `base` plus `tile` for each 512-pixel square after scaling. `patches`: squares of `patch` pixels times
    `factor`, scaled to `longest` and to `limit` squares before. `area`: width times height over `divisor`, scaled to
    `longest` and to `limit` tokens before. `squares`: `tile` for a small image, else `tile` for each 768-pixel crop.
    `flat`: `base`, whatever it shows. 0 sets no bound.
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
    """The text that an open model reads: each message with `{role}` and `{text}` in their places, what begins the
    reply, and the system message of a conversation that has none. Tools and schemas are not in it."""

    message: str
    reply: str = ""
    system: str = ""

    def frame(self, role: str, text: str) -> str:
        """One message as the model reads it."""
        return self.message.replace("{role}", role).replace("{text}", text)

    @property
    def end(self) -> str:
        """What follows the text of a message."""
        return self.message.partition("{text}")[2]


class Facts(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """What budgets, checks and displays need to know of a model.

    `tokenizer` names the model's own encoding; where that is not public, `nearest_tokenizer` names one that comes close
    and `chars_per_token` is used. `message_tokens`, `name_tokens` and `reply_tokens` are what the provider adds for
    each message, each name, and once. Limits are per minute (`rpm`, `tpm`) and per day (`rpd`, `tpd`).

    Where `nearest_tokenizer` is used, its count is taken times `token_ratio`, give or take the share `token_spread`.
    A role is one token more than `message_tokens`; `assistant_tokens` come on top for a message of the assistant, and
    `tools_tokens` (`chat_tools_tokens` through Chat Completions), `schema_tokens` and `thinking_tokens` once for a
    request with tools, with a schema for its answer, or with reasoning on. `tool_kinds` are those that it takes beside
    functions. With a `template` and its own `tokenizer`, texts are counted as the model reads them.

    What the model answers with an error: the options in `refuses`, with `refuses_defaults` even where they say what
    happens anyway, the parts in `refuses_parts`, and the options in `refuses_while_reasoning` unless its
    effort is none (`reasons_unasked` says whether it reasons where a request names no effort); with `one_sampler`
    temperature and top_p together; a thinking mode that `thinking` lacks; without `forced_tools` a tool choice that
    forces a call; without `inline_system` a system message inside the conversation; without `prefill` a last message
    of the assistant's; with `signed_calls` calls of the current turn without a thought signature; with
    `max_completion_tokens` the older `max_tokens` of Chat Completions.

    `cache_minimum` are the tokens of the shortest prompt that its provider caches, `cache_lifetime` the seconds for
    which it is cached at least where a request asks for nothing else, and `cache_marks` whether it is cached at marks
    only, although its API needs none.
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
    """Facts that models share, and what our own requests to them say.

    `match` are globs over model names; `providers` serve a model of that kind of which nothing else is known.
    `base_instructions` are the instructions of a request that brings none; `tool_instructions` are added to them where
    `needs_special_apply_patch_instructions` holds and no tool of that name is offered.
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
    """One model: who serves it, its family where the name does not tell, other names by which providers know it, and
    its own facts."""

    providers: tuple[str, ...] = ()
    family: str = ""
    aliases: tuple[str, ...] = ()
