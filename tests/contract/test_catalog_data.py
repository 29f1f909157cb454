"""The tables that come with Sightline: they can be read, agree with each other, and claim nothing impossible."""

import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path

import msgspec
import pytest
import splintr

from sightline.catalog.catalog import Catalog, facts_of, family_of, spellings
from sightline.catalog.choose import choose, default_choice
from sightline.catalog.facts import Facts, Family, Model, Prices
from sightline.catalog.fitting import ReasoningForm, fit_to_model
from sightline.catalog.loading import load
from sightline.catalog.provider import Provider
from sightline.catalog.toml import TomlText
from sightline.dialects.endpoint import call_to, endpoint_of
from sightline.dialects.registry import PROVIDER_DIALECTS
from sightline.errors import Code, Fault
from sightline.model.report import Report
from sightline.model.request import Options, Reasoning, Request
from sightline.settings import Settings
from sightline.wire.call import Variable

DATA = Path(str(resources.files("sightline.catalog") / "data"))
DOCS = Path(__file__).parents[2] / "docs"
THIS_MONTH = "2026-11"

# Globs for models that people run themselves, that a vendor has switched off, or that only a vendor's path hides.
OPEN_GLOBS = {
    "chatgpt-4o*", "claude-2*", "claude-3*", "claude-instant*", "claude-opus-4", "claude-opus-4-2025*", "codex-*",
    "codex-mini*", "gpt-5-codex*", "gpt-5.1-codex*",
    "deepseek-chat*", "deepseek-r1*", "deepseek-r1-distill-llama*", "deepseek-r1-distill-qwen*", "deepseek-r1:1.5b*",
    "deepseek-r1:14b*", "deepseek-r1:32b*", "deepseek-r1:70b*", "deepseek-r1:7b*", "deepseek-r1:8b*",
    "deepseek-reasoner*", "deepseek-v3*", "devstral*", "gemma-3*", "glm-4*", "gpt-3.5*", "gpt-35*", "gpt-4.5*",
    "llama-4*", "llama-v3*", "llama4*", "magistral*", "meta-llama-3*", "ministral*", "mistral-7b*", "mixtral*",
    "mixtral-8x22b*", "mixtral:8x22b*", "o1*", "open-mistral-7b*", "open-mixtral*", "open-mixtral-8x22b*",
    "phi-4-mini*", "phi-4-multimodal*", "phi3*", "phi4-mini*", "pixtral*", "qwen-2*", "qwen-3-*", "qwen2*", "qwen3:*",
    "qwq*", "zai-glm-4*",
}  # fmt: skip


def table(name: str) -> dict[str, dict[str, object]]:
    document = tomllib.loads((DATA / f"{name}.toml").read_text(encoding="utf-8"))
    assert set(document) == {name}
    return document[name]


PROVIDERS = {name: msgspec.convert(entry, Provider, strict=True) for name, entry in table("providers").items()}
FAMILIES = {name: msgspec.convert(entry, Family, strict=True) for name, entry in table("families").items()}
MODELS = {name: msgspec.convert(entry, Model, strict=True) for name, entry in table("models").items()}
CATALOG = Catalog(providers=PROVIDERS, families=FAMILIES, models=MODELS)


def names_of(name: str, model: Model) -> list[str]:
    """Under which names the model is sent: a leading provider only says for whom the entry holds."""
    own = [name.removeprefix(f"{provider}/") for provider in model.providers if name.startswith(f"{provider}/")]
    return [*(own or [name]), *model.aliases]


def priced() -> Iterator[tuple[str, Prices]]:
    for name, facts in [*FAMILIES.items(), *MODELS.items()]:
        if facts.prices is not None:
            yield name, facts.prices


def test_they_load_without_a_complaint() -> None:
    texts = [TomlText(path.name, path.read_text(encoding="utf-8")) for path in sorted(DATA.glob("*.toml"))]
    assert len(texts) >= 4
    assert load(texts, {}, Settings, dialects=PROVIDER_DIALECTS).problems == ()


# --- providers ------------------------------------------------------------------------------------


