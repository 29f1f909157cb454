from sightline.dialects.raw.names import CACHE, FIRST_CALL, IMAGE, OPAQUE, ROLE_NUMBERS, ROLES, TEXT


def test_the_numbers_are_those_of_the_schema():
    assert [ROLE_NUMBERS[role] for role in ROLES] == [0, 1, 2, 3]
    assert ROLE_NUMBERS["developer"] == ROLE_NUMBERS["system"]
    assert (IMAGE, TEXT, OPAQUE, CACHE) == (0, 1, 2, 3)


def test_calls_come_behind_any_content():
    assert FIRST_CALL > 1_000_000
