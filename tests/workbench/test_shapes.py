import msgspec

from sightline.workbench import shapes


def made() -> list[type[msgspec.Struct]]:
    own = [each for each in vars(shapes).values() if isinstance(each, type) and issubclass(each, msgspec.Struct)]
    return [each for each in own if each.__module__ == shapes.__name__]


def test_answers_are_values_that_say_what_they_are() -> None:
    assert len(made()) > 10
    assert all(each.__struct_config__.frozen and each.__doc__ for each in made())


def test_what_nobody_counted_is_left_out() -> None:
    assert msgspec.to_builtins(shapes.TokensShown(estimate=5)) == {"estimate": 5}


def test_a_completion_says_where_its_term_begins() -> None:
    assert msgspec.to_builtins(shapes.Offer("model:", "model", "", 3))["from"] == 3