def test_the_order_of_providers_is_the_order_of_preference() -> None:
    order = list(PROVIDERS)
    assert order[:4] == ["openai", "anthropic", "gemini", "openrouter"]
    assert order[-1] == "local"


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_says_how_to_get_its_key(name: str) -> None:
    provider = PROVIDERS[name]
    assert bool(provider.key_help) == bool(provider.key_env)
    assert provider.embedded or not provider.key_env or "https://" in provider.key_help
    assert provider.title


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_can_be_called_in_every_dialect_that_it_speaks(name: str) -> None:
    provider = PROVIDERS[name]
    assert provider.dialect not in provider.also
    for spoken in (provider.dialect, *provider.also):
        url = call_to(provider, spoken, "some-model", b"{}", stream=True).url
        shown = f"https://variable{url.suffix}" if isinstance(url, Variable) else url
        tail = endpoint_of(spoken).path.replace("{model}", "some-model").partition(":")[0]
        assert tail in shown
        assert shown.startswith("http://127.0.0.1:" if not provider.key_env else "https://")
        assert len(re.findall(r"/v\d", shown)) == (0 if name == "deepseek" and spoken == "openai-chat" else 1)


def test_only_servers_on_this_machine_need_no_key() -> None:
    keyless = {name for name, provider in PROVIDERS.items() if not provider.key_env}
    assert keyless == {"ollama", "lmstudio", "vllm", "llamacpp"}
    assert [name for name, provider in PROVIDERS.items() if provider.embedded] == ["local"]


@pytest.mark.parametrize("name", PROVIDERS)
def test_the_default_model_is_one_of_the_provider(name: str) -> None:
    wanted = PROVIDERS[name].default_model
    own = {
        sent for model_name, model in MODELS.items() if name in model.providers for sent in names_of(model_name, model)
    }
    assert not wanted or wanted in own
    assert bool(wanted) == (bool(PROVIDERS[name].key_env) and name != "azure")


def test_nothing_in_the_tables_is_a_secret() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in DATA.glob("*.toml"))
    assert not re.search(r"\b(?:sk|gsk|csk|xai|fw|hf)[-_][A-Za-z0-9]{8,}|AIza|Bearer \S|password|secret", text)
    for provider in PROVIDERS.values():
        assert not {name.lower() for name in provider.headers} & {"authorization", "x-api-key", "api-key"}
        assert re.fullmatch(r"[A-Z][A-Z0-9_]*|", provider.key_env)


# --- families -------------------------------------------------------------------------------------


def fits(glob: str) -> bool:
    spelled = {
        each.lower() for name, model in MODELS.items() for sent in names_of(name, model) for each in spellings(sent)
    }
    return any(fnmatchcase(name, glob) for name in spelled)


def test_every_glob_has_a_model_or_is_known_to_have_none() -> None:
    idle = {glob for family in FAMILIES.values() for glob in family.match if not fits(glob)}
    assert idle == OPEN_GLOBS


def test_no_glob_belongs_to_two_families() -> None:
    globs = [glob for family in FAMILIES.values() for glob in family.match]
    assert len(globs) == len(set(globs))
    assert all(family.match and family.title for family in FAMILIES.values())


