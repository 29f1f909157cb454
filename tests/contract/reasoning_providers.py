"""Providers that reason, and refuse a turn whose reasoning has not come back as they gave it.

Each speaks its own API by hand. A session is twenty turns: in every fifth the model answers in words, in the others it
calls a tool. Nothing is kept from one request to the next: what must be there follows from the conversation itself.
"""

import hashlib
import json
from typing import Any

TURNS = 20
SUMMARY = "I look at file {n}.\n\nThen I decide."


def is_words(turn: int) -> bool:
    """Whether the model answers this turn in words and not with a call."""
    return turn % 5 == 0


def thought(turn: int) -> str:
    """What it thinks."""
    return SUMMARY.format(n=turn)


def seal(turn: int, text: str = "") -> str:
    """Its signature over that; base64, as Google's has to be."""
    return hashlib.sha256(f"{turn}:{text or thought(turn)}".encode()).hexdigest() * 2


class RefusedTurn(Exception):
    """What is wrong with the reasoning of a request."""


def frames(*events: dict[str, Any], named: bool = True) -> bytes:
    """Server-sent events."""
    return b"".join(
        (f"event: {event['type']}\n" if named else "").encode() + f"data: {json.dumps(event)}\n\n".encode()
        for event in events
    )


class ReasoningProvider:
    """`bodies` are the requests that came. With `only_calls` a turn in words needs no reasoning."""

    def __init__(self) -> None:
        self.url = ""
        self.only_calls = False
        self.bodies: list[Any] = []

    def answer_to(self, path: str, body: Any) -> tuple[int, str, bytes]:
        """The next turn, or an error of the dialect."""
        self.bodies.append(body)
        try:
            turn = self.check(body) + 1
        except RefusedTurn as refusal:
            return 400, "application/json", json.dumps(self.error(str(refusal))).encode()
        if body.get("stream") or ":stream" in path:
            return 200, "text/event-stream", self.stream(turn)
        return 200, "application/json", json.dumps(self.reply(turn)).encode()

    def check(self, body: Any) -> int:
        """How many turns the conversation has; raises where the reasoning of one is not as it was."""
        raise NotImplementedError

    def reply(self, turn: int) -> Any:
        """A whole reply."""
        raise NotImplementedError

    def stream(self, turn: int) -> bytes:
        """The same as a stream."""
        raise NotImplementedError

    def expect(self, turn: int, found: object, wanted: object) -> None:
        """Refuse the turn unless its reasoning is what it was."""
        if found != wanted and not (self.only_calls and is_words(turn)):
            raise RefusedTurn(f"the reasoning of turn {turn}: {found!r} instead of {wanted!r}")

    def error(self, message: str) -> Any:
        """The error of the dialect."""
        return {"error": {"message": message, "type": "invalid_request_error", "code": None, "param": None}}


class Anthropic(ReasoningProvider):
    """Thinking blocks with signatures; every third is redacted."""

    def check(self, body: Any) -> int:
        if body.get("thinking", {}).get("type") not in ("adaptive", "enabled"):
            raise RefusedTurn(f"nothing asks for thinking: {body.get('thinking')}")
        turns = [message for message in body["messages"] if message["role"] == "assistant"]
        for number, message in enumerate(turns, 1):
            self.expect(number, message["content"][0], self._thinking(number))
        return len(turns)

    @staticmethod
    def _thinking(turn: int) -> dict[str, Any]:
        if turn % 3 == 0:
            return {"type": "redacted_thinking", "data": seal(turn)}
        return {"type": "thinking", "thinking": thought(turn), "signature": seal(turn)}

    def reply(self, turn: int) -> Any:
        said = (
            {"type": "text", "text": f"Answer {turn}."}
            if is_words(turn)
            else {"type": "tool_use", "id": f"toolu_{turn}", "name": "look", "input": {"file": turn}}
        )
        return {
            "id": f"msg_{turn}",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [self._thinking(turn), said],
            "stop_reason": "end_turn" if is_words(turn) else "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }

    def stream(self, turn: int) -> bytes:
        whole = self.reply(turn)
        thinking, said = whole["content"]
        events: list[dict[str, Any]] = [{"type": "message_start", "message": {**whole, "content": []}}]
        if thinking["type"] == "thinking":
            start = {"type": "thinking", "thinking": "", "signature": ""}
            half = len(thinking["thinking"]) // 2
            deltas = [
                {"type": "thinking_delta", "thinking": thinking["thinking"][:half]},
                {"type": "thinking_delta", "thinking": thinking["thinking"][half:]},
                {"type": "signature_delta", "signature": thinking["signature"]},
            ]
        else:
            start, deltas = thinking, []
        events += self._block(0, start, deltas)
        if is_words(turn):
            events += self._block(1, {"type": "text", "text": ""}, [{"type": "text_delta", "text": said["text"]}])
        else:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(said["input"])}
            events += self._block(1, {**said, "input": {}}, [delta])
        delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        events += [{"type": "message_delta", "delta": delta, "usage": whole["usage"]}, {"type": "message_stop"}]
        return frames(*events)

    @staticmethod
    def _block(index: int, start: Any, deltas: list[Any]) -> list[dict[str, Any]]:
        return [
            {"type": "content_block_start", "index": index, "content_block": start},
            *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": index},
        ]

    def error(self, message: str) -> Any:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


