"""Words of the Responses wire that more than one file here needs."""

from sightline.model.json import Json

NAME = "openai-responses"

LOGPROBS = "message.output_text.logprobs"
"""The word of `include` that asks for logprobs."""

CALLS = {"function_call": ("function", "arguments"), "custom_tool_call": ("custom", "input")}
"""The items that are calls for the client: the kind of tool, and the field that holds what the model wrote."""

OUTPUTS = {"function_call_output": "function", "custom_tool_call_output": "custom"}
"""The items that answer them."""

_CONTENT = frozenset({"refusal", "text", "reasoning_text", "summary_text", "computer_screenshot", "encrypted_content"})
_CONTENT_HEADS = ("input_", "output_")


def is_item_type(kind: Json) -> bool:
    """Whether values of this type are items of their own: whatever is not a part of a message's content is one."""
    return isinstance(kind, str) and kind not in _CONTENT and not kind.startswith(_CONTENT_HEADS)


STRIDE = 1000
"""A part of an answer is numbered `output_index * STRIDE + content_index`, so that numbers order as the output does."""

REDACTED = "redacted"
"""In a wrapped signature, in place of an id: the block that it stands for has no text that may be read."""

UNSIGNED = ""
"""In a wrapped signature, in place of its maker: reasoning that is not signed, and that no provider can look up."""

BOOKKEEPING = frozenset(
    {
        # identity and state of items and replies
        *(
            "id",
            "object",
            "type",
            "role",
            "status",
            "phase",
            "created_at",
            "completed_at",
            "sequence_number",
            "obfuscation",
        ),
        *("client_metadata", "internal_chat_message_metadata_passthrough", "stream_options", "include_obfuscation"),
        *("billing", "tool_usage", "end_turn", "caller", "created_by", "execution", "logprobs", "generate"),
        *("max_output_length",),  # of a shell, repeated beside its output
        # the cache, which changes what an answer costs and not what it says
        *("prompt_cache_breakpoint", "prompt_cache_options", "prompt_cache_diagnostics", "prompt_cache_key"),
        *("prompt_cache_retention",),
    }
)
"""Fields of this wire whose loss changes nothing that a reader sees."""

ECHOES = frozenset(
    {
        *("instructions", "metadata", "tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p", "user"),
        *("max_output_tokens", "top_logprobs", "reasoning", "store", "include", "truncation", "background"),
        *("previous_response_id", "service_tier", "safety_identifier", "presence_penalty", "frequency_penalty"),
        *("max_tool_calls", "prompt", "conversation"),
        *("format", "verbosity"),  # the members of `text`
    }
)
"""Fields with which a reply repeats its request."""
