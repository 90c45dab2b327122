"""Redaction with canaries, and which files are ignored."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from completion.privacy import Ignored, Redactor, put_back, redact
from completion.privacy.stand_ins import stand_in
from completion.settings import PrivacySettings
from completion.types import DocumentSnapshot, PlainText

BODY = "MIIEvQIBADANBgkqhkiG9w0BAQ\nEFAASCBKcwggSjAgEAAoIBAQ"
BEGIN, END = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"

CANARIES = {
    "aws": ("id = {}", "AKIA" + "IOSFODNN7EXAMPLE"),
    "aws, temporary": ("id = {}", "ASIA" + "IOSFODNN7EXAMPLE"),
    "github": ("export T={}", "ghp_" + "a1B2" * 9),
    "github, fine-grained": ("'{}'", "github_pat_" + "11AAAAAAA0" * 6),
    "sk": ("key: {}", "sk-" + "proj-abc123DEF456ghi789JKL"),
    "slack": ("{}", "xoxb-" + "123456789012-abcdefGHIJ"),
    "jwt": ("Bearer {}", "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSM"),
    "password": ('password = "{}"', "correct horse battery"),
    "secret in JSON": ("\"client_secret\": '{}',", "0123456789ab"),
    "typed": ('api_key: str = "{}"', "0123456789ab"),
    "prefixed, other case": ('AUTH_TOKEN=b"{}"', "0123456789ab"),
    "hash rocket": ("'apiKey' => '{}'", "0123456789ab"),
    "quote not yet closed": ('passwd = "{}\nx = 1', "0123456789ab"),
    "pem": (BEGIN + "\n{}\n" + END, BODY),
    "pem without an end": ("a\n" + BEGIN + "\n{}", BODY),
    "pem without a beginning": ("{}\n" + END + "\nb", BODY),
}


def differs(text: str, found: str) -> list[tuple[int, int]]:
    """Where two texts of one length differ in letters and digits, as stretches; other characters join them."""
    return [
        match.span()
        for match in re.finditer("x(?:[x.]*x)?", "".join(_mark(a, b) for a, b in zip(text, found, strict=True)))
    ]


def _mark(a: str, b: str) -> str:
    return "x" if a != b else " " if a.isalnum() else "."


@pytest.mark.parametrize("name", CANARIES)
def test_nothing_of_a_secret_is_left_and_all_else_is(name: str) -> None:
    around, secret = CANARIES[name]
    text = "before = 1\n" * (not name.startswith("pem without")) + around.format(secret)
    found = redact(text)
    start = text.index(secret)
    stretches = differs(text, found)
    assert stretches
    assert all(start <= begin < end <= start + len(secret) for begin, end in stretches)
    assert all(secret[at : at + 12] not in found for at in range(max(1, len(secret) - 11)))


def test_stand_ins_have_the_classes_of_what_they_stand_for() -> None:
    secret = "aB3-" * 8
    other = stand_in(secret)
    assert re.fullmatch("(?:[a-z][A-Z][0-9]-){8}", other)
    assert all(a != b for a, b in zip(secret, other, strict=True) if a != "-")
    assert stand_in(secret) == other != stand_in(secret[:-1] + "x")
    assert len(stand_in("ключ-ß-٣")) == 8


def test_the_same_secret_has_the_same_stand_in_wherever_it_is() -> None:
    redactor = Redactor()
    one = redactor.clean("password = 'hunter22-a'")
    two = redactor.clean("x\nsecret: 'hunter22-a'\npassword = 'hunter22-b'")
    (first,), (second, third) = one.stand_ins, two.stand_ins
    assert first.text == second.text != third.text
    assert (first.secret, second.line, third.line) == ("hunter22-a", 1, 2)
    assert "hunter22" not in repr(two)
    assert put_back(two.stand_ins) == {second.text: "hunter22-a", third.text: "hunter22-b"}
    assert redactor.found_in(f"a\n{second.text}") == (replace(second, line=1),)
    assert redactor.found_in("hunter22-a") == ()


def test_several_at_once_and_text_whose_lower_case_is_longer() -> None:
    text = "İ password = 'aaaabbbbaaaabbbb' token='bbbbbbbb1bbbbbbb'\n"
    assert [text[begin:end] for begin, end in differs(text, redact(text))] == ["aaaabbbbaaaabbbb", "bbbbbbbb1bbbbbbb"]


@pytest.mark.parametrize(
    "text",
    [
        'password = "short"',
        "token = get_token(session, refresh=True)",
        "class = 'sk-circle-fade-delay-animation'",
        "task-1234567890-1234567890-abc",
        "AKIA is a prefix, MALAKIAIOSFODNN7EXAMPLES is not a key",
        "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
        "secretary = 1\nname = 'a long enough name'",
        "eyJust.a.word",
        'tokens: list[str] = ["aaaaaaaaaaaaaaaaaaa"]',
    ],
)
def test_other_text_stays(text: str) -> None:
    assert redact(text) == text


def document(path: str | None, uri: str = "untitled:x") -> DocumentSnapshot:
    return DocumentSnapshot(uri, "plaintext", 1, PlainText(""), path)


@pytest.mark.parametrize(
    ("globs", "path", "uri", "expected"),
    [
        ((), "a.py", "", False),
        (("*.pem",), "a/b/server.pem", "", True),
        (("*.pem",), "a/b/SERVER.PEM", "", True),
        (("*.pem",), "a/pem.py", "", False),
        (("secrets/*",), "secrets/a/b.py", "", True),
        (("secrets/*",), "other/secrets.py", "", False),
        (("secrets/",), "app/secrets/b.py", "", True),
        (("**/conf/*.ini",), "conf/a.ini", "", True),
        (("**/conf/*.ini",), "x/conf/a.ini", "", True),
        (("conf\\*.ini",), "conf/a.ini", "", True),
        (("a.py",), "a.pyc", "", False),
        ((".env",), None, "file:///c%3A/x/.env", True),
        ((".env",), None, "file:///home/%2Eenv", True),
        ((".env",), None, "untitled:.env", True),
        (("*.ipynb",), None, "vscode-notebook-cell:/x/a.ipynb#W1", True),
        ((".env",), None, "file:///home/environment", False),
        (("secrets/*",), None, "file:///w/secrets/c.c", True),  # no workspace
        (("secrets/*",), "c.c", "file:///w/secrets/c.c", True),  # the workspace begins below
        (("secrets/*",), "app/secrets/c.c", "", True),
        (("secrets/*",), "app/secrets/deep/c.c", "", True),
        (("secrets/*",), "app/nosecrets/c.c", "file:///w/app/nosecrets/c.c", False),
        (("secrets/*",), "secrets.c", "file:///w/secrets.c", False),
        (("secrets/*",), None, "untitled:secrets/c.c", True),
        (("secrets/*",), None, "file:///c%3A/w/Secrets/c.c", True),
        (("secrets/*",), None, "file:///w//secrets/./c.c", True),
        (("secrets/*",), None, "vscode-notebook-cell:/w/secrets/a.ipynb#W1", True),
        (("secrets/*",), None, "file:///w/secrets/c.c?x", True),
        (("secrets/**",), "secrets/c.c", "", True),
        ((" secrets/ ",), "secrets/c.c", "", True),
        (("secrets\\",), "secrets/c.c", "", True),
        (("a/secrets",), "a/secrets/c.c", "", True),  # a folder
        (("a/secrets",), "a/secrets.c", "", False),
        (("secrets",), "secrets/c.c", "", False),
        (("secrets/c.c",), "secrets/c.c", "", True),
        (("secrets/c.c",), "secrets/c.cc", "", False),
        (("a/**/b",), "a/b", "", True),
        (("a/**/b",), "x/a/y/z/b", "", True),
        (("a/**/b",), "a/bb", "", False),
        (("a/**/b",), "a/xb", "", False),
        (("*/a/**/b/**/c",), "x/a/b/y/c", "", True),
        (("/secrets/*",), "secrets/c.c", "file:///w/secrets/c.c", True),
        (("/secrets/*",), "app/secrets/c.c", "file:///w/app/secrets/c.c", False),
        (("/secrets/*",), None, "file:///w/secrets/c.c", True),  # where the top is, is not known
        (("/a.py",), "a.py", "file:///w/a.py", True),
        (("/a.py",), "b/a.py", "file:///w/b/a.py", False),
        (("/home/u/keys/*",), "keys/c.c", "file:///home/u/keys/c.c", True),
        (("/home/u/keys/*",), None, "file:///home/u/keys/c.c", True),
        (("/home/u/keys/*",), "c.c", "file:///x/home/u/keys/c.c", False),
        (("C:\\keys\\*",), "c.c", "file:///c%3A/keys/c.c", True),
        (("caf\u00e9/*",), "cafe\u0301/c.c", "", True),
        (("a[12].py",), "x/a2.py", "", True),
        (("a[12].py",), "x/a3.py", "", False),
        (("a?.py",), "x/ab.py", "", True),
        (("", "./"), "a.py", "", False),
    ],
)
def test_ignored(globs: tuple[str, ...], path: str | None, uri: str, expected: bool) -> None:
    assert Ignored(globs)(document(path, uri or "file:///w/x")) is expected


def test_the_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/u")
    monkeypatch.setenv("USERPROFILE", "/home/u")
    ignored = Ignored(["~/keys/*"])
    assert ignored(document(None, "file:///home/u/keys/c.c"))
    assert not ignored(document("keys/c.c", "file:///home/v/keys/c.c"))


@pytest.mark.parametrize("name", [".env", ".env.local", "a.pem", "a.key", "id_rsa", "id_ed25519.pub", "x.p12", "x.pfx"])
def test_ignored_by_default(name: str) -> None:
    ignored = Ignored(PrivacySettings().ignore)
    assert ignored(document(f"sub/{name}"))
    assert not ignored(document(f"sub/{name}.py")) or name.startswith((".env", "id_"))


@pytest.mark.timeout(60)  # hours, if the time grew with the square of the length
@pytest.mark.parametrize(
    "part", ["sk-", "password", "-eyJ", "-eyJabcdefgh", "-eyJabcdefgh.eyJabcdefgh", "token: ", 'token="aaaaaaaaaaaa" ']
)
def test_text_made_to_be_slow_is_not(part: str) -> None:
    text = part * (100_000 // len(part))
    assert len(redact(text)) == len(text)
