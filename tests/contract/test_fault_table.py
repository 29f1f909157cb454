"""The table of providers' errors: one file for each row, with what the provider said and what it must be taken for.

`seen` names where such an error was met: `owner/name#number` is a public thread, `guide` a provider's documentation,
`run` a program that was run, `made` a failure of the connection that any provider can have, `untraced` an error whose
words are known but whose source is not. Ids, keys and names of organisations are replaced; figures and words are kept.
"""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sightline.dialects.registry import dialect
from sightline.errors import LABELS, UNSTATED, Code, Fault, Numbers
from sightline.model.fold import fold
from sightline.model.reply import Reply
from tests.contract.test_law_4_stream_is_whole import read_stream

ROOT = Path(__file__).parents[1] / "fault_cases"
NAMED = {
    "openai": 20,
    "azure": 10,
    "anthropic": 16,
    "gemini": 19,
    "openrouter": 14,
    "mistral": 11,
    "groq": 13,
    "deepseek": 11,
    "llama_cpp": 14,
    "vllm": 12,
    "ollama": 13,
}
OTHERS = {"cerebras": 1, "cloudflare": 2, "fireworks": 1, "lm_studio": 1, "together": 2, "xai": 3}
CLASSES = {
    Code.CONTEXT_OVERFLOW,
    Code.REQUEST_TOO_LARGE,
    Code.REQUEST_TOO_LARGE_FOR_RATE,
    Code.RATE_LIMITED,
    Code.QUOTA,
    Code.AUTH,
    Code.PERMISSION,
    Code.MODEL_UNKNOWN,
    Code.OVERLOADED,
    Code.CONTENT_FILTERED,
    Code.INVALID_REQUEST,
    Code.UPSTREAM_ERROR,
    Code.UPSTREAM_PROTOCOL,
}
TARGETS = ("openai-chat", "openai-responses", "anthropic", "gemini")
UNSAID = {(Code.UPSTREAM_PROTOCOL, "anthropic"), (Code.UPSTREAM_PROTOCOL, "gemini")}
"""These APIs have no word for it: an answer that is none becomes a failure of the provider."""

FIELDS_ONLY = {"llama_cpp/overflow_older"}
"""Its words do not state the figures, so that they end with its error object."""


@dataclass(frozen=True)
class Row:
    """One row: where it is from and what the file says."""

    name: str
    case: dict[str, Any]

    def __str__(self) -> str:
        return self.name

    @property
    def expected(self) -> dict[str, Any]:
        """What it must be taken for."""
        return self.case["expect"]

    def fault(self) -> Fault:
        """What it is taken for."""
        spoken = dialect(self.case["dialect"])
        if "stream" in self.case:
            return ending(fold(read_stream(self.case["dialect"], [self.case["stream"].encode()])))
        if self.case["status"] < 400:
            return ending(fold(spoken.read_reply(self.case["body"])))
        return spoken.read_error(self.case["status"], self.case["body"], self.case.get("headers", {}))


def ending(reply: Reply) -> Fault:
    """The fault of a reply; a prompt that was blocked is an answer that the filter gave."""
    if reply.fault is not None:
        return reply.fault
    assert reply.choice.finish == "content_filter"
    return Fault(Code.CONTENT_FILTERED, str(reply.choice.detail))


ROWS = [
    Row(f"{path.parent.name}/{path.stem}", msgspec.json.decode(path.read_bytes()))
    for path in sorted(ROOT.glob("*/*.json"))
]


def test_no_row_was_lost() -> None:
    rows = Counter(row.name.partition("/")[0] for row in ROWS)
    assert rows == {**NAMED, **OTHERS}
    assert min(NAMED.values()) >= 6


def test_the_rows_show_every_class() -> None:
    assert {Code(row.expected["code"]) for row in ROWS} == CLASSES


def test_every_row_says_where_it_was_seen_and_holds_no_secret() -> None:
    for row in ROWS:
        assert re.match(r"[\w.-]+/[\w.-]+#\d+$|(?:guide|run|made|untraced): \w", row.case["seen"]), row
        text = msgspec.json.encode(row.case).decode()
        assert not any(secret in text for secret in ("sk-proj", "AIza", "gsk_", "req_0", "org-0")), row


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_providers_error_is_classified_its_words_are_kept_and_a_person_knows_what_to_do(row: Row) -> None:
    fault = row.fault()
    assert (fault.code.value, fault.label) == (row.expected["code"], row.expected["label"])
    assert fault.numbers == (Numbers(**row.expected["numbers"]) if "numbers" in row.expected else UNSTATED)
    assert fault.retry_after == row.expected.get("retry_after")
    assert row.expected["says"] in fault.message
    assert fault.message
    assert fault.hint or "stream" in row.case


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_it_is_the_same_error_in_every_other_api(row: Row) -> None:
    fault = row.fault()
    for target in TARGETS:
        status, body = dialect(target).write_error(fault)
        again = dialect(target).read_error(status, body, {})
        assert (again.code is fault.code) == ((fault.code, target) not in UNSAID), target
        assert fault.message in again.message, target
        if fault.code is Code.CONTEXT_OVERFLOW and row.name not in FIELDS_ONLY:
            assert again.numbers == fault.numbers, target


def test_a_hint_tells_a_wrong_address_from_an_unknown_model() -> None:
    rows = {row.name: row for row in ROWS}
    for name in ("openai/wrong_address", "azure/wrong_path", "vllm/wrong_address", "gemini/wrong_path_empty"):
        assert "base_url" in rows[name].fault().hint
    for name in ("openai/model_unknown", "azure/deployment_not_found", "ollama/model_unknown"):
        assert "model's name" in rows[name].fault().hint
    assert "web page" in rows["groq/blocked_page"].fault().hint
    assert "web page" in rows["anthropic/wrong_host_page"].fault().hint


def test_the_coarse_label_follows_from_the_code() -> None:
    assert all(row.expected["label"] == LABELS.get(Code(row.expected["code"]), "unknown") for row in ROWS)
