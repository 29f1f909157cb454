"""What a person has set about the chat from its page, over what the configuration says."""

import msgspec

from sightline.chat.core.sizing import ChatSettings
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject

MOST_FILTERS = 1000


class SavedFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filter by a name of its own."""

    name: str
    filter: str


class Preferences(msgspec.Struct, frozen=True):
    """`settings` are those that were set, by the names that the page has for them; the others are as configured."""

    settings: JsonObject = {}
    saved_filters: tuple[SavedFilter, ...] = ()


def apply_preferences(configured: ChatSettings, preferences: Preferences) -> ChatSettings:
    """The settings that hold. What cannot be is a fault that says where."""
    names = {field.name: field.encode_name for field in msgspec.structs.fields(ChatSettings)}
    plain = {names[name]: value for name, value in msgspec.structs.asdict(configured).items()}
    try:
        return msgspec.convert({**plain, **preferences.settings}, ChatSettings, strict=True)
    except msgspec.ValidationError as error:
        hint = f"The settings are {', '.join(names.values())}."
        raise Fault(Code.INVALID_REQUEST, f"the settings cannot be so: {error}", hint=hint, status=422) from None


def check_preferences(preferences: Preferences) -> Preferences:
    """The preferences, if each saved filter has a name of its own."""
    names = [each.name for each in preferences.saved_filters]
    if len(set(names)) != len(names) or not all(name.strip() for name in names) or len(names) > MOST_FILTERS:
        hint = f"Give each a name of its own; {MOST_FILTERS} are the most."
        raise Fault(Code.INVALID_REQUEST, "the saved filters need names of their own", hint=hint, status=422)
    return preferences
