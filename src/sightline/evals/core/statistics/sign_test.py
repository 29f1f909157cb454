"""The exact test of wins against losses; of verdicts it is McNemar's."""


def sign_test(wins: int, losses: int) -> float:
    """How likely so uneven a count is, or a more uneven one, if a win and a loss are equally likely; ties say nothing.

    With wins for the cases that only one side passes, and losses for those that only the other does, this is the
    exact test of McNemar.
    """
    count = wins + losses
    ways = tail = 1
    for fewer in range(min(wins, losses)):
        # Each number of ways comes from the one before: thousands of cases would take minutes otherwise.
        ways = ways * (count - fewer) // (fewer + 1)
        tail += ways
    return min(1.0, 2 * tail / (1 << count))


def least_p(units: int) -> float:
    """The smallest probability that a two-sided exact test of so many differing units can come to."""
    return min(1.0, 2.0 ** (1 - units))
