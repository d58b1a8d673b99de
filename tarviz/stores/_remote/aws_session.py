"""Who asks Amazon, and where: what botocore decides of profiles, roles, sign-on and endpoints; plain variables need no library."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tarviz.model.environment import Watched
from tarviz.model.errors import MissingPackageError, StoreError, UsageError
from tarviz.stores._remote.machine import machine_says
from tarviz.stores._remote.sigv4 import AwsKeys

PLAIN = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"),
    *("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_SKIP_SIGNATURE"),
)
VARIABLES = (*PLAIN, "AWS_*", "HOME")
_PERIOD = 60.0  # seconds after which the shared files, and keys that were not there, are looked for again
_SCOPE = re.compile(r"Credential=[^/]+/\d+/([^/]+)/")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the objects of a bucket are: what comes before their names, and the region that requests are signed for."""

    base: str
    region: str


@dataclass(slots=True)
class _Chosen:
    """What one environment leads to. `session` is botocore's, None where plain variables say everything."""

    session: Any
    keys: AwsKeys | None = field(default=None, repr=False)
    until: float = 0.0
    places: dict[tuple[str, str], Place] = field(default_factory=dict)


class AwsSession:
    """Keys and places of the environment as it is now. Threads share it."""

    def __init__(self) -> None:
        self._watched = Watched(VARIABLES)
        self._lock = threading.Lock()
        self._state: tuple[bytes | str, ...] | None = None
        self._chosen = _Chosen(None)

    def keys(self) -> AwsKeys | None:
        """The keys to sign with, renewed before they end; None: requests go out unsigned."""
        chosen = self._now()
        if chosen.session is None or chosen.keys is None:
            return chosen.keys
        with _errors():
            found = chosen.session.get_credentials().get_frozen_credentials()
        return AwsKeys(str(found.access_key), str(found.secret_key), found.token)

    def place(self, bucket: str, region: str = "") -> Place | None:
        """Where botocore sends requests for a bucket; None where plain variables say so. `region`: where the server said it is."""
        chosen = self._now()
        if chosen.session is None:
            return None
        if (bucket, region) not in chosen.places:
            with self._lock:
                chosen.places[bucket, region] = _place(chosen, bucket, region)
        return chosen.places[bucket, region]

    def region_at(self, address: str) -> str:
        """The region of the bucket that an address belongs to, as botocore placed it; empty where it placed none there."""
        return next((each.region for each in list(self._chosen.places.values()) if address.startswith(each.base)), "")

    def forget(self) -> bool:
        """Look for the keys again; whether there were some."""
        with self._lock:
            there, self._state = self._chosen.keys is not None, None
        return there

    def _now(self) -> _Chosen:
        state = self._watched.state()
        if state != self._state or (self._chosen.until and time.monotonic() > self._chosen.until):
            with self._lock:
                self._chosen, self._state = _choose(), state
        return self._chosen


def _choose() -> _Chosen:
    env = os.environ
    anonymous = env.get("AWS_SKIP_SIGNATURE", "").lower() == "true"
    if (names := _plain()) is not None:
        keys = AwsKeys(env[names[0]], env[names[1]], env.get("AWS_SESSION_TOKEN") or None) if names and not anonymous else None
        return _Chosen(None, keys, 0.0 if names else time.monotonic() + _PERIOD)
    try:
        import botocore.session
    except ImportError as error:
        if anonymous or (env.get("AWS_ACCESS_KEY_ID") and env.get("AWS_SECRET_ACCESS_KEY") and not env.get("AWS_PROFILE")):
            keys = (
                None if anonymous else AwsKeys(env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], env.get("AWS_SESSION_TOKEN") or None)
            )
            return _Chosen(None, keys)
        raise MissingPackageError.of("boto3", "the profiles, roles and sign-on of AWS", "cloud") from error
    with _errors():
        session = botocore.session.Session()
        session.get_scoped_config()  # a profile that is not there
        found = None if anonymous else session.get_credentials()
        keys = AwsKeys("", "") if found is not None else None
    return _Chosen(session, keys, time.monotonic() + _PERIOD if keys is None else 0.0)


def _plain() -> tuple[str, ...] | None:
    """The variables of the keys where they, and others as simple, are all that is set; none of them where nothing is; else None."""
    env = os.environ
    home = Path.home() / ".aws"
    if any(name.startswith("AWS_") and name not in PLAIN and env[name] for name in env):
        return None
    if (home / "config").is_file() or (home / "credentials").is_file():
        return None
    found = tuple(name for name in PLAIN[:2] if env.get(name))
    if len(found) == 1 or (not found and machine_says("sys_vendor", "Amazon EC2")):
        return None
    return found


def _place(chosen: _Chosen, bucket: str, region: str) -> Place:
    """Where botocore would ask for the object `k` of a bucket: it makes the whole request, which is caught before it goes out."""
    import botocore
    from botocore.awsrequest import AWSResponse
    from botocore.config import Config

    caught: list[Any] = []

    def catch(request: Any, **_: Any) -> Any:
        caught.append(request)
        return AWSResponse(request.url, 200, {}, SimpleNamespace(stream=lambda: iter(())))

    with _errors():
        config = Config(signature_version=botocore.UNSIGNED) if chosen.keys is None else None
        client = chosen.session.create_client("s3", region_name=region or os.environ.get("AWS_REGION") or None, config=config)
        client.meta.events.register("before-send.s3", catch)
        try:
            client.head_object(Bucket=bucket, Key="k")
        finally:
            client.close()
    proof = caught[0].headers.get("Authorization", "")
    proof = proof.decode() if isinstance(proof, bytes) else proof
    scope = _SCOPE.search(proof)
    return Place(caught[0].url.removesuffix("k"), scope[1] if scope else client.meta.region_name or "us-east-1")


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    """Errors of botocore as ours, without their words: those of a credential process may be secrets."""
    from botocore import exceptions

    try:
        yield
    except exceptions.ProfileNotFound as error:
        name = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE")
        hint = "AWS_PROFILE names a section of ~/.aws/config or ~/.aws/credentials."
        raise UsageError(f"there is no AWS profile {name!r}.", hint=hint) from error
    except (exceptions.BotoCoreError, exceptions.ClientError) as error:
        what = f"botocore finds no way to ask ({type(error).__name__})."
        raise StoreError(what, code="E_AUTH", hint="Try: aws sts get-caller-identity.") from None
