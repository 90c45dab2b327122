"""Secrets of 20 kinds, ten of each, and files of code that hold them. Made anew in the same way each time."""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

KINDS, EACH = 20, 10
_ALNUM = string.ascii_letters + string.digits


@dataclass(frozen=True)
class Canary:
    """`shown` is what stands in a file; `secret` is the part of it that must never be seen."""

    kind: str
    secret: str
    shown: str


def canaries(seed: int = 5) -> list[Canary]:
    rng = random.Random(seed)
    return [make(rng) for make in _MAKERS for _ in range(EACH)]


def _of(rng: random.Random, letters: str, count: int) -> str:
    return "".join(rng.choices(letters, k=count))


def _maker(kind: str, around: str, prefix: str, letters: str, count: int, end: str = "") -> Callable[..., Canary]:
    def make(rng: random.Random) -> Canary:
        secret = _of(rng, letters, count) + end
        shown = around.replace("@@", prefix + secret)
        # a long prefix alone would be most of a part that is looked for
        return Canary(kind, prefix + secret if len(prefix) < 9 else secret, shown)

    return make


def _jwt(rng: random.Random) -> Canary:
    parts = [base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (b'{"alg":"HS256"}', rng.randbytes(30))]
    secret = f"{parts[0]}.eyJ{parts[1]}.{_of(rng, _ALNUM, 43)}"
    return Canary("JSON web token", secret, f'session_token = "{secret}"')


def _key(begin: str, end: str, quote: str) -> Callable[[random.Random], Canary]:
    def make(rng: random.Random) -> Canary:
        body = base64.b64encode(rng.randbytes(400)).decode()
        lines = [body[at : at + 64] for at in range(0, len(body), 64)]
        whole = "\n".join((begin, *lines, end))
        shown = "\n".join(f'    "{line}\\n"' for line in whole.split("\n")) if quote else whole
        return Canary(f"private key{quote}", "\n".join(lines), shown)

    return make


_B64 = _ALNUM + "+/"
_MAKERS = (
    _maker("AWS access key", 'client = connect("@@")', "AKIA", string.ascii_uppercase + "234567", 16),
    _maker("AWS secret key", "aws_secret_access_key = @@", "", _B64, 40),
    _maker("GitHub token", "git clone with @@ # once", "ghp_", _ALNUM, 36),
    _maker("GitHub token, fine-grained", "headers.append('@@')", "github_pat_", _ALNUM, 82),
    _maker("GitLab token", "curl -H 'PRIVATE-TOKEN: @@'", "glpat-", _ALNUM, 20),
    _maker("Slack token", 'post("@@", text)', "xoxb-", string.digits + string.ascii_letters, 48),
    _maker("Slack hook", "url = https://hooks.slack.com/services/@@", "T01", _ALNUM, 40),
    _maker("sk key", "OpenAI('@@')", "sk-proj-", _ALNUM + "_-", 100),
    _maker("Google key", '{"browser": "@@"}', "AIza", _ALNUM, 35),
    _maker("Stripe key", "stripe.api_key = '@@'", "sk_live_", _ALNUM, 24),
    _maker("npm token", "//registry/:_authToken=@@", "npm_", _ALNUM, 36),
    _maker("Hugging Face token", "login(@@)", "hf_", _ALNUM, 34),
    _jwt,
    _key("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", ""),
    _key("-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----", ", in quotes"),
    _maker("password in a URL", "engine = create('postgres://app:@@@db.internal:5432/x')", "", _ALNUM, 20),
    _maker("password", 'db_password: str = "@@"', "", _ALNUM + "!%^*-_", 24),
    _maker("bearer token", "-H 'Authorization: Bearer @@'", "", _ALNUM + "._", 40, "7"),
    _maker("key of an account", '"Endpoint=x;AccountKey=@@;Suffix=y"', "", _B64, 86, "=="),
    _maker("hexadecimal key", "'api_key' => '@@',", "", string.hexdigits[:16], 32),
)
assert len(_MAKERS) == KINDS

_CODE = '''def step_{n}(items, limit={n}):
    """Return the first items, at most the limit."""
    found = [item for item in items if item.value > limit]
    return found[:limit]

'''


def files(planted: list[Canary], seed: int = 6) -> Iterator[str]:
    """Texts of code, five canaries in each, at random places; some in a single long line."""
    rng = random.Random(seed)
    shuffled = rng.sample(planted, len(planted))
    for number in range(0, len(shuffled), 5):
        blocks = [_CODE.format(n=number * 100 + at) for at in range(rng.randrange(6, 30))]
        for canary in shuffled[number : number + 5]:
            blocks.insert(rng.randrange(len(blocks)), canary.shown + "\n")
        if number % 50 == 0:
            blocks.insert(0, "x = [" + "1, " * 900 + '"", ' + shuffled[number].shown.replace("\n", " ") + "]\n")
        yield "".join(blocks)
