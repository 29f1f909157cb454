"""OpenAI's Responses API, and the servers that speak it.

Knows every field of its requests, replies, streams and errors; a request is a flat list of items, a stream tells every
item twice, in deltas and as a snapshot. Imports the shared pieces of `dialects`, `wire` and `model`, and from its
sister `openai_chat` what the two APIs have in common: the shape of errors, of logprobs, and the words for effort.
"""

from sightline.dialects.dialect import Counting, Dialect, Endpoint, Unread
from sightline.dialects.openai_responses.errors import read_error, write_error
from sightline.dialects.openai_responses.names import BOOKKEEPING, ECHOES, NAME
from sightline.dialects.openai_responses.reply_read import read_reply
from sightline.dialects.openai_responses.reply_write import write_reply
from sightline.dialects.openai_responses.request_read import read_request
from sightline.dialects.openai_responses.request_write import write_request
from sightline.dialects.openai_responses.rules import NAMES, problems, vendor_problems
from sightline.dialects.openai_responses.stream_read import ResponsesMachine
from sightline.dialects.openai_responses.stream_write import ResponsesStreamWriter
from sightline.dialects.streaming import StreamReader

DIALECT = Dialect(
    name=NAME,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    stream_reader=lambda: StreamReader(ResponsesMachine()),
    stream_writer=ResponsesStreamWriter,
    read_error=read_error,
    write_error=write_error,
    problems=problems,
    keeps_kinds=True,
    vendor_problems=vendor_problems,
    endpoint=Endpoint(
        "/responses",
        counting=Counting(
            "/responses/input_tokens",
            frozenset(
                {
                    "conversation",
                    "input",
                    "instructions",
                    "model",
                    "parallel_tool_calls",
                    "previous_response_id",
                    "reasoning",
                    "text",
                    "tool_choice",
                    "tools",
                    "truncation",
                }
            ),
        ),
    ),
    names=NAMES,
    unread=Unread(
        bookkeeping=BOOKKEEPING,
        echoes=ECHOES,
        containers=frozenset(
            {"allowed_tools", "custom", "environment", "format", "function", "reasoning", "stream_options", "text"}
        ),
        stateful=frozenset({"conversation"}),
    ),
)
