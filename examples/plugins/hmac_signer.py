"""A provider with its own signing: each request carries its time and an HMAC of time, path and body.

[plugins]
use = ["hmac_signer.py"]

[providers.acme]
base_url = "https://llm.acme.example/v1"
sign = "acme-hmac"
sign_env = ["ACME_SIGNING_SECRET"]
"""

import hmac
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from sightline.errors import Code, Fault
from sightline.plugins import HttpRequest, Plugin, SigningContext


@dataclass
class AcmeSigner:
    """Signs with the secret in ACME_SIGNING_SECRET."""

    context: SigningContext

    async def sign(self, request: HttpRequest) -> HttpRequest:
        """The request with the headers x-acme-time and x-acme-signature."""
        secret = self.context.environment.get("ACME_SIGNING_SECRET", "")
        if not secret:
            hint = "Set it, and name it in sign_env of the provider."
            raise Fault(Code.AUTH, "the variable ACME_SIGNING_SECRET is not set", hint=hint)
        time = str(int(self.context.now()))
        signed = f"{time}\n{urlsplit(request.url).path}\n".encode() + request.body
        signature = hmac.digest(secret.encode(), signed, "sha256").hex()
        others = [(name, value) for name, value in request.headers if not name.lower().startswith("x-acme-")]
        added = [("x-acme-time", time), ("x-acme-signature", signature)]
        return msgspec.structs.replace(request, headers=(*others, *added))


PLUGIN = Plugin(name="acme", signers={"acme-hmac": AcmeSigner})