class Responses(ReasoningProvider):
    """Reasoning items, encrypted, in two pieces of summary."""

    def check(self, body: Any) -> int:
        if "reasoning.encrypted_content" not in body.get("include", ()):
            raise RefusedTurn(f"nothing asks for the reasoning: {body.get('include')}")
        turns = 0
        items = body["input"]
        for index, item in enumerate(items):
            if item["type"] == "function_call" or (item["type"] == "message" and item["role"] == "assistant"):
                turns += 1
                before = items[index - 1]
                kept = {key: before.get(key) for key in ("type", "id", "encrypted_content")}
                wanted = {"type": "reasoning", "id": f"rs_{turns}", "encrypted_content": seal(turns)}
                self.expect(turns, kept, wanted)
        return turns

    @staticmethod
    def _reasoning(turn: int) -> dict[str, Any]:
        pieces = [{"type": "summary_text", "text": text} for text in thought(turn).split("\n\n")]
        return {"type": "reasoning", "id": f"rs_{turn}", "summary": pieces, "encrypted_content": seal(turn)}

    def reply(self, turn: int) -> Any:
        said: dict[str, Any] = {"id": f"fc_{turn}", "type": "function_call", "call_id": f"call_{turn}", "name": "look",
                                "arguments": json.dumps({"file": turn}), "status": "completed"}  # fmt: skip
        if is_words(turn):
            text = {"type": "output_text", "text": f"Answer {turn}.", "annotations": []}
            said = {"id": f"msg_{turn}", "type": "message", "role": "assistant", "status": "completed",
                    "content": [text]}  # fmt: skip
        return {
            "id": f"resp_{turn}",
            "object": "response",
            "created_at": 1,
            "model": "m",
            "status": "completed",
            "output": [self._reasoning(turn), said],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
                      "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 15},
        }  # fmt: skip

    def stream(self, turn: int) -> bytes:
        whole = self.reply(turn)
        reasoning, said = whole["output"]
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        hidden = {**reasoning, "summary": [], "encrypted_content": "not yet"}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": begun},
            {"type": "response.output_item.added", "output_index": 0, "item": hidden},
        ]
        for number, piece in enumerate(reasoning["summary"]):
            place = {"item_id": reasoning["id"], "output_index": 0, "summary_index": number}
            empty = {"type": "summary_text", "text": ""}
            events += [
                {"type": "response.reasoning_summary_part.added", **place, "part": empty},
                {"type": "response.reasoning_summary_text.delta", **place, "delta": piece["text"]},
                {"type": "response.reasoning_summary_text.done", **place, "text": piece["text"]},
                {"type": "response.reasoning_summary_part.done", **place, "part": piece},
            ]
        events.append({"type": "response.output_item.done", "output_index": 0, "item": reasoning})
        place = {"item_id": said["id"], "output_index": 1}
        if is_words(turn):
            empty = {**said, "content": [], "status": "in_progress"}
            part = said["content"][0]
            events += [
                {"type": "response.output_item.added", "output_index": 1, "item": empty},
                {"type": "response.content_part.added", **place, "content_index": 0, "part": {**part, "text": ""}},
                {"type": "response.output_text.delta", **place, "content_index": 0, "delta": part["text"]},
                {"type": "response.output_text.done", **place, "content_index": 0, "text": part["text"]},
                {"type": "response.content_part.done", **place, "content_index": 0, "part": part},
            ]
        else:
            empty = {**said, "arguments": "", "status": "in_progress"}
            events += [
                {"type": "response.output_item.added", "output_index": 1, "item": empty},
                {"type": "response.function_call_arguments.delta", **place, "delta": said["arguments"]},
                {"type": "response.function_call_arguments.done", **place, "arguments": said["arguments"]},
            ]
        events += [{"type": "response.output_item.done", "output_index": 1, "item": said},
                   {"type": "response.completed", "response": whole}]  # fmt: skip
        return frames(*({**event, "sequence_number": number} for number, event in enumerate(events)))


