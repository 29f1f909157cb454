"""What a change is about: the lines of a file that are other than before, and some around them."""

from sightline.evals.api.shapes import ChangeShown

_AROUND = 3


def diff_lines(before: bytes, after: bytes) -> ChangeShown:
    """All lines from the first that is other to the last, on both sides."""
    old, new = (data.decode("utf-8", "replace").splitlines(keepends=True) for data in (before, after))
    most = min(len(old), len(new))
    same = next((place for place in range(most) if old[place] != new[place]), most)
    behind = next((place for place in range(most - same) if old[-1 - place] != new[-1 - place]), most - same)
    first, left = max(same - _AROUND, 0), max(behind - _AROUND, 0)
    return ChangeShown(first + 1, "".join(old[first : len(old) - left]), "".join(new[first : len(new) - left]))
