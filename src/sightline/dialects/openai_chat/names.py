"""Words of the Chat Completions wire that more than one file here needs."""

NAME = "openai-chat"

OPENAI = frozenset({"openai-chat", "openai-responses"})
"""Dialects of one vendor: a file id of one is valid in the other."""

DETAILS = frozenset({"low", "high", "auto", "original"})
"""How closely a model of this vendor can be asked to look at a picture."""

THINKING_TEXT = ("reasoning_content", "reasoning", "reasoning_text", "cot_summary", "thinking")
"""Fields in which providers of this dialect put the words of their reasoning, the usual one first."""

SIGNATURE, SIGNATURE_ID = "reasoning_opaque", "cot_id"
"""Fields in which they put what stands for the reasoning: an encrypted form, and its id."""

REDACTED = "redacted"
"""In a wrapped signature in place of an id: the block has no words, its signature is all of it."""

THINKING = frozenset((*THINKING_TEXT, SIGNATURE, SIGNATURE_ID))

THINKING_PART, TEXT_PART, REFUSAL_PART, AUDIO_PART, FIRST_CALL = 0, 1, 2, 3, 4
"""The numbers of an answer's parts. A chat message has one of each but calls, so a number is a place."""

GEMINI = "gemini"
"""Google's own server of this dialect puts its signature beside a call, in extra_content.google.thought_signature."""
