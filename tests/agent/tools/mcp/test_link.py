import anyio
from mcp.shared.message import SessionMessage

from sightline.agent.tools.mcp.pipes import McpLink


def test_a_way_that_knows_nothing_says_nothing() -> None:
    into, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, out = anyio.create_memory_object_stream[SessionMessage](0)
    link = McpLink(read, write, lambda: None)
    assert (link.why(), link.words(), link.ended.is_set()) == (None, "", False)
    for stream in (into, read, write, out):
        stream.close()
