"""Field names in both spellings: the API takes `functionCall` and `function_call` alike, even mixed in one object.

We write camelCase. Every name that is read is looked up here, so that a pointer always contains the key that is really
in the document. A null in `extras` is silent: it records that a field which we would write was absent.
"""

import re
from collections.abc import Mapping, Sequence

from sightline.dialects.fields import opt_str, unknown
from sightline.model.json import Json, JsonObject

NAME = "gemini"

_TWO_WORDS = (
    *("allowedFunctionNames", "avgLogprobs", "blockReason", "cachedContent", "cachedContentTokenCount"),
    *("candidateCount", "candidatesTokenCount", "candidatesTokensDetails", "chosenCandidates", "citationMetadata"),
    *("computerUse", "createTime", "endIndex", "excludedPredefinedFunctions", "fileData", "fileUri", "finishMessage"),
    *("finishReason", "frequencyPenalty", "functionCall", "functionCallingConfig", "functionDeclarations"),
    *("functionResponse", "generationConfig", "groundingChunkIndices", "groundingChunks", "groundingMetadata"),
    *("groundingSupports", "includeThoughts", "inlineData", "logProbability", "logprobsResult", "maxOutputTokens"),
    *("mimeType", "modelVersion", "parametersJsonSchema", "partIndex", "presencePenalty", "promptFeedback"),
    *("promptTokenCount", "promptTokensDetails", "responseId", "responseJsonSchema", "responseLogprobs"),
    *("responseMimeType", "responseSchema", "retrievedContext", "safetySettings", "serviceTier", "startIndex"),
    *("stopSequences", "systemInstruction", "thinkingBudget", "thinkingConfig", "thinkingLevel", "thoughtSignature"),
    *("thoughtsTokenCount", "tokenCount", "toolConfig", "toolUsePromptTokenCount", "topCandidates", "topK", "topP"),
    *("totalTokenCount", "usageMetadata", "webSearchQueries"),
)
SNAKE: Mapping[str, str] = {name: re.sub("([A-Z])", lambda hump: "_" + hump[1].lower(), name) for name in _TWO_WORDS}
_CAMEL: Mapping[str, str] = {snake: name for name, snake in SNAKE.items()}
_CONTAINERS = frozenset(
    {
        *("computerUse", "fileData", "functionCall", "functionCallingConfig", "functionResponse", "generationConfig"),
        *("inlineData", "thinkingConfig", "toolConfig"),
    }
)
"""Objects whose members are modelled one by one, so that extras hold only the others."""


def either(holder: JsonObject, name: str) -> Json:
    """The value under this name, in the spelling that the object uses."""
    value = holder.get(name)
    return holder.get(SNAKE[name]) if value is None else value


def spelling_of(holder: JsonObject, name: str) -> str:
    """The name in the spelling that the object uses."""
    if holder.get(name) is None and holder.get(SNAKE[name]) is not None:
        return SNAKE[name]
    return name


def read_enum(holder: JsonObject, key: str, words: Sequence[str], at: str) -> str | None:
    """The word under this key; protocol buffers' JSON also takes its number."""
    value = holder.get(key)
    if type(value) is not int:
        return opt_str(holder, key, at)
    if not 0 <= value < len(words):
        raise unknown(str(value), f"{at}/{key}", key, words)
    return words[value]


def both(*names: str) -> frozenset[str]:
    """These names in both spellings. Some clients mix them: litellm 1.106 has `function_call` beside `thoughtSignature`
    in one part."""
    return frozenset(names) | {SNAKE[name] for name in names if name in SNAKE}


def restore_extras(document: JsonObject, extras: JsonObject) -> JsonObject:
    """Put unmodelled fields back in their places; a null removes a field that the document did not have."""
    for key, value in extras.items():
        name = _CAMEL.get(key, key)
        if value is None:
            document.pop(name, None)
        elif name in _CONTAINERS and type(value) is dict:
            present = document.get(name)
            document[name] = restore_extras(present if type(present) is dict else {}, value)
        else:
            document[name] = value
    return document
