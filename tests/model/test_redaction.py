from __future__ import annotations

import pytest

from tarviz.model.redaction import redact, safe

S = "hunter2hunter2"

CARRIED = [
    f"https://me:{S}@host/a.tar",
    f"https://{S}@host/a.tar",
    f"https://me:p@{S}@host/a.tar",
    f"https://me:{S}@ss@host/",
    f"https://me:{S}/w@host/a.tar",
    f"https://me:a/{S}@host/a.tar",
    f"s3://key:{S}@bucket/a.tar",
    f"s3://{S}@bucket/a.tar",
    f"abfs://me:{S}@account.dfs.core.windows.net/a.tar",
    f"AZ://me:{S}@account/a.tar",
    f"see 'https://me:{S}@host' and so on",
    f"https://host/a.tar?X-Amz-Credential={S}%2F20261122&X-Amz-Signature={S}&X-Amz-Security-Token={S}",
    f"https://host/a.tar?X%2DAmz%2DSignature={S}",
    f"https://host/a.tar?Policy=x&Signature={S}&Key-Pair-Id={S}",
    f"https://host/a.tar?sv=2026&sig={S}&se=1",
    *(
        f"https://host/a.tar?v=1&{name}={S}&w=2"
        for name in (
            *("auth", "auth_token", "client_secret", "refresh_token", "private_token", "jwt", "id_token", "token", "tok%65n", "apikey"),
            *("api_key", "api-key", "key-pair-id", "AWSAccessKeyId", "password", "passwd", "pwd", "pass", "secret", "sessionid", "x-auth"),
            *("authorization", "X-Goog-Credential", "download_signature", "access-key", "private_key", "session", "hmac", "TOKEN"),
        )
    ),
    f"https://host/a.tar#access_token={S}",
    f"https://host/a.tar?next=1#state=x&id_token={S}",
    f"https://host/a.tar;jsessionid={S}",
    f"https://proxy/?url=https%3A%2F%2Fhost%2Fa.tar%3Ftoken%3D{S}%26v%3D1",
    f"https://proxy/?url=https%3A%2F%2Fme%3A{S}%40host%2Fa.tar",
    f"https://host/a.tar?token='{S}'",
    f"Authorization: token {S}",
    f"Authorization: Basic {S}",
    f"authorization: {S}",
    f"Proxy-Authorization: Digest {S}",
    f"{{'Authorization': 'token {S}'}}",
    f'{{"PRIVATE-TOKEN": "{S}", "Range": "bytes=0-"}}',
    f"Cookie: session={S}; theme=dark",
    f"Set-Cookie: sid={S}; HttpOnly",
    f"x-api-key: {S}",
    f"sent Bearer {S} to the host",
    f"token={S}",
    f"the answer was token={S}, then nothing.",
]


@pytest.mark.parametrize("text", CARRIED)
def test_no_secret_is_left(text):
    assert S not in redact(text)
    assert redact(text) == redact(redact(text))


@pytest.mark.parametrize(
    "text",
    [
        "https://host/a.tar",
        "https://host:8080/a@b.tar",
        "https://host:8080/a@b.tar?v=1&list=2#part",
        "http://host/a.tar?versionId=abc&prefix=x/y&author=bob&codec=jpg&sigma=3&keys=4&monkey=1",
        "train-{0000..0147}.tar",
        "mail me@host about a@b.tar",
        "the key 'a=b' of record 7: key=17, keysplit=first-dot",
        "12 records read before. Hint: Sort the shard: tarviz sort.",
        "sed: can't read x; max_tokens=5, tokenizer=bert, code=E_READ",
        "the record has no field cls; there are jpg, txt",
        "the basic idea",
        "ais://@aws/bucket/a.tar",
        "ais://@aws/bucket/a@b.tar",
        "https://proxy/?url=ais%3A%2F%2F%40aws%2Fbucket",
        "abfs://container@account.dfs.core.windows.net/a.tar",
        "ABFSS://container@account.dfs.core.windows.net/a.tar",
        "az://container@account/a.tar, azure://container@account/a.tar",
    ],
)
def test_what_is_no_secret_stays(text):
    assert text == redact(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://me:pw@host/a.tar?X-Amz-Signature=abc&v=1", "https://***@host/a.tar?X-Amz-Signature=***&v=1"),
        ("https://host/a.tar?token=abc: not found.", "https://host/a.tar?token=***: not found."),
        ("see https://host/a.tar?v=1&sig=abc.", "see https://host/a.tar?v=1&sig=***."),
        ("(https://host/a.tar?sig=abc)", "(https://host/a.tar?sig=***)"),
        ("https://me:pw@one/, https://me:pw@two/", "https://***@one/, https://***@two/"),
        ("'https://me:pw@one', 'https://two/a@b'", "'https://***@one', 'https://two/a@b'"),
    ],
)
def test_the_rest_of_the_text_stays(text, expected):
    assert expected == redact(text)


def test_every_sign_that_moves_or_turns_text_is_escaped():
    signs = [*range(0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF]

    assert [] == [hex(code) for code in signs if not safe(chr(code)).isprintable() or chr(code) in safe(chr(code))]
    assert " ~\xa0é\u2027\u202f" == safe(" ~\xa0é\u2027\u202f")


def test_control_characters_are_escaped():
    assert r"a\x1b[31m\u202eb\n" == safe("a\x1b[31m\u202eb\n")
