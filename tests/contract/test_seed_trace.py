"""An agent's turn with everything real but the model: provider bytes, `sightline ask`, a tool file, the next prompt.

Words and two edits of files come in one stream. In each dialect the run is the provider's own; across pairs it speaks
one dialect and a gateway's route carries it to a provider of another, or a run that was begun on one provider is gone
on with on another.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import sightline
from sightline.cli.program import main
from sightline.dialects.registry import dialect
from sightline.model.parts import Text, ToolCall, ToolResult
from sightline.model.request import Message
from sightline.wire.jsontext import decode
from tests.background import upstream_in_background
from tests.contract.test_loop_trace import ANSWERS, FIRST, IDS, PROVIDERS, QUESTION, SECOND, STREAMS, WORDS, texts
from tests.gateway_server import served
from tests.loop_stage import says
from tests.running_stage import plays
from tests.upstream import Upstream, streams

TOOLS = f'''
import json
from pathlib import Path

def edit_file(filePath: str, code: str = "") -> str:
    """Edit a file in repo."""
    with Path("edits").open("a") as file:
        file.write(json.dumps({{"filePath": filePath, "code": code}}) + "\\n")
    return {{"/path/test.js": {ANSWERS[0]!r}, "/path/server.js": {ANSWERS[1]!r}}}[filePath]
'''
DONE = "Both are made."
PAIRS = list(zip(PROVIDERS, (*PROVIDERS[1:], PROVIDERS[0]), strict=True))
"""Each dialect once on either side; test_loop_trace.py has every pair."""


def base(url: str, spoken: str) -> str:
    return f"{url}/v1" if spoken.startswith("openai") else url


def provider(name: str, spoken: str, url: str) -> str:
    return f'[providers.{name}]\ndialect = "{spoken}"\nbase_url = "{base(url, spoken)}"\n'


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SIGHTLINE_DATA", str(tmp_path / "data"))
    (tmp_path / "kit.py").write_text(TOOLS)
    with upstream_in_background() as made:
        yield made


def script(spoken: str) -> list[object]:
    """The trace's reply, an event at a time, and then a last word."""
    frames = [frame + b"\n\n" for frame in STREAMS[spoken]().split(b"\n\n") if frame]
    return [streams(*frames), plays(says(DONE), spoken)]


def asked(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`sightline ask` with the tool file: the answer on stdout, and both edits made in their order."""
    code = main(["ask", "-m", model, "--tools", "kit.py", "--yes", QUESTION])
    out, err = capsys.readouterr()
    assert (code, out) == (0, DONE), err
    assert "".join(WORDS).splitlines()[0] in err
    assert [json.loads(line) for line in Path("edits").read_text().splitlines()] == [FIRST, SECOND]


def results_in(spoken: str, body: bytes) -> list[ToolResult]:
    """The results of both edits as the provider reads them, each behind its own call."""
    value = decode(body)
    found = texts(value)
    assert found.index(ANSWERS[0]) < found.index(ANSWERS[1])
    request = dialect(spoken).read_request(value)
    assert not [each for each in dialect(spoken).problems(request) if each.severity == "error"]
    parts = [part for message in request.messages for part in message.parts]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    results = [part for part in parts if isinstance(part, ToolResult)]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [("edit_file", FIRST), ("edit_file", SECOND)]
    assert [result.id for result in results] == [call.id for call in calls]
    return results


@pytest.mark.parametrize("spoken", PROVIDERS)
def test_both_results_are_in_the_next_prompt(
    spoken: str, upstream: Upstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sightline.toml").write_text(provider("acme", spoken, upstream.url))
    upstream.script = script(spoken)
    asked("acme/m", capsys)
    assert [result.id for result in results_in(spoken, upstream.seen[1].body)] == list(IDS)


@pytest.mark.parametrize(("loop", "spoken"), PAIRS)
def test_both_results_are_in_the_next_prompt_behind_a_route_to_another_dialect(
    loop: str, spoken: str, upstream: Upstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = tmp_path / "gateway"
    gateway.mkdir()
    routed = provider("behind", spoken, upstream.url) + '[[routes]]\nmodel = "m"\nprovider = "behind"\n'
    upstream.script = script(spoken)
    with served(gateway, routed) as server:
        (tmp_path / "sightline.toml").write_text(provider("front", loop, server.url))
        asked("front/m", capsys)
    assert len(upstream.seen) == 2
    results_in(spoken, upstream.seen[1].body)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_run_started_on_one_provider_continues_on_another(
    first: str, second: str, upstream: Upstream, tmp_path: Path
) -> None:
    config = provider("one", first, upstream.url) + provider("two", second, upstream.url)
    (tmp_path / "sightline.toml").write_text(config)
    upstream.script = [*script(first), plays(says("Nothing else."), second)]
    begun = sightline.run(QUESTION, tools=["kit.py"], model="one/m", approve="yes")
    assert (begun.text, len(begun.rounds)) == (DONE, 2)
    more = Message("user", (Text("Is there anything else?"),))
    request = msgspec.structs.replace(begun.request, messages=(*begun.request.messages, more))
    gone_on = sightline.run(request, tools=["kit.py"], model="two/m", approve="yes")
    assert gone_on.text == "Nothing else."
    results_in(second, upstream.seen[2].body)
    assert "Is there anything else?" in texts(decode(upstream.seen[2].body))
