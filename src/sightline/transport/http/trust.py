"""Whose certificates are believed: the system's, and those that a person adds."""

import os.path
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path

from sightline.errors import Code, Fault

# Files that are added to the system's store; other programs know these names too.
_FILE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
_FOLDER_VARIABLE = "SSL_CERT_DIR"
_SETTING = "[network] ca_file"


class Trust:
    """The TLS settings of every connection. What is named is added to the system's store, never put in its place; it
    is read when the first connection needs it."""

    def __init__(self, *, environment: Mapping[str, str], ca_file: str = "") -> None:
        self._named = [(name, environment.get(name, "")) for name in _FILE_VARIABLES] + [(_SETTING, ca_file)]
        self._folders = environment.get(_FOLDER_VARIABLE, "")
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """TLS 1.2 or later, certificates and host names checked, HTTP/1.1 offered."""
        if self._context is None:
            self._context = self._build_context()
        return self._context

    def _build_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        # A company's own intermediate certificate, added without its root, is believed as it stands.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        _add_system_store(context)
        for name, path in self._named:
            if path:
                _add(context, name, path)
        if self._folders:
            _add_folders(context, self._folders)
        return context


def _add_system_store(context: ssl.SSLContext) -> None:
    if sys.platform == "win32":
        context.load_default_certs()
        return
    # The paths that OpenSSL was built with, because its own look-up lets SSL_CERT_FILE take their place.
    paths = ssl.get_default_verify_paths()
    file, folder = Path(paths.openssl_cafile), Path(paths.openssl_capath)
    has_file = file.is_file() and file.stat().st_size > 0
    has_folder = folder.is_dir() and any(folder.iterdir())
    if has_file:
        context.load_verify_locations(cafile=file)
    if has_folder:
        context.load_verify_locations(capath=folder)
    if not has_file and not has_folder:
        import certifi

        context.load_verify_locations(cafile=certifi.where())


def _add(context: ssl.SSLContext, name: str, path: str) -> None:
    try:
        if Path(path).is_dir():
            context.load_verify_locations(capath=path)
        else:
            context.load_verify_locations(cafile=path)
    except FileNotFoundError:
        raise _refusal(name, path, "does not exist") from None
    except (OSError, ValueError) as error:
        # SSLError is an OSError: a file without a certificate, or with a broken one.
        why = "holds no certificates" if isinstance(error, ssl.SSLError) else "cannot be read"
        raise _refusal(name, path, why) from None


def _add_folders(context: ssl.SSLContext, listed: str) -> None:
    folders = [folder for folder in listed.split(os.path.pathsep) if Path(folder).is_dir()]
    if not folders:
        raise _refusal(_FOLDER_VARIABLE, listed, "is no folder")
    for folder in folders:
        context.load_verify_locations(capath=folder)


def _refusal(name: str, path: str, why: str) -> Fault:
    return Fault(
        Code.CONFIG,
        f"the CA file {path} (from {name}) {why}",
        hint=f"Set {name} to a PEM file of the certificates to trust, or unset it.",
    )