def test_globs_of_one_length_never_quarrel_over_a_model() -> None:
    for name, model in MODELS.items():
        for sent in names_of(name, model):
            spelled = [each.lower() for each in spellings(sent)]
            fitting = {
                (len(glob), family)
                for family, each in FAMILIES.items()
                for glob in each.match
                if any(fnmatchcase(spelling, glob) for spelling in spelled)
            }
            longest = max((length for length, _ in fitting), default=0)
            assert len([family for length, family in fitting if length == longest]) <= 1, sent


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-6.1-terra-2026-10-26", "gpt-6"),
        ("gpt-5.4-mini-2026-03-17", "gpt-5.4"),
        ("gpt-5-codex", "codex"),
        ("codex-mini-latest", "codex-mini"),
        ("o4-mini", "o-series"),
        ("gpt-4o-mini", "gpt-4o"),
        ("gpt-4-turbo", "gpt-4"),
        ("claude-opus-4-8", "claude"),
        ("anthropic/claude-opus-4.7", "claude"),
        ("claude-opus-4-5-20251101", "claude-4.6"),
        ("anthropic/claude-opus-4.1", "claude-4.6"),
        ("claude-opus-4-20250514", "claude-4.6"),
        ("claude-3-5-sonnet-20241022", "claude-4.6"),
        ("models/gemini-2.5-flash", "gemini-2"),
        ("gemini-3-flash-preview", "gemini-3"),
        ("gemini-3.5-flash", "gemini-3.1"),
        ("gemini-4-argon", "gemini"),
        ("phi-4", "phi-4"),
        ("phi-4-mini", "phi"),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507-tput", "qwen-3"),
        ("qwen/qwen3.7-max", "qwen"),
        ("mistral-large-latest", "mistral-large-4"),
        ("open-mixtral-8x22b", "mixtral-8x22b"),
        ("deepseek-r1:8b", "deepseek-distill-llama"),
        ("meta-llama/Llama-3.3-70B-Instruct-Turbo", "llama-3"),
        ("accounts/fireworks/models/kimi-k2p6", "kimi-k2"),
        ("gpt-oss:20b", "gpt-oss"),
    ],
)
def test_a_model_belongs_to_its_family(model: str, family: str) -> None:
    assert family_of(CATALOG, "", model) is FAMILIES[family]


def test_every_encoding_can_be_loaded() -> None:
    every: list[Facts] = [*FAMILIES.values(), *MODELS.values()]
    named = {facts.tokenizer for facts in every} | {facts.nearest_tokenizer for facts in every}
    for name in named - {"", "smollm2"}:  # that one is read from the weights of the embedded model
        assert splintr.Tokenizer.from_pretrained(name).encode_ordinary("Hello, world")


def test_a_family_is_counted_exactly_or_nearly_but_never_both() -> None:
    for name, family in FAMILIES.items():
        assert bool(family.tokenizer) != bool(family.nearest_tokenizer or family.chars_per_token), name


def test_only_openai_s_families_have_base_instructions_and_they_are_short() -> None:
    for name, family in FAMILIES.items():
        is_openai = family.providers[:1] == ("openai",)
        assert bool(family.base_instructions) == is_openai, name
        assert len(family.base_instructions) < 250, name
        # Nothing here applies patches by a command, so that there is nothing to explain.
        assert not family.tool_instructions, name
        assert not family.needs_special_apply_patch_instructions, name
        assert not family.default_effort, name
        assert not family.default_verbosity, name


def test_image_costs_have_what_their_kind_needs() -> None:
    for name, facts in [*FAMILIES.items(), *MODELS.items()]:
        image = facts.image
        if image is None:
            continue
        assert image.kind in ("patches", "flat", "squares", "tiles"), name
        assert bool(image.tile) == (image.kind in ("tiles", "squares")), name
        assert bool(image.base) == (image.kind in ("tiles", "flat")), name
        assert image.patch in (28, 32), name


# --- models ---------------------------------------------------------------------------------------


def test_models_name_providers_and_families_that_exist() -> None:
    for name, model in MODELS.items():
        assert model.providers, name
        assert set(model.providers) <= set(PROVIDERS), name
        assert model.family in {"", *FAMILIES}, name


def test_every_model_has_a_family() -> None:
    assert [name for name in MODELS if not family_of(CATALOG, "", name).match] == []


def test_a_name_means_one_model_and_no_provider() -> None:
    names = [each.lower() for name, model in MODELS.items() for each in (name, *model.aliases)]
    assert len(names) == len(set(names))
    assert not set(names) & set(PROVIDERS)


def test_a_reply_fits_into_the_window() -> None:
    for name, model in MODELS.items():
        if model.context_window is not None and model.max_output is not None:
            assert 0 < model.max_output <= model.context_window, name


def test_what_a_model_takes_is_known() -> None:
    unknown = [
        name
        for name, model in MODELS.items()
        if facts_of(CATALOG, model.providers[0], names_of(name, model)[0]).input is None
    ]
    assert sorted(unknown) == ["gemma3", "llama3.2", "llama3.3", "qwen-3.8-27b"]


