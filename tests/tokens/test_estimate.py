from sightline.tokens.estimate import NOTHING, Estimate, between, exactly, is_possible, share_out, sum_estimates


def test_an_exact_number_has_no_band() -> None:
    assert exactly(7, "o200k_base") == Estimate(7, 7, 7, "o200k_base")
    assert exactly(7).is_exact
    assert not Estimate(7, 6, 7).is_exact


def test_a_band_is_rounded_outwards_and_holds_its_number() -> None:
    assert between(1.2, 3.4, 5.6) == Estimate(3, 1, 6)
    assert between(9, 3, 1) == Estimate(3, 3, 3)
    assert between(-5, -2, -1) == NOTHING


def test_numbers_and_bands_add_up_and_say_what_they_rest_on() -> None:
    assert exactly(1, "a") + exactly(2, "a") == exactly(3, "a")
    assert exactly(1) + exactly(2, "b") == exactly(3, "b")
    assert exactly(1, "a") + exactly(2) == exactly(3, "a")
    assert Estimate(5, 4, 9, "a") + exactly(1, "b") == Estimate(6, 5, 10, "mixed")


def test_many_add_up_as_they_would_one_by_one() -> None:
    some = [Estimate(5, 4, 9, "a"), exactly(1), exactly(2, "a")]
    assert sum_estimates(some) == some[0] + some[1] + some[2] == Estimate(8, 7, 12, "a")
    assert sum_estimates([*some, exactly(1, "b")]).how == "mixed"
    assert sum_estimates([]) == NOTHING


def test_a_count_far_beyond_what_was_thought_cannot_be_meant() -> None:
    assert is_possible(0, 0)
    assert is_possible(10_000_000, 0)
    assert is_possible(10_000_100, 1)
    assert not is_possible(10_000_101, 1)
    assert not is_possible(-1, 10)


def test_a_total_is_shared_out_in_whole_numbers_that_add_up_to_it() -> None:
    assert share_out(10, {"a": 1, "b": 1, "c": 1}) == {"a": 4, "b": 3, "c": 3}
    assert share_out(7, {"a": 0, "b": 5}) == {"a": 0, "b": 7}
