"""The calls about what a person sets in the page."""

import msgspec

from sightline.chat.api.bodies import PreferencesWanted
from sightline.chat.api.shapes import PreferencesShown, SavedFilterShown, SettingsShown
from sightline.chat.core.settings import ChatSettings
from sightline.chat.service.chat import Chat
from sightline.chat.service.preferences import Preferences
from sightline.errors import Code, Fault
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.model.json import JsonObject


class PreferenceCalls:
    """`configured` are the settings of the configuration; what a person leaves as it is there follows it later."""

    def __init__(self, chat: Chat, configured: ChatSettings) -> None:
        self._chat = chat
        self._configured = configured

    async def get(self) -> PreferencesShown:
        """What is in force."""
        await self._chat.load()
        saved = (SavedFilterShown(each.name, each.filter) for each in self._chat.preferences.saved_filters)
        return PreferencesShown(SettingsShown(**msgspec.structs.asdict(self._chat.settings)), tuple(saved))

    async def update(self, wanted: PreferencesWanted) -> PreferencesShown:
        """Set it."""
        await self._chat.load()
        before = self._chat.preferences
        saved = before.saved_filters if wanted.saved_filters is None else wanted.saved_filters
        for each in saved:
            _check(each.name, each.filter)
        settings = before.settings if wanted.settings is None else self._own(wanted.settings)
        await self._chat.prefer(Preferences(settings, saved))
        return await self.get()

    def _own(self, settings: JsonObject) -> JsonObject:
        """Those that are not as configured."""
        names = {field.name: field.encode_name for field in msgspec.structs.fields(ChatSettings)}
        usual = {names[name]: value for name, value in msgspec.structs.asdict(self._configured).items()}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in usual.items()}
        return {name: value for name, value in settings.items() if name not in plain or plain[name] != value}


def _check(name: str, text: str) -> None:
    if not name.strip() or any(letter.isspace() or letter in "&|+!()'\":<>=@" for letter in name):
        hint = "A name is one word of letters, digits, - and _, because it is written as @name."
        raise Fault(Code.INVALID_REQUEST, f"no filter can be called {name[:40]!r}", hint=hint, status=422)
    try:
        parse(text, scope=FilterScope.CHAT)
    except Fault as fault:
        message = f"the filter @{name} cannot be read: {fault.message}"
        raise Fault(fault.code, message, hint=fault.hint, status=422) from None
