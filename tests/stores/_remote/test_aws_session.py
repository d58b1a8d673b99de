"""Who asks Amazon and where, held against boto3: the request that it would send, and ours, in many configurations."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from tarviz.model.errors import StoreError, UsageError
from tarviz.model.types import URL
from tarviz.stores._remote.sigv4 import AwsKeys
from tarviz.stores.s3 import S3Store
from tarviz.testing.faults import ALWAYS, Fault

KEYS = {"AWS_ACCESS_KEY_ID": "ENVKEY", "AWS_SECRET_ACCESS_KEY": "env-secret"}
PRIVATE = "http://127.0.0.1:9001"
PAIR = "aws_access_key_id = FILEKEY\naws_secret_access_key = file-secret\n"
WEST = {"AWS_DEFAULT_REGION": "us-west-2"}

ROLE, WORKLOAD = "arn:aws:iam::123456789012:role/reader", "AssumeRoleWithWebIdentity"
GIVEN = {"AccessKeyId": "GIVEN", "SecretAccessKey": "given-secret", "SessionToken": "given-token", "Expiration": "2099-01-01T00:00:00Z"}

# name: (variables, ~/.aws/config, ~/.aws/credentials); $HERE is a server that gives keys, $HOME the home
CASES: dict[str, tuple[dict[str, str], str, str]] = {
    "keys": ({**KEYS, **WEST}, "", ""),
    "session": ({**KEYS, **WEST, "AWS_SESSION_TOKEN": "token/=="}, "", ""),
    "security token": ({**KEYS, **WEST, "AWS_SECURITY_TOKEN": "old"}, "", ""),
    "china": ({**KEYS, "AWS_DEFAULT_REGION": "cn-north-1"}, "", ""),
    "iso": ({**KEYS, "AWS_DEFAULT_REGION": "us-iso-east-1", "AWS_RETRY_MODE": "standard"}, "", ""),
    "gov": ({**KEYS, "AWS_DEFAULT_REGION": "us-gov-west-1"}, "", ""),
    "endpoint": ({**KEYS, **WEST, "AWS_ENDPOINT_URL": PRIVATE}, "", ""),
    "endpoint of s3": ({**KEYS, **WEST, "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ENDPOINT_URL_S3": PRIVATE}, "", ""),
    "endpoint with a path": ({**KEYS, **WEST, "AWS_ENDPOINT_URL": f"{PRIVATE}/s3"}, "", ""),
    "endpoints ignored": ({**KEYS, **WEST, "AWS_ENDPOINT_URL": PRIVATE, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, "", ""),
    "fips": ({**KEYS, **WEST, "AWS_USE_FIPS_ENDPOINT": "true"}, "", ""),
    "dualstack": ({**KEYS, **WEST, "AWS_USE_DUALSTACK_ENDPOINT": "true"}, "", ""),
    "fips and dualstack": ({**KEYS, **WEST, "AWS_USE_FIPS_ENDPOINT": "true", "AWS_USE_DUALSTACK_ENDPOINT": "true"}, "", ""),
    "default profile": (WEST, "", f"[default]\n{PAIR}"),
    "region of a file": ({}, "[default]\nregion = eu-north-1\n", f"[default]\n{PAIR}"),
    "named profile": ({"AWS_PROFILE": "work"}, "[profile work]\nregion = eu-west-1\n", f"[work]\n{PAIR}"),
    "other name of the variable": ({"AWS_DEFAULT_PROFILE": "work"}, "[profile work]\nregion = eu-west-1\n", f"[work]\n{PAIR}"),
    "profile with a space": ({"AWS_PROFILE": "my ml"}, f'[profile "my ml"]\nregion = eu-west-1\n{PAIR}', ""),
    "profile default": ({}, f"[profile default]\nregion = eu-west-1\n{PAIR}", ""),
    "keys in config": ({}, f"[default]\nregion = eu-west-1\n{PAIR}", ""),
    "environment before a file": (KEYS, "[default]\nregion = eu-west-1\n", f"[default]\n{PAIR}"),
    "environment and a profile": ({**KEYS, "AWS_PROFILE": "work"}, "[profile work]\nregion = eu-west-1\n", f"[work]\n{PAIR}"),
    "endpoint of a profile": (WEST, f"[default]\nendpoint_url = {PRIVATE}\n", f"[default]\n{PAIR}"),
    "services": (WEST, f"[default]\nservices = loc\n[services loc]\ns3 =\n  endpoint_url = {PRIVATE}\n", f"[default]\n{PAIR}"),
    "services of a profile": (
        {**WEST, "AWS_PROFILE": "w"},
        f"[profile w]\nservices = loc\n[services loc]\ns3 =\n  endpoint_url = {PRIVATE}\n",
        f"[w]\n{PAIR}",
    ),
    "stale token in config": (WEST, "[default]\naws_session_token = stale\n", f"[default]\n{PAIR}"),
    "token in credentials": (WEST, "", f"[default]\n{PAIR}aws_session_token = fresh\n"),
    "dualstack of a profile": (WEST, "[default]\nuse_dualstack_endpoint = true\n", f"[default]\n{PAIR}"),
    "fips of a profile": (WEST, "[default]\nuse_fips_endpoint = true\n", f"[default]\n{PAIR}"),
    "path style": (WEST, "[default]\ns3 =\n  addressing_style = path\n", f"[default]\n{PAIR}"),
    "virtual style": (WEST, "[default]\ns3 =\n  addressing_style = virtual\n", f"[default]\n{PAIR}"),
    "process": (
        WEST,
        """[default]\ncredential_process = echo '{"Version": 1, "AccessKeyId": "PROC", "SecretAccessKey": "p", "SessionToken": "t"}'\n""",
        "",
    ),
    "files elsewhere": (
        {"AWS_CONFIG_FILE": "$HOME/.aws/config", "AWS_SHARED_CREDENTIALS_FILE": "$HOME/.aws/credentials", "HOME": "/nowhere"},
        "[default]\nregion = eu-north-1\n",
        f"[default]\n{PAIR}",
    ),
    "region of the environment before that of a file": (WEST, "[default]\nregion = eu-north-1\n", f"[default]\n{PAIR}"),
    "endpoints ignored by a profile": (
        {**WEST, "AWS_ENDPOINT_URL": PRIVATE},
        "[default]\nignore_configured_endpoint_urls = true\n",
        f"[default]\n{PAIR}",
    ),
    "one name for all of us-east-1": ({**KEYS, "AWS_DEFAULT_REGION": "us-east-1", "AWS_S3_US_EAST_1_REGIONAL_ENDPOINT": "legacy"}, "", ""),
    "a name for us-east-1 itself": ({**KEYS, "AWS_DEFAULT_REGION": "us-east-1", "AWS_S3_US_EAST_1_REGIONAL_ENDPOINT": "regional"}, "", ""),
    "checksums where required": ({**KEYS, **WEST, "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required"}, "", ""),
    "role": (
        {**WEST, "AWS_PROFILE": "r", "AWS_ENDPOINT_URL_STS": "$HERE/AssumeRole"},
        f"[profile r]\nrole_arn = {ROLE}\nsource_profile = base\n",
        f"[base]\n{PAIR}",
    ),
    "keys of the environment before a role": (
        {**WEST, **KEYS, "AWS_PROFILE": "r", "AWS_ENDPOINT_URL_STS": "http://127.0.0.1:1"},
        f"[profile r]\nrole_arn = {ROLE}\ncredential_source = Environment\n",
        "",
    ),
    "role of a workload": (
        {**WEST, "AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": "$HOME/.aws/token", "AWS_ENDPOINT_URL_STS": f"$HERE/{WORKLOAD}"},
        "",
        "",
    ),
    "container": ({**WEST, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "$HERE/container"}, "", ""),
    "container that shows a token": (
        {**WEST, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "$HERE/task", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "of-the-task"},
        "",
        "",
    ),
    "machine": ({**WEST, "AWS_EC2_METADATA_SERVICE_ENDPOINT": "$HERE/machine"}, "", ""),
    "machine without region": ({"AWS_EC2_METADATA_SERVICE_ENDPOINT": "$HERE/machine/"}, "", ""),
    "sign-on": (
        {**WEST, "AWS_ENDPOINT_URL_SSO": "$HERE"},
        "[default]\nsso_start_url = https://start\nsso_region = us-west-2\nsso_account_id = 1\nsso_role_name = r\n",
        "",
    ),
    "nobody": ({**WEST, "AWS_EC2_METADATA_DISABLED": "true"}, "", ""),
}


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".aws").mkdir()
    return tmp_path / ".aws"


def configure(case, home, monkeypatch, here=""):
    variables, config, credentials = CASES[case]
    for name, value in variables.items():
        monkeypatch.setenv(name, value.replace("$HERE", here).replace("$HOME", str(home.parent)))
    for name, text in (("config", config), ("credentials", credentials)):
        if text:
            (home / name).write_text(text)


@pytest.fixture
def giving(server, home, monkeypatch):
    """The address of a server that gives keys for roles, to containers and to who has signed on; with what shows the last two."""
    rows = "".join(f"<{name}>{value}</{name}>" for name, value in GIVEN.items())
    for kind in ("AssumeRole", WORKLOAD):
        answer = f"<{kind}Response><{kind}Result><Credentials>{rows}</Credentials></{kind}Result></{kind}Response>"
        server.put(f"/{kind}", answer.encode(), plan=[Fault(method="POST", times=ALWAYS)])
    server.put("/container", json.dumps({**GIVEN, "Token": "given-token"}).encode())
    server.put("/task", json.dumps({**GIVEN, "Token": "given-token"}).encode())
    server.put("/machine/latest/api/token", b"session-of-the-machine", plan=[Fault(method="PUT", times=ALWAYS)])
    server.put("/machine/latest/meta-data/iam/security-credentials/", b"reader")
    of_role = {**GIVEN, "Code": "Success", "Type": "AWS-HMAC", "LastUpdated": "2026-01-01T00:00:00Z", "Token": "given-token"}
    server.put("/machine/latest/meta-data/iam/security-credentials/reader", json.dumps(of_role).encode())
    names = {"accessKeyId": "GIVEN", "secretAccessKey": "given-secret", "sessionToken": "given-token", "expiration": 4070908800000}
    server.put("/federation/credentials", json.dumps({"roleCredentials": names}).encode())
    (home / "token").write_text("of-the-workload")
    (home / "sso/cache").mkdir(parents=True)
    if find_spec("botocore"):  # which knows the folder from when it was imported
        for module, name in (("credentials", "SSOProvider"), ("tokens", "SSOTokenProvider")):
            found = getattr(import_module(f"botocore.{module}"), name)
            monkeypatch.setattr(found, "_SSO_TOKEN_CACHE_DIR", str(home / "sso/cache"))
    known = home / "sso/cache" / f"{hashlib.sha1(b'https://start', usedforsecurity=False).hexdigest()}.json"
    known.write_text(json.dumps({"startUrl": "https://start", "accessToken": "signed-on", "expiresAt": "2099-01-01T00:00:00Z"}))
    return server.url


def of_boto(bucket):
    """Address, key, region and token of the request that boto3 sends for an object."""
    boto3 = pytest.importorskip("boto3", reason="boto3 is what S3 is held against: pip install boto3")
    import botocore
    from botocore.awsrequest import AWSResponse
    from botocore.config import Config

    caught = []

    def catch(request, **_):
        caught.append(request)
        return AWSResponse(request.url, 200, {}, SimpleNamespace(stream=lambda: iter(())))

    session = boto3.Session()
    unsigned = None if session.get_credentials() else Config(signature_version=botocore.UNSIGNED)
    client = session.client("s3", config=unsigned)
    client.meta.events.register("before-send.s3", catch)
    client.head_object(Bucket=bucket, Key="a.tar")
    client.close()
    headers = {name: value.decode() if isinstance(value, bytes) else value for name, value in caught[0].headers.items()}
    return caught[0].url, *_asked(headers)


def _asked(headers):
    names = {name.lower(): value for name, value in headers.items()}
    found = re.search(r"Credential=([^/]+)/\d+/([^/]+)/", names.get("authorization", ""))
    return found[1] if found else None, found[2] if found else None, names.get("x-amz-security-token")


def of_ours(bucket):
    access = S3Store().wire.access
    address = access.address(URL(f"s3://{bucket}/a.tar"), {})
    return address, *_asked(access.headers("HEAD", address, {}, b""))


@pytest.mark.parametrize("bucket", ["data", "my.data"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.matrix
def test_we_ask_as_boto3_does(case, bucket, home, giving, monkeypatch):
    configure(case, home, monkeypatch, giving)
    expected = of_boto(bucket)

    assert expected == of_ours(bucket)
    assert ("GIVEN" == expected[1]) == ("$HERE" in str(CASES[case]))


@pytest.mark.parametrize(
    ("case", "path", "header"),
    [
        ("container that shows a token", "/task", ("authorization", "of-the-task")),
        ("machine", "/reader", ("x-aws-ec2-metadata-token", "session-of-the-machine")),
    ],
)
def test_who_gives_keys_is_shown_what_it_wants_to_see(case, path, header, home, server, giving, monkeypatch):
    pytest.importorskip("botocore", reason="identities are botocore's: pip install boto3")
    configure(case, home, monkeypatch, giving)

    assert "GIVEN" == of_ours("data")[1]
    assert header[1] == next(each for each in server.requests if each.path.endswith(path)).headers.get(header[0])


def test_a_profile_that_is_not_there_is_said(monkeypatch):
    pytest.importorskip("botocore", reason="profiles are botocore's: pip install boto3")
    monkeypatch.setenv("AWS_PROFILE", "nobody")

    with pytest.raises(UsageError, match="there is no AWS profile 'nobody'"):
        S3Store().wire.access.address(URL("s3://b/a.tar"), {})


def test_a_process_that_fails_is_told_without_its_words(home):
    pytest.importorskip("botocore", reason="profiles are botocore's: pip install boto3")
    (home / "config").write_text("[default]\ncredential_process = sh -c 'echo planted-secret >&2; exit 3'\n")
    with pytest.raises(StoreError, match="botocore finds no way") as caught:
        S3Store().wire.access.address(URL("s3://b/a.tar"), {})

    assert "E_AUTH" == caught.value.code
    assert "planted-secret" not in str(caught.value)


def test_the_settings_of_now_count(home, monkeypatch):
    access = S3Store().wire.access
    for name, value in {**KEYS, **WEST}.items():
        monkeypatch.setenv(name, value)
    assert access.address(URL("s3://b/a.tar"), {}).startswith("https://b.s3.us-west-2.")
    monkeypatch.setenv("AWS_ENDPOINT_URL", PRIVATE)
    assert f"{PRIVATE}/b/a.tar" == access.address(URL("s3://b/a.tar"), {})
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "OTHER")

    assert AwsKeys("OTHER", "env-secret") == access._session.keys()


@pytest.mark.parametrize("case", ["keys", "named profile", "environment and a profile"])
def test_plain_variables_need_no_library_and_a_profile_names_the_extra(case, home, monkeypatch):
    configure(case, home, monkeypatch)
    text = f"""
import sys
sys.modules["botocore"] = None
from tarviz.stores.s3 import S3Store
from tarviz.model.errors import MissingPackageError
access = S3Store().wire.access
try:
    address = access.address("s3://b/a.tar", {{}})
    assert {case == "keys"} and "ENVKEY" in access.headers("GET", address, {{}}, b"")["Authorization"]
except MissingPackageError as error:
    assert {case != "keys"} and "tarviz[cloud]" in str(error), error
"""

    assert 0 == subprocess.run([sys.executable, "-c", text], check=False).returncode
