"""Tests of a program that uses a model, without a model: run them as `pytest examples/test_my_program.py`.

In a project of your own, `pytest_plugins` belongs into the conftest.py of the tests' root folder.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

import sightline
from sightline.errors import Code
from sightline.testing import ServedProvider

pytest_plugins = ["sightline.testing.plugin"]

Open = Callable[..., ServedProvider]


def summarize(base_url: str, text: str) -> str:
    """The program under test: it asks a model, and has an answer of its own if that is busy."""
    question = {"model": "m", "messages": [{"role": "user", "content": f"Summarize: {text}"}]}
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{base_url}/chat/completions", json.dumps(question).encode(), headers)
    try:
        with urllib.request.urlopen(request) as response:
            return str(json.load(response)["choices"][0]["message"]["content"])
    except urllib.error.HTTPError as error:
        with error:
            return "Ask again later."


def test_the_summary_is_what_the_model_says(scripted_provider: Open) -> None:
    """A scripted provider gives these replies, one for each request."""
    provider = scripted_provider("A short text.")
    assert summarize(f"{provider.url}/v1", "long") == "A short text."
    (asked,) = provider.requests
    assert asked == {"model": "m", "messages": [{"role": "user", "content": "Summarize: long"}]}


def test_a_busy_model_is_no_reason_to_crash(scripted_provider: Open) -> None:
    """A Fault in place of a reply is an error of the provider."""
    provider = scripted_provider(sightline.Fault(Code.RATE_LIMITED, "too many requests", status=429))
    assert summarize(f"{provider.url}/v1", "long") == "Ask again later."


def test_the_summary_of_a_real_model(recorded_provider: Open) -> None:
    """A recorded provider gives the answers in an archive of `sightline export`, and fails the test for any other."""
    archive = Path(__file__).with_name("recorded.jsonl")
    if not archive.exists():
        pytest.skip("record one: sightline run -- python my_program.py && sightline export '' -o recorded.jsonl")
    assert summarize(f"{recorded_provider(archive).url}/v1", "long")
