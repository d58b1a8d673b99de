"""Who asks Amazon, and where: what botocore decides of profiles, roles, sign-on and endpoints; plain variables need no library."""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tarviz.model.errors import MissingPackageError, StoreError, UsageError
from tarviz.stores._remote.access import CredentialCache
from tarviz.stores._remote.buckets import path
from tarviz.stores._remote.machine import machine_says
from tarviz.stores._remote.sigv4 import AwsKeys

PLAIN = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"),
    *("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_SKIP_SIGNATURE"),
)
VARIABLES = (*PLAIN, "AWS_*", "HOME")
_CLIENTS = threading.Lock()  # botocore makes one at a time


@dataclass(frozen=True, slots=True)
class BucketPlace:
    """Where the objects of a bucket are: what comes before their names, and the region that requests are signed for."""

    base: str
    region: str


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What one environment leads to. `session` is botocore's, None where plain variables say everything.

    Without keys it is looked for anew soon: `expires` is None.
    """

    session: Any
    keys: AwsKeys | None = None
    places: dict[tuple[str, str], BucketPlace] = field(default_factory=dict)

    @property
    def expires(self) -> float | None:
        return None if self.keys is None else math.inf


class AwsSession:
    """Keys and places of the environment as it is now. Threads share it."""

    def __init__(self) -> None:
        self._kept = CredentialCache(_choose, VARIABLES)

    def keys(self) -> AwsKeys | None:
        """The keys to sign with, renewed before they end; None: requests go out unsigned."""
        chosen = self._now()
        if chosen.session is None or chosen.keys is None:
            return chosen.keys
        with _errors():
            found = chosen.session.get_credentials().get_frozen_credentials()
        return AwsKeys(str(found.access_key), str(found.secret_key), found.token)

    def place(self, bucket: str, region: str) -> BucketPlace:
        """Where requests for a bucket go, as botocore or plain variables say. `region`: where the server said it is, or nothing."""
        chosen = self._now()
        if (bucket, region) not in chosen.places:
            with _CLIENTS:
                found = _plain_place(bucket, region) if chosen.session is None else _place(chosen, bucket, region)
                chosen.places[bucket, region] = found
        return chosen.places[bucket, region]

    def region_at(self, address: str) -> str:
        """The region of the bucket that an address belongs to, as it was placed last."""
        placed = reversed(list(self._now().places.values()))
        return next((each.region for each in placed if address.startswith(each.base)), "") or _plain_region()

    def forget(self) -> bool:
        """Look for the keys again; whether there were some."""
        return self._now().keys is not None and self._kept.forget()

    def _now(self) -> _Chosen:
        return self._kept() or _Chosen(None)


def _choose() -> _Chosen:
    env = os.environ
    anonymous = env.get("AWS_SKIP_SIGNATURE", "").lower() == "true"
    name, secret = (env.get(each, "") for each in PLAIN[:2])
    keys = AwsKeys(name, secret, env.get("AWS_SESSION_TOKEN") or None) if name and secret and not anonymous else None
    if _is_plain():
        return _Chosen(None, keys)
    try:
        import botocore.session
    except ImportError as error:
        if anonymous or (keys is not None and not env.get("AWS_PROFILE")):
            return _Chosen(None, keys)
        raise MissingPackageError.of("boto3", "the profiles, roles and sign-on of AWS", "cloud") from error
    with _errors():
        session = botocore.session.Session()
        session.get_scoped_config()  # a profile that is not there
        found = None if anonymous else session.get_credentials()
    return _Chosen(session, AwsKeys("", "") if found is not None else None)


def _is_plain() -> bool:
    """Whether variables of the keys, or others as simple, or none at all, are all that is set."""
    env = os.environ
    home = Path.home() / ".aws"
    if any(name.startswith("AWS_") and name not in PLAIN and env[name] for name in env):
        return False
    if (home / "config").is_file() or (home / "credentials").is_file():
        return False
    there = sum(bool(env.get(name)) for name in PLAIN[:2])
    return there == 2 or (there == 0 and not machine_says("sys_vendor", "Amazon EC2"))


def _plain_region() -> str:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def _plain_place(bucket: str, region: str) -> BucketPlace:
    region = region or _plain_region()
    if endpoint := os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"):
        return BucketPlace(f"{endpoint.rstrip('/')}{path(bucket)}/", region)
    host = f"s3.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"
    dotted = "." in bucket or not bucket.islower()  # TLS has no certificate for such a host
    return BucketPlace(f"https://{host}{path(bucket)}/" if dotted else f"https://{bucket}.{host}/", region)


class _PlacedError(Exception):
    """Address and region of a request that is not sent."""


def _place(chosen: _Chosen, bucket: str, region: str) -> BucketPlace:
    """Where botocore would ask for the object `k` of a bucket: it makes the request, and is stopped before it signs."""
    import botocore
    from botocore.config import Config

    def stop(request: Any, region_name: str | None, **_: Any) -> None:
        raise _PlacedError(request.url, region_name)

    with _errors():
        config = Config(signature_version=botocore.UNSIGNED) if chosen.keys is None else None
        client = chosen.session.create_client("s3", region_name=region or os.environ.get("AWS_REGION") or None, config=config)
        client.meta.events.register_last("before-sign.s3", stop)
        try:
            client.head_object(Bucket=bucket, Key="k")
        except _PlacedError as found:
            address, region = found.args
        finally:
            client.close()
    return BucketPlace(address.removesuffix("k"), region or "us-east-1")


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
