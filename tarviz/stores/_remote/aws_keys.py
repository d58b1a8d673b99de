"""Where AWS keeps its keys: environment, shared files, web identity, container and machine, in the order of its own tools."""

from __future__ import annotations

import calendar
import configparser
import functools
import json
import os
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tarviz.model.environment import Watched
from tarviz.model.errors import StoreError, UsageError
from tarviz.stores._remote.ask import ask, machine_says, token
from tarviz.stores._remote.sigv4 import AwsKeys

_PROFILE = Watched(["AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "HOME"])
_AGAIN = 10.0  # seconds after which the shared files are read again
_XML = re.compile(r"<(AccessKeyId|SecretAccessKey|SessionToken|Expiration)>([^<]+)</")
_CONTAINER = "http://169.254.170.2"
_MACHINE = "http://169.254.169.254"


def find_keys() -> AwsKeys | None:
    """The keys this process would use with the AWS command line, or None: then requests go out unsigned."""
    env = os.environ
    if env.get("AWS_ACCESS_KEY_ID") and env.get("AWS_SECRET_ACCESS_KEY"):
        return AwsKeys(env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], env.get("AWS_SESSION_TOKEN") or None)
    if env.get("AWS_WEB_IDENTITY_TOKEN_FILE") and env.get("AWS_ROLE_ARN"):
        return _web_identity(env["AWS_WEB_IDENTITY_TOKEN_FILE"], env["AWS_ROLE_ARN"])
    return _from_profile(profile()) or _container() or _machine()


def profile() -> dict[str, str]:
    """The settings of the chosen profile, from both shared files; `UsageError` when AWS_PROFILE names none."""
    return _profile(_PROFILE.state(), int(time.monotonic() / _AGAIN))


@functools.lru_cache(maxsize=16)
def _profile(_: tuple[bytes | str, ...], moment: int) -> dict[str, str]:
    """Read once in some seconds: every request asks for the region."""
    chosen = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or ""
    name = chosen or "default"
    found: dict[str, str] = {}
    for variable, base, section in (
        ("AWS_CONFIG_FILE", "config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name),
    ):
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read(Path(os.environ.get(variable) or Path.home() / ".aws" / base).expanduser(), "utf-8")
        except (configparser.Error, UnicodeDecodeError) as error:
            raise UsageError(f"the AWS {base} file cannot be read: {type(error).__name__}.", hint=f"{variable} names another.") from None
        if parser.has_section(section):
            found |= dict(parser.items(section))
    if chosen and not found:
        raise UsageError(f"there is no AWS profile {chosen!r}.", hint="AWS_PROFILE names a section of ~/.aws/config or ~/.aws/credentials.")
    return found


def _from_profile(settings: Mapping[str, str]) -> AwsKeys | None:
    if settings.get("aws_access_key_id") and settings.get("aws_secret_access_key"):
        return AwsKeys(settings["aws_access_key_id"], settings["aws_secret_access_key"], settings.get("aws_session_token"))
    if settings.get("credential_process"):
        return _process(settings["credential_process"])
    if settings.get("web_identity_token_file") and settings.get("role_arn"):
        return _web_identity(settings["web_identity_token_file"], settings["role_arn"])
    if any(name in settings for name in ("role_arn", "sso_session", "sso_start_url")):
        return _boto()
    return None


def _boto() -> AwsKeys | None:
    """Assumed roles and single sign-on are boto3's business."""
    try:
        import boto3
    except ImportError as error:
        hint = "pip install boto3, or export keys: aws configure export-credentials --format env."
        raise StoreError("this AWS profile assumes a role or signs on, which needs boto3.", code="E_AUTH", hint=hint) from error
    found = boto3.Session().get_credentials()
    if found is None:
        return None
    frozen = found.get_frozen_credentials()
    return AwsKeys(str(frozen.access_key), str(frozen.secret_key), frozen.token, time.time() + 600)


def _process(command: str) -> AwsKeys:
    import shlex

    what = "the credential_process of the AWS profile"
    try:
        done = subprocess.run(shlex.split(command), capture_output=True, timeout=60, check=True, start_new_session=True)
        return _of(json.loads(done.stdout), what)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise StoreError(f"{what} failed: {type(error).__name__}.", code="E_AUTH") from None


def _of(found: Mapping[str, Any], what: str) -> AwsKeys:
    try:
        secret, session = str(found["SecretAccessKey"]), found.get("SessionToken") or found.get("Token")
        return AwsKeys(str(found["AccessKeyId"]), secret, session, _seconds(found.get("Expiration")))
    except KeyError as error:
        raise StoreError(f"{what} gives no key.", code="E_AUTH") from error


def _seconds(date: object) -> float | None:
    try:
        return float(calendar.timegm(time.strptime(str(date)[:19], "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return None


def _web_identity(path: str, role: str) -> AwsKeys:
    what = "the web identity role of AWS"
    try:
        identity = Path(path).read_text("utf-8").strip()
    except OSError as error:
        raise StoreError(f"{what} needs the token file {path}: {error.strerror}.", code="E_AUTH") from error
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ""
    service = os.environ.get("AWS_ENDPOINT_URL_STS") or (f"https://sts.{region}.amazonaws.com" if region else "https://sts.amazonaws.com")
    fields = {"Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleArn": role, "WebIdentityToken": identity}
    fields["RoleSessionName"] = os.environ.get("AWS_ROLE_SESSION_NAME") or "tarviz"
    try:
        answer = ask(service, method="POST", body=urlencode(fields).encode()).decode("utf-8", "replace")
    except OSError as error:
        raise StoreError(f"{what} was refused: {error}.", code="E_AUTH") from error
    return _of(dict(_XML.findall(answer)), what)


def _container() -> AwsKeys | None:
    env = os.environ
    place = env.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    if relative := env.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
        place = _CONTAINER + relative
    if not place:
        return None
    proof = env.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
    if path := env.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"):
        proof = Path(path).read_text("utf-8").strip()
    what = "the container's AWS role"
    return _of(token(what, place, headers={"Authorization": proof} if proof else {}, near=True), what)


def _machine() -> AwsKeys | None:
    """The role of an EC2 machine (IMDSv2); asked only where the firmware or a setting says that this is one."""
    place = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", "").rstrip("/")
    if os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true" or not (place or machine_says("sys_vendor", "Amazon EC2")):
        return None
    base = f"{place or _MACHINE}/latest"
    try:
        proof = ask(f"{base}/api/token", method="PUT", headers={"x-aws-ec2-metadata-token-ttl-seconds": "300"}, near=True).decode()
        headers = {"x-aws-ec2-metadata-token": proof}
        role = ask(f"{base}/meta-data/iam/security-credentials/", headers=headers, near=True).decode().strip().splitlines()[0]
    except (OSError, IndexError):
        return None  # a machine without a role
    what = "the AWS role of this machine"
    return _of(token(what, f"{base}/meta-data/iam/security-credentials/{role}", headers=headers, near=True), what)
