"""Cutting bytes at any offsets."""

from itertools import pairwise


def split_at(data: bytes, cuts: list[int]) -> list[bytes]:
    """The pieces between these offsets, as a network might deliver them."""
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]
