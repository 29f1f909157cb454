"""Values that belong together: what was asked about the same thing is not independent."""

from collections.abc import Sequence


def clusters_of(groups: Sequence[str], count: int) -> list[list[int]]:
    """The places of the values of each group, in the order in which groups first appear.

    A value without a group stands alone, and without groups every value does.
    """
    gathered: dict[str | int, list[int]] = {}
    for place, group in enumerate(groups or [""] * count):
        gathered.setdefault(group or place, []).append(place)
    return list(gathered.values())


def sums_of(values: Sequence[float], groups: Sequence[str]) -> tuple[list[float], list[int]]:
    """The sum of each cluster, and how many values it has."""
    clusters = clusters_of(groups, len(values))
    return [sum(values[place] for place in cluster) for cluster in clusters], [len(cluster) for cluster in clusters]