def test_only_reasoning_models_have_efforts() -> None:
    for name, model in MODELS.items():
        facts = facts_of(CATALOG, model.providers[0], names_of(name, model)[0])
        assert not facts.efforts or facts.reasoning, name


def test_prices_are_possible() -> None:
    free = {"smollm2-135m-instruct"} | {name for name, model in MODELS.items() if model.providers == ("ollama",)}
    for name, prices in priced():
        assert prices.input is not None, name
        assert prices.output is not None, name
        assert prices.output >= prices.input, name
        assert (prices.output == 0) == (name in free), name
        assert prices.cached is None or prices.cached <= prices.input, name
        assert prices.cache_write is None or prices.cache_write >= prices.input, name
        assert re.fullmatch(r"20\d\d-(?:0[1-9]|1[0-2])", prices.as_of), name
        assert prices.as_of <= THIS_MONTH, name


def test_long_prompts_cost_more() -> None:
    for name, prices in priced():
        long = prices.long
        if long is None:
            continue
        for short, more in ((prices.input, long.input), (prices.output, long.output), (prices.cached, long.cached)):
            assert more is None or (short is not None and more > short), name
        assert 0 < long.above < (MODELS[name].context_window or 0), name


def test_the_same_weights_have_each_providers_own_price() -> None:
    for provider, price in {"groq": 0.15, "cerebras": 0.35, "together": 0.15}.items():
        facts = facts_of(CATALOG, provider, PROVIDERS[provider].default_model)
        assert facts.prices.input == price
        assert facts.context_window == 131_072
    assert facts_of(CATALOG, "vllm", "openai/gpt-oss-120b").prices is None


def test_a_model_behind_openrouter_is_the_same_model() -> None:
    """In everything but its price, which OpenRouter sets."""
    behind = facts_of(CATALOG, "openrouter", "anthropic/claude-sonnet-5.5")
    assert behind == msgspec.structs.replace(facts_of(CATALOG, "anthropic", "claude-sonnet-5-5"), prices=None)


def test_a_name_that_only_openrouter_gives_is_not_sent_to_the_maker() -> None:
    with pytest.raises(Fault) as refused:
        choose(CATALOG, "claude-opus-4.7", has_key=lambda _: True)
    assert refused.value.code is Code.MODEL_UNKNOWN
    assert "claude-opus-4-7" in refused.value.hint


def test_open_weights_model_is_routed_to_a_provider_with_a_key() -> None:
    chosen = choose(CATALOG, "openai/gpt-oss-120b", has_key=lambda provider: provider.key_env == "TOGETHER_API_KEY")
    assert (chosen.provider_name, chosen.model) == ("together", "openai/gpt-oss-120b")
    assert choose(CATALOG, "mistral", has_key=lambda _: False).model == PROVIDERS["mistral"].default_model


@pytest.mark.parametrize("name", [name for name, provider in PROVIDERS.items() if provider.default_model])
def test_a_key_alone_is_enough_to_ask(name: str) -> None:
    chosen = default_choice(CATALOG, has_key=lambda provider: provider is PROVIDERS[name])
    assert (chosen.provider_name, chosen.model) == (name, PROVIDERS[name].default_model)
    assert chosen.facts.context_window


# --- the pages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROVIDERS)
def test_provider_is_listed_in_the_reference(name: str) -> None:
    page = (DOCS / "reference" / "providers.md").read_text().partition("\n## ")[0]
    rows = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
    assert len(rows) == 1, f"docs/reference/providers.md needs one row for {name}"
    provider = PROVIDERS[name]
    assert (f"`{provider.key_env}`" if provider.key_env else "none") in rows[0]
    for spoken in (provider.dialect, *provider.also):
        assert spoken in rows[0]
    for address in re.findall(r"https://[^\s)]+", provider.key_help):
        assert address in rows[0]


