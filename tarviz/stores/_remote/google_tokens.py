"""Who asks Google: what google-auth finds of files, logins, federated identities and machines."""

from __future__ import annotations

import logging
import os
import time
import warnings
from datetime import UTC
from pathlib import Path

from tarviz.model.errors import MissingPackageError, StoreError
from tarviz.stores._remote.access import Bearer
from tarviz.stores._remote.machine import machine_says

VARIABLES = ("GOOGLE_*", "CLOUDSDK_*", "GCE_METADATA_*", "NO_GCE_CHECK", "K_SERVICE", "STORAGE_EMULATOR_HOST", "HOME")
_QUIET = logging.NullHandler()
_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"


def find_token() -> Bearer | None:
    """The token this process would use with Google's own tools, or None: then requests go out unsigned.

    google-auth is asked only where something names an identity: it looks for a machine's for seconds where there is none.
    """
    env = os.environ
    if env.get("STORAGE_EMULATOR_HOST") and not env.get("GOOGLE_APPLICATION_CREDENTIALS"):
        return None
    folder = env.get("CLOUDSDK_CONFIG") or Path.home() / ".config" / "gcloud"
    there = env.get("GOOGLE_APPLICATION_CREDENTIALS") or (Path(folder) / "application_default_credentials.json").is_file()
    told = any(map(env.get, ("GCE_METADATA_HOST", "GCE_METADATA_ROOT", "K_SERVICE")))
    if not (there or told or machine_says("product_name", "Google")):
        return None
    try:
        import google.auth
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request
    except ImportError as error:
        raise MissingPackageError.of("google-auth", "an identity of Google", "cloud") from error
    logging.getLogger("google.auth").addHandler(_QUIET)  # what it warns of, the error below says
    try:
        with warnings.catch_warnings(action="ignore"):  # of logins without a project of their own
            request = Request()
            found, _ = google.auth.default(scopes=[_SCOPE], request=request)
            found.refresh(request)
    except (GoogleAuthError, OSError, ValueError) as error:
        named = env.get("GOOGLE_APPLICATION_CREDENTIALS")
        what = f"google-auth gets no token{f' by {named}' if named else ''} ({type(error).__name__})."
        hint = "GOOGLE_APPLICATION_CREDENTIALS names a file; gcloud auth application-default login makes one."
        raise StoreError(what, code="E_AUTH", hint=hint) from None  # its words, or those of a program that it runs, may be secrets
    headers: dict[str, str] = {}
    found.apply(headers)
    ends = found.expiry.replace(tzinfo=UTC).timestamp() if found.expiry else time.time() + 300
    return Bearer(str(found.token), ends, {name: value for name, value in headers.items() if name.lower() != "authorization"})
