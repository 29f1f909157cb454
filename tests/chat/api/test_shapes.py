import msgspec

from sightline.chat.api import shapes
from sightline.chat.core.settings import ChatSettings


def test_all_settings_are_told_also_those_that_are_as_usual() -> None:
    shown = msgspec.to_builtins(shapes.SettingsShown())
    assert set(shown) == {field.encode_name for field in msgspec.structs.fields(ChatSettings)}
    assert (shown["charsPerToken"], shown["userRequestAllowance"], shown["maxTrimAttempts"]) == (3.5, 100, 10)


def test_a_row_says_where_it_begins_in_the_words_of_the_query() -> None:
    assert msgspec.to_builtins(shapes.RowsShown(1, 2, 3, ())) == {"version": 1, "total": 2, "from": 3, "rows": ()}
