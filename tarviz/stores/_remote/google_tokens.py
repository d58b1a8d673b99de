"""Where Google keeps its credentials: the file of the application defaults, or the machine this runs on."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tarviz.model.errors import MissingPackageError, StoreError
from tarviz.stores._remote.access import Bearer
from tarviz.stores._remote.ask import machine_says, token

_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_OAUTH = "https://oauth2.googleapis.com/token"


def find_token() -> Bearer | None:
    """The token this process would use with Google's own tools, or None: then requests go out unsigned."""
    if os.environ.get("STORAGE_EMULATOR_HOST") and not os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
        return None
    path = _file()
    if path is None:
        return _machine()
    try:
        settings = json.loads(path.read_text("utf-8"))
        kind = settings["type"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = "GOOGLE_APPLICATION_CREDENTIALS names the file; gcloud auth application-default login makes one."
        raise StoreError(f"Google's credentials in {path} cannot be read: {type(error).__name__}.", code="E_AUTH", hint=hint) from None
    return _user(settings) if kind == "authorized_user" else _by_google(path)


def _file() -> Path | None:
    if named := os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
        return Path(named).expanduser()
    folder = os.environ.get("CLOUDSDK_CONFIG") or Path.home() / ".config" / "gcloud"
    path = Path(folder) / "application_default_credentials.json"
    return path if path.is_file() else None


def _user(settings: dict[str, Any]) -> Bearer:
    """Who has logged in with gcloud."""
    names = ("client_id", "client_secret", "refresh_token")
    fields = {"grant_type": "refresh_token", **{name: str(settings.get(name, "")) for name in names}}
    address = str(settings.get("token_uri") or _OAUTH)
    return _of(token("Google's login", address, method="POST", body=urlencode(fields).encode()))


def _machine() -> Bearer | None:
    """The service account of a Google machine, asked only where the firmware or a setting says that this is one."""
    host = os.environ.get("GCE_METADATA_HOST") or os.environ.get("GCE_METADATA_ROOT")
    if not (host or os.environ.get("K_SERVICE") or machine_says("product_name", "Google")):
        return None
    address = f"http://{host or 'metadata.google.internal'}/computeMetadata/v1/instance/service-accounts/default/token"
    return _of(token("the service account of this machine", address, headers={"Metadata-Flavor": "Google"}, near=True))


def _of(found: dict[str, Any]) -> Bearer:
    try:
        return Bearer(str(found["access_token"]), time.time() + float(found.get("expires_in", 300)))
    except (KeyError, ValueError) as error:
        raise StoreError("Google's answer holds no token.", code="E_AUTH") from error


def _by_google(path: Path) -> Bearer:
    """Service accounts, federated and impersonated identities sign with keys: that is google-auth's business."""
    try:
        import google.auth
        import google.auth.transport.urllib3
        import urllib3
        from google.auth.exceptions import GoogleAuthError
    except ImportError as error:
        raise MissingPackageError.of("google-auth", f"the kind of Google credentials in {path}", "cloud") from error
    try:
        found, _ = google.auth.load_credentials_from_file(str(path), scopes=[_SCOPE])
        found.refresh(google.auth.transport.urllib3.Request(urllib3.PoolManager()))
    except (GoogleAuthError, ValueError) as error:
        raise StoreError(f"Google's credentials in {path} are refused: {type(error).__name__}.", code="E_AUTH") from None
    return Bearer(str(found.token), found.expiry.timestamp() if found.expiry else time.time() + 300)
