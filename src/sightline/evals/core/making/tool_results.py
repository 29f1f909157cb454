"""Results of tools right behind their calls, as every provider wants them; some clients speak in between."""

from collections.abc import Callable, Sequence

from sightline.model.json import Json, JsonObject


def behind_calls(messages: Sequence[JsonObject], leave: Callable[[str, str], None]) -> list[JsonObject]:
    """Written messages that can be sent: each call with its one result behind it. What is moved or left out is told."""
    results: dict[str, int] = {}
    for place, message in enumerate(messages):
        name = _call_id_of(message)
        if name and results.setdefault(name, place) != place:
            leave("a second result of a call", "a call has one")
    made: list[JsonObject] = []
    placed: set[str] = set()
    for place, message in enumerate(messages):
        calls = _calls(message)
        answered = [call for call in calls if results.get(str(call["id"]), -1) > place]
        if not calls:
            if _call_id_of(message) not in placed:
                made.append(message)
            continue
        for call in calls:
            if call not in answered:
                leave(f"a call of {call['name']}", "it has no result, and no provider takes one without")
        rest = {key: value for key, value in message.items() if key != "tool_calls"}
        if answered:
            made.append({**message, "tool_calls": list[Json](answered)})
        elif "content" in rest:
            made.append(rest)
        places = sorted(results[str(call["id"])] for call in answered)
        if places and places[-1] > place + len(places):
            leave("the place of a result", "it stands right behind its call, as providers want it")
        made += [messages[each] for each in places]
        placed |= {_call_id_of(messages[each]) for each in places}
    return made


def _call_id_of(message: JsonObject) -> str:
    found = message.get("tool_call_id")
    return found if isinstance(found, str) else ""


def _calls(message: JsonObject) -> list[JsonObject]:
    found = message.get("tool_calls")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
