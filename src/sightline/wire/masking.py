"""Secrets taken out of what others say: a provider that repeats a credential must not spread it."""

from collections.abc import Iterable

from sightline.model.json import Json
from sightline.wire.secrets import SecretForms, forms_of


def redact_text(text: str, secrets: Iterable[str]) -> str:
    """The text without any of the secrets, however one is spelled in it."""
    forms = forms_of(tuple(secrets))
    return text if forms is None else forms.mask(text)


def redact_json(value: Json, secrets: Iterable[str]) -> Json:
    """The value with every string in it masked, keys as well."""
    forms = forms_of(tuple(secrets))
    return value if forms is None else _redact_value(value, forms)


def _redact_value(value: Json, forms: SecretForms) -> Json:
    match value:
        case str():
            return forms.mask(value)
        case list():
            return [_redact_value(item, forms) for item in value]
        case dict():
            return {forms.mask(key): _redact_value(item, forms) for key, item in value.items()}
        case _:
            return value