class Gemini(ReasoningProvider):
    """Thoughts, and a signature on every call."""

    def check(self, body: Any) -> int:
        if not body.get("generationConfig", {}).get("thinkingConfig"):
            raise RefusedTurn("nothing asks for thoughts")
        turns = [content for content in body["contents"] if content["role"] == "model"]
        for number, content in enumerate(turns, 1):
            call = next((part for part in content["parts"] if "functionCall" in part), None)
            self.expect(
                number,
                None if call is None else call.get("thoughtSignature"),
                None if is_words(number) else seal(number),
            )
        return len(turns)

    def reply(self, turn: int) -> Any:
        said: dict[str, Any] = {"text": f"Answer {turn}."}
        if not is_words(turn):
            call = {"name": "look", "args": {"file": turn}, "id": f"call_{turn}"}
            said = {"functionCall": call, "thoughtSignature": seal(turn)}
        content = {"role": "model", "parts": [{"text": thought(turn), "thought": True}, said]}
        return {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
            "modelVersion": "m",
            "responseId": f"r{turn}",
        }

    def stream(self, turn: int) -> bytes:
        whole = self.reply(turn)
        candidate = whole["candidates"][0]
        contents = [{"role": "model", "parts": [part]} for part in candidate["content"]["parts"]]
        pieces = [{"candidates": [{"content": content, "index": 0}], "responseId": f"r{turn}"} for content in contents]
        last = {**whole, "candidates": [{**candidate, "content": {"role": "model", "parts": [{"text": ""}]}}]}
        return frames(*pieces, last, named=False)

    def error(self, message: str) -> Any:
        return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}


class Chat(ReasoningProvider):
    """The opaque reasoning that some servers of Chat Completions give and want back."""

    def check(self, body: Any) -> int:
        turns = [message for message in body["messages"] if message["role"] == "assistant"]
        for number, message in enumerate(turns, 1):
            self.expect(number, message.get("reasoning_opaque"), seal(number))
        return len(turns)

    def _message(self, turn: int) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": f"Answer {turn}." if is_words(turn) else None,
                                   "reasoning_text": thought(turn), "reasoning_opaque": seal(turn)}  # fmt: skip
        if not is_words(turn):
            function = {"name": "look", "arguments": json.dumps({"file": turn})}
            message["tool_calls"] = [{"id": f"call_{turn}", "type": "function", "function": function}]
        return message

    def reply(self, turn: int) -> Any:
        finish = "stop" if is_words(turn) else "tool_calls"
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        choice = {"index": 0, "message": self._message(turn), "finish_reason": finish}
        return {"id": f"c{turn}", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice],
                "usage": usage}  # fmt: skip

    def stream(self, turn: int) -> bytes:
        message = self._message(turn)
        head = {"id": f"c{turn}", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        deltas: list[dict[str, Any]] = [{"role": "assistant", "reasoning_text": message["reasoning_text"]},
                                        {"reasoning_opaque": message["reasoning_opaque"]}]  # fmt: skip
        if is_words(turn):
            deltas.append({"content": message["content"]})
        else:
            deltas.append({"tool_calls": [{"index": 0, **message["tool_calls"][0]}]})
        chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        finish = "stop" if is_words(turn) else "tool_calls"
        last = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
        return frames(*chunks, last, named=False) + b"data: [DONE]\n\n"


PROVIDERS: dict[str, type[ReasoningProvider]] = {
    "anthropic": Anthropic,
    "openai-responses": Responses,
    "gemini": Gemini,
    "openai-chat": Chat,
}
