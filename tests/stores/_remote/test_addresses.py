"""Which server an address belongs to, what is sent of it, and where redirects may lead."""

from __future__ import annotations

import pytest

from tarviz.model.errors import StoreError, UsageError
from tarviz.stores._remote.addresses import bare_address, check_written, origin, redirect_target
from tests.conftest import each_case


@each_case(
    ("address", "expected"),
    [
        ("http://host/a", "http://host:80"),
        ("HTTPS://User@HOST", "https://host:443"),
        ("http://host:8080/a?b#c", "http://host:8080"),
        ("http://[::1]:90/", "http://::1:90"),
    ],
)
def test_an_origin_is_scheme_host_and_port(address, expected):
    assert expected == origin(address)


def test_a_port_that_cannot_be_is_a_usage_error():
    with pytest.raises(UsageError, match="cannot be read"):
        origin("http://host:x/")


def test_a_bare_address_has_no_secret_of_the_person():
    assert "https://h:1/a@b?c=d" == bare_address("https://me:p@w@h:1/a@b?c=d#e")


class TestWritten:
    @pytest.mark.parametrize("target", ["https://t1/v1/b/a%3F1.tar", "https://t1/other/a%3f1.tar?x=1"])
    def test_the_same_name_elsewhere_is_the_same(self, target):
        check_written("s3://b/a", "https://host/s3/b/a%3F1.tar", target)

    @pytest.mark.parametrize("target", ["https://t1/s3/b/a?1.tar", "https://t1/s3/b/", "https://t1/s3/b/a%3F1.tar/x"])
    def test_another_is_not_written(self, target):
        with pytest.raises(StoreError, match="redirects the write to another name") as caught:
            check_written("s3://b/a", "https://host/s3/b/a%3F1.tar", target)
        assert ("E_WRITE", "s3://b/a") == (caught.value.code, caught.value.shard)


class TestRedirects:
    @pytest.mark.parametrize(
        ("to", "expected"),
        [("/b", "https://host/b"), ("https://other/b?c", "https://other/b?c"), ("//me:pw@other/b", "https://other/b")],
    )
    def test_it_leads_to_https(self, to, expected):
        assert expected == redirect_target("https://host/a", "https://host/a", to)

    @each_case("to", ["http://host/a", "file:///etc/passwd", "ftp://host/a", "https://169.254.169.254/latest", "https://[::1"])
    def test_it_leads_nowhere_else(self, to):
        with pytest.raises(StoreError, match="redirects"):
            redirect_target("https://host/a", "https://host/a", to)

    def test_the_machine_s_own_services_lead_on_among_themselves(self):
        here = "http://169.254.169.254/a"

        assert "http://169.254.170.2/b" == redirect_target(here, here, "http://169.254.170.2/b")
        assert "https://other/b" == redirect_target(here, here, "https://other/b")

    def test_plain_http_leads_to_plain_http(self):
        assert "http://other/b" == redirect_target("http://host/a", "http://host/a", "HTTP://other/b")
        assert "http://host/x/c" == redirect_target("http://host/a", "http://host/x/b", "c")

    def test_raw_bytes_of_utf_8_are_escaped(self):
        """As http.client gives them: Latin-1."""
        raw = "/s3/b/中文.tar?a=%20".encode().decode("latin-1")

        assert "https://host/s3/b/%E4%B8%AD%E6%96%87.tar?a=%20" == redirect_target("https://host/a", "https://host/a", raw)
