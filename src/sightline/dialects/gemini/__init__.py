"""The dialect of the Gemini API: `generateContent` and `streamGenerateContent`, as Google's own clients speak it.

The model stands in the URL and not in the body; both spellings of every field are read and camelCase is written. The
package may import what dialects share, `wire`, `model` and `errors`; it never does I/O and never reads another dialect.
"""

from sightline.dialects.dialect import Counting, Dialect, Endpoint, Unread
from sightline.dialects.gemini.errors import read_error, write_error
from sightline.dialects.gemini.field_names import NAME
from sightline.dialects.gemini.reply_read import read_reply
from sightline.dialects.gemini.reply_write import write_reply
from sightline.dialects.gemini.request_read import read_request
from sightline.dialects.gemini.request_write import write_request
from sightline.dialects.gemini.rules import NAMES, problems
from sightline.dialects.gemini.stream_read import stream_reader
from sightline.dialects.gemini.stream_write import StreamWriter

DIALECT = Dialect(
    name=NAME,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    stream_reader=stream_reader,
    stream_writer=StreamWriter,
    read_error=read_error,
    write_error=write_error,
    problems=problems,
    reasoning="level",
    endpoint=Endpoint(
        "/models/{model}:generateContent",
        stream_path="/models/{model}:streamGenerateContent?alt=sse",
        version="/v1beta",
        credential=("x-goog-api-key", ""),
        counting=Counting("/models/{model}:countTokens", wrapper="generateContentRequest", result="totalTokens"),
    ),
    names=NAMES,
    model_in_path=True,
    ends_with_bytes=True,
    unread=Unread(
        bookkeeping=frozenset(
            {
                "avgLogprobs",
                "createTime",
                "details",
                "displayName",
                "display_name",
                "labels",
                "logProbabilitySum",
                "modelStatus",
                "partMetadata",
                "part_metadata",
                "role",
                "safetyRatings",
                "thought",
                "tokenCount",
                "tokenId",
            }
        ),
        containers=frozenset(
            {
                "fileData",
                "file_data",
                "functionCall",
                "functionCallingConfig",
                "functionResponse",
                "function_call",
                "function_calling_config",
                "function_response",
                "generationConfig",
                "generation_config",
                "inlineData",
                "inline_data",
                "thinkingConfig",
                "thinking_config",
                "toolConfig",
                "tool_config",
            }
        ),
    ),
)
