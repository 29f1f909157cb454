"""Token probabilities in both directions."""

from sightline.dialects.fields import any_number, as_object, opt_list, rest, str_of, wrong
from sightline.dialects.gemini.field_names import both, either, spelling_of
from sightline.model.json import Json, JsonObject
from sightline.model.reply import TokenLogprob
from sightline.wire.pointer import join

Unknown = list[tuple[str, Json]]
"""Fields that are not modelled, each with its place."""

_RESULT = both("chosenCandidates", "topCandidates")
_TOKEN = both("token", "logProbability")


def read_logprobs(result: JsonObject, at: str) -> tuple[tuple[TokenLogprob, ...], Unknown]:
    """The tokens that were chosen, each with what else could have stood there, and the fields that say more."""
    unknown: Unknown = [(join(at, key), value) for key, value in rest(result, _RESULT).items()]
    chosen_key, top_key = spelling_of(result, "chosenCandidates"), spelling_of(result, "topCandidates")
    tops = opt_list(result, top_key, at)
    tokens: list[TokenLogprob] = []
    for index, value in enumerate(opt_list(result, chosen_key, at)):
        top: list[TokenLogprob] = []
        if index < len(tops):
            place = f"{at}/{top_key}/{index}"
            others = opt_list(as_object(tops[index], place), "candidates", place)
            top = [_token(other, f"{place}/candidates/{rank}", (), unknown) for rank, other in enumerate(others)]
        tokens.append(_token(value, f"{at}/{chosen_key}/{index}", tuple(top), unknown))
    return tuple(tokens), unknown


def write_logprobs(tokens: tuple[TokenLogprob, ...]) -> JsonObject:
    """The `logprobsResult` of these tokens."""
    result: JsonObject = {"chosenCandidates": [_entry(token) for token in tokens]}
    if any(token.top for token in tokens):
        result["topCandidates"] = [{"candidates": [_entry(other) for other in token.top]} for token in tokens]
    return result


def _token(value: Json, at: str, top: tuple[TokenLogprob, ...], unknown: Unknown) -> TokenLogprob:
    entry = as_object(value, at)
    logprob = any_number(either(entry, "logProbability"))
    if logprob is None:
        raise wrong(either(entry, "logProbability"), f"{at}/{spelling_of(entry, 'logProbability')}", "a number")
    unknown.extend((join(at, key), field) for key, field in rest(entry, _TOKEN).items())
    return TokenLogprob(str_of(entry, "token", at), float(logprob), top=top)


def _entry(token: TokenLogprob) -> JsonObject:
    return {"token": token.token, "logProbability": token.logprob}