def test_the_examples_of_the_guide_are_sound() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", (DOCS / "guide" / "providers.md").read_text(), re.DOTALL)
    own = [TomlText(path.name, path.read_text(encoding="utf-8")) for path in sorted(DATA.glob("*.toml"))]
    assert len(blocks) >= 4
    for block in blocks:
        assert (
            load([*own, TomlText("sightline.toml", block)], {}, Settings, dialects=PROVIDER_DIALECTS).problems == ()
        ), block


# --- what models refuse -----------------------------------------------------------------------------


def fitted(model: str, form: ReasoningForm, **options: object) -> Options:
    """The options that are left for a model of the tables."""
    facts = facts_of(CATALOG, "", model)
    request = Request(model=model, options=Options(**options))
    return fit_to_model(request, facts, form, Report()).options


@pytest.mark.parametrize(
    ("model", "sampling"),
    [
        ("claude-opus-5-5", set()),
        ("anthropic/claude-opus-4.8", set()),
        ("claude-opus-4-7-20260416", set()),
        ("claude-sonnet-5", set()),
        ("claude-opus-4-6", {"temperature", "top_k"}),
        ("claude-haiku-4-5-20251001", {"temperature", "top_k"}),
        ("gpt-6.1-terra", {"top_k"}),
        ("gpt-5.5", {"top_k"}),
        ("gpt-5.4", {"temperature", "top_p", "top_k"}),
        ("gpt-5.4-pro", {"top_k"}),
        ("gpt-5.1", {"temperature", "top_p", "top_k"}),
        ("gpt-5-mini", {"top_k"}),
        ("gpt-5-chat-latest", {"temperature", "top_p", "top_k", "stop"}),
        ("o4-mini", {"top_k"}),
        ("gpt-4.1", {"temperature", "top_p", "top_k", "stop"}),
        ("gemini-3.8-flash", {"temperature", "top_p", "top_k", "stop"}),
    ],
)
def test_which_sampling_options_a_model_takes(model: str, sampling: set[str]) -> None:
    names = ("temperature", "top_p", "top_k", "stop")
    left = fitted(model, "effort", temperature=0.2, top_p=0.9, top_k=4, stop=("END",))
    wanted = sampling | ({"stop"} if "claude" in model else set())
    assert {name for name in names if getattr(left, name) is not None} == wanted


def test_effort_none_gives_sampling_back_where_the_model_has_it() -> None:
    off = Reasoning(effort="none")
    for model in ("gpt-6.1-terra", "gpt-5.5", "gpt-5.2"):
        assert fitted(model, "effort", temperature=0.2, reasoning=off).temperature == 0.2
    for model in ("gpt-6.1-sol", "gpt-6-astra", "gpt-5", "gpt-5.5-pro"):
        assert fitted(model, "effort", temperature=0.2, reasoning=off).temperature is None


@pytest.mark.parametrize(
    ("model", "budget", "adaptive", "off", "effort"),
    [
        ("claude-opus-5-5", "adaptive", "adaptive", None, "max"),
        ("claude-sonnet-5-5", "adaptive", "adaptive", "between_tools", "max"),
        ("claude-haiku-5-5", "adaptive", "adaptive", "off", "max"),
        ("claude-opus-4-8", "adaptive", "adaptive", "off", "max"),
        ("claude-opus-4-6", "on", "adaptive", "off", "max"),
        ("claude-opus-4-5", "on", None, "off", "high"),
        ("claude-sonnet-4-5", "on", None, "off", None),
        ("claude-opus-4-1", "on", None, "off", None),
    ],
)
def test_thinking_options_of_each_claude_model(
    model: str, budget: str, adaptive: str | None, off: str | None, effort: str | None
) -> None:
    def mode(**asked: object) -> str | None:
        reasoning = fitted(model, "mode", reasoning=Reasoning(**asked)).reasoning
        return reasoning.mode if reasoning is not None else None

    assert (mode(mode="on", budget=4000), mode(mode="adaptive"), mode(mode="off")) == (budget, adaptive, off)
    asked = fitted(model, "mode", reasoning=Reasoning(effort="max")).reasoning
    assert (asked.effort if asked is not None else None) == effort
