"""An agent's turn over HTTP: words and two edits in one stream, both run, and their results in the next prompt."""

from pathlib import Path

import msgspec
import pytest

from sightline.agent.core.output import ToolOutcome, text_outcome
from sightline.agent.core.steps import RunnableCall
from sightline.dialects.registry import dialect
from sightline.model.parts import ToolCall, ToolResult
from sightline.wire.jsontext import decode
from tests.contract.test_loop_trace import ANSWERS, FIRST, IDS, PROVIDERS, SECOND, STREAMS, WORDS, asked_by, texts
from tests.loop_stage import EDIT, plan, says
from tests.running_stage import FakeTools, RunStage, play, plays
from tests.upstream import LAST, Upstream, chunk, head, pieces

SSE = [("Content-Type", "text/event-stream")]


@pytest.mark.parametrize("size", [1, 37, 1 << 20])
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("client", PROVIDERS)
def test_two_edits_run_and_their_results_are_in_the_next_prompt(
    tmp_path: Path, client: str, provider: str, size: int
) -> None:
    if size == 1 and client != provider:
        pytest.skip("how bytes are cut has nothing to do with who asked")

    async def story(stage: RunStage, upstream: Upstream) -> None:
        data = STREAMS[provider]()
        cut = [chunk(data[at : at + size]) for at in range(0, len(data), size)]
        upstream.script = [pieces(head(200, SSE), *cut, LAST), plays(says("Both are made."), provider)]

        async def edit(call: RunnableCall) -> ToolOutcome:
            return text_outcome(dict(zip(("1.1", "1.2"), ANSWERS, strict=True))[call.key])

        tools = FakeTools(edit, (EDIT,))
        asked = asked_by(client)
        asked = msgspec.structs.replace(asked, options=msgspec.structs.replace(asked.options, stream=True))
        ended = await stage.run(plan(provider), prompt=asked, tools=tools)
        assert (ended.why, ended.rounds[0].text) == ("answered", "".join(WORDS))
        assert [(call.id, call.arguments) for call in tools.used] == [(IDS[0], FIRST), (IDS[1], SECOND)]
        body = decode(upstream.seen[1].body)
        found = texts(body)
        assert found.index(ANSWERS[0]) < found.index(ANSWERS[1])
        parts = [part for message in dialect(provider).read_request(body).messages for part in message.parts]
        assert [part.id for part in parts if isinstance(part, ToolCall)] == list(IDS)
        assert [part.id for part in parts if isinstance(part, ToolResult)] == list(IDS)
        assert ended.rounds[1].text == "Both are made."

    play(story, tmp_path, provider)
