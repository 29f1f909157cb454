"""How a kind of provider is recognised by its name or address, and what then holds for it."""

import msgspec

from sightline.catalog.provider import Provider


class Detection(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`provider` holds for each provider that is called by one of `names` or whose base URL contains one of
    `url_contains` and none of `not_url_contains`. Case does not matter, and what the user has set stays."""

    names: tuple[str, ...] = ()
    url_contains: tuple[str, ...] = ()
    not_url_contains: tuple[str, ...] = ()
    provider: Provider = Provider()

    def fits(self, name: str, provider: Provider) -> bool:
        """Whether this provider is of that kind."""
        called = {name.lower(), provider.title.lower()}
        if any(each.lower() in called for each in self.names):
            return True
        url = provider.base_url.lower()
        return _holds_any(url, self.url_contains) and not _holds_any(url, self.not_url_contains)


def _holds_any(url: str, marks: tuple[str, ...]) -> bool:
    return any(mark.lower() in url for mark in marks)
