"""Field names and words of Chat Completions that more than one module here needs."""

NAME = "openai-chat"

OPENAI = frozenset({"openai-chat", "openai-responses"})
"""The dialects of this vendor: a file id of one is valid in the other."""

DETAILS = frozenset({"low", "high", "auto", "original"})
"""The levels of detail at which a model of this vendor can be asked to look at an image."""

THINKING_TEXT = ("reasoning_content", "reasoning", "reasoning_text", "cot_summary", "thinking")
"""Fields in which providers of this dialect put the text of their reasoning, the usual one first."""

SIGNATURE, SIGNATURE_ID = "reasoning_opaque", "cot_id"
"""Fields in which they put an encrypted form of the reasoning, and its id."""

REDACTED = "redacted"
"""Used instead of an id in a wrapped signature: the block has no text and consists only of its signature."""

THINKING = frozenset((*THINKING_TEXT, SIGNATURE, SIGNATURE_ID))

THINKING_PART, TEXT_PART, REFUSAL_PART, AUDIO_PART, FIRST_CALL = 0, 1, 2, 3, 4
"""The numbers of an answer's parts. A chat message has at most one of each except calls, so the number is the place."""

GEMINI = "gemini"
"""Google's own server of this dialect puts its signature beside a call, in extra_content.google.thought_signature."""
