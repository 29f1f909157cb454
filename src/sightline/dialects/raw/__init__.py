"""The raw schema: messages with numbers for roles and part kinds, as a prompt editor holds and exports them.

Its requests are messages with options beside them in the form of Chat Completions, its replies one more message, its
streams the deltas that such an editor's callback gets. No provider uses it, so anything that the schema has no field
for is carried in it and not lost. Imports the shared modules of `dialects`, and those of `openai_chat` for the options
and counts that both have in common.
"""

from sightline.catalog.compose import DialectSupport
from sightline.dialects.dialect import Dialect, Editing, LeafPaths, Unread
from sightline.dialects.raw.names import NAME, read_error, write_error
from sightline.dialects.raw.reply_read import RawMachine, read_reply
from sightline.dialects.raw.reply_write import RawStreamWriter, write_reply
from sightline.dialects.raw.request import problems, read_request, write_request
from sightline.dialects.streaming import StreamReader
from sightline.dialects.tool_names import ANY_NAME

DIALECT = Dialect(
    name=NAME,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    stream_reader=lambda: StreamReader(RawMachine()),
    stream_writer=RawStreamWriter,
    read_error=read_error,
    write_error=write_error,
    problems=problems,
    owns_frame=lambda frame: "delta" in frame and "type" not in frame,
    begins_with_count=False,
    carries_parts=True,
    keeps_kinds=True,
    names=ANY_NAME,
    endpoint=None,
    # No provider speaks it, so none of our own requests is written in it.
    support=DialectSupport(),
    editing=Editing(
        container="messages",
        parts_key="content",
        roles={"system": 0, "user": 1, "assistant": 2},
        text_part=lambda _role, text: {"type": 1, "text": text},
        leaves=LeafPaths(
            arguments=(("arguments",), ("function", "arguments"), ("custom", "input"), ("input",)),
            actions=(("action",), ("operation",), ("actions",), ("arguments",)),
            outputs=(("output",), ("tools",)),
            thinking=(("thinking",), ("text",), ("value", "thinking", "text")),
        ),
        reads_items_alone=False,
    ),
    unread=Unread(
        bookkeeping=frozenset(
            {"tokenUsage", "scope", "tokens", "metadata", "mediaType", "statefulMarker", "phase", "copilotReferences"}
        ),
        containers=frozenset(
            {
                *("allowed_tools", "custom", "file", "format", "function", "grammar", "imageUrl", "image_url"),
                *("input_audio", "requestOptions", "response_format", "stream_options", "value"),
            }
        ),
    ),
)
