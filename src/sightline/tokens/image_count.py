"""Tokens of a picture by the formula that its provider publishes."""

from math import ceil, floor, sqrt
from typing import assert_never

from sightline.catalog.facts import ImageCost
from sightline.tokens.estimate import Estimate, between, exactly

Size = tuple[float, float]

_SQUARE = 2048
_SHORT_SIDE = 768
_TILE = 512
_SMALL = 384
_CROP = 768
_LEAST_CROP = 256
_UNKNOWN = (85, 1000, 6000)
_SMALLEST: Size = (32, 32)
_USUAL: Size = (1024, 768)
_LARGEST: Size = (8000, 8000)


def count_image(cost: ImageCost | None, size: tuple[int, int] | None, detail: str | None = None) -> Estimate:
    """Tokens of one picture. A size that is not known leaves everything open from the smallest to the largest."""
    if cost is None:
        return between(*_UNKNOWN, "image")
    if size is not None:
        return _by_formula(cost, size, detail)
    small, usual, large = (_by_formula(cost, guess, detail) for guess in (_SMALLEST, _USUAL, _LARGEST))
    return between(small.low, usual.tokens, max(usual.high, large.high), "image of unknown size")


def _by_formula(cost: ImageCost, size: Size, detail: str | None) -> Estimate:
    match cost.kind:
        case "tiles":
            tiled = cost.base + cost.tile * _tiles(size)
            return _exact(cost.base if detail == "low" else tiled)
        case "patches":
            patches = ceil(_patches(cost, size) * cost.factor)
            return between(min(patches, cost.base or patches), patches, patches + 1, "image formula")
        case "area":
            return _around(_area(cost, size))
        case "squares":
            squares = _squares(size) * cost.tile
            # Some endpoints count one square however large the picture is, others one more, for the whole of it.
            return between(cost.tile, squares, squares + (cost.tile if squares > cost.tile else 0), "image formula")
        case "flat":
            return _exact(cost.base)
        case unreachable:
            assert_never(unreachable)


def _exact(tokens: int) -> Estimate:
    return exactly(tokens, "image formula")


def _around(tokens: int) -> Estimate:
    """A formula that its provider calls an approximation."""
    return between(tokens * 0.95, tokens, tokens * 1.05 + 5, "image formula")


def _fit_within(size: Size, longest: float) -> Size:
    width, height = size
    shrink = min(1.0, longest / max(width, height))
    return width * shrink, height * shrink


def _tiles(size: Size) -> int:
    width, height = _fit_within(size, _SQUARE)
    shrink = min(1.0, _SHORT_SIDE / min(width, height))
    return _grid((width * shrink, height * shrink), _TILE)


def _grid(size: Size, side: int) -> int:
    return max(1, ceil(round(size[0], 6) / side)) * max(1, ceil(round(size[1], 6) / side))


def _patches(cost: ImageCost, size: Size) -> int:
    width, height = _fit_within(size, cost.longest) if cost.longest else size
    patches = _grid((width, height), cost.patch)
    if not cost.limit or patches <= cost.limit:
        return patches
    shrink = sqrt(cost.patch**2 * cost.limit / (width * height))
    across, down = width * shrink / cost.patch, height * shrink / cost.patch
    shrink *= min(max(1, floor(across)) / across, max(1, floor(down)) / down)
    return min(cost.limit, _grid((width * shrink, height * shrink), cost.patch))


def _area(cost: ImageCost, size: Size) -> int:
    width, height = _fit_within(size, cost.longest) if cost.longest else size
    tokens = ceil(width * height / cost.divisor)
    return min(tokens, cost.limit) if cost.limit else tokens


def _squares(size: Size) -> int:
    width, height = size
    if width <= _SMALL and height <= _SMALL:
        return 1
    crop = min(_CROP, max(_LEAST_CROP, floor(min(width, height) / 1.5)))
    return ceil(width / crop) * ceil(height / crop)
