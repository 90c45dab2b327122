"""Signatures and temporary tokens of Baidu Cloud, against computed vectors, a verifier and the official SDK."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest

from backends._bce_auth import KeyPair, PairSource, Token, TokenStore, canonical, signed
from backends.base import BackendError, ErrorKind
from backends.settings import BackendSettings
from tests.services import bce
from tests.services.common import Seen
from tests.services.qianfan import ACCESS, SECRET, QianfanService

PAIR = KeyPair("exampleSecretKey0123456789abcdef", "a test", "ALTAKexampleAK")
NOW = datetime(2025, 1, 1, tzinfo=UTC)
GIVEN = {"Content-Type": "application/json", "Request_id": "sdk-py-test-0001"}
INFER = "https://qianfan.baidubce.com/rpc/2.0/ai_custom/v1/wenxinworkshop/completions/codellama_7b_instruct"
TOKEN = "https://qianfan.baidubce.com/v1/BCE-BEARER/token?expireInSeconds=100"


@pytest.mark.parametrize(
    ("method", "url", "signature"),
    [
        ("POST", INFER, "62e51177af26b18b0433b2401096a87c4f23e20cbcb1051a2dd671bc1c139ed1"),
        ("GET", TOKEN, "7e8f5f17169d4f86288f3d47bbc5b600ab1c522a30a6809692998d953b470d96"),
    ],
)
def test_computed_vectors(method: str, url: str, signature: str) -> None:
    assert signed(PAIR, method, httpx.URL(url), GIVEN, NOW) == {
        "x-bce-date": "2025-01-01T00:00:00Z",
        "authorization": "bce-auth-v1/ALTAKexampleAK/2025-01-01T00:00:00Z/300/"
        f"content-type;host;request_id;x-bce-date/{signature}",
    }


def test_what_is_signed() -> None:
    url = httpx.URL("http://127.0.0.1:8080/a b/中?z=1&a=%2F x&Authorization=no&empty=")
    headers = {"host": "127.0.0.1:8080", "x-bce-date": "2025-01-01T00:00:00Z", "b": " x ", "none": " "}
    assert canonical("GET", url, headers).split("\n") == [
        "GET",
        "/a%20b/%E4%B8%AD",
        "a=%2F%20x&empty=&z=1",
        "b:x",
        "host:127.0.0.1%3A8080",
        "x-bce-date:2025-01-01T00%3A00%3A00Z",
    ]


def verified(headers: Mapping[str, str], url: str = TOKEN, method: str = "GET", later_s: float = 0) -> str:
    whole = httpx.URL(url)
    secrets = {PAIR.identity: PAIR.value}
    sent = {"host": "qianfan.baidubce.com", **{name.lower(): value for name, value in GIVEN.items()}, **headers}
    query = parse_qsl(whole.query.decode())
    return bce.problem(method, whole.path, query, sent, secrets, NOW + timedelta(seconds=later_s))


def test_the_verifier_takes_what_is_right_and_nothing_else() -> None:
    headers = signed(PAIR, "GET", httpx.URL(TOKEN), GIVEN, NOW)
    assert not verified(headers)
    *begin, names, signature = headers["authorization"].split("/")
    assert not verified(headers | {"authorization": "/".join([*begin, ";".join(names.split(";")[::-1]), signature])})
    assert not verified(headers, later_s=299)
    assert "RequestExpired" in verified(headers, later_s=301)
    assert "RequestExpired" in verified(headers, later_s=-301)
    assert "x-bce-date" in verified(headers | {"x-bce-date": "2025-01-01T00:00:01Z"})
    assert "SignatureDoesNotMatch" in verified(headers, method="POST")
    assert "SignatureDoesNotMatch" in verified(headers, url=TOKEN.replace("100", "101"))
    assert "SignatureDoesNotMatch" in verified(headers | {"content-type": "text/plain"})
    assert "must be signed" in verified(headers | {"authorization": "/".join([*begin, "content-type", signature])})
    assert "NotFound" in verified(headers | {"authorization": headers["authorization"].replace("AK", "AX")})
    assert "no signature" in verified({})


SDK = Path(__file__).parent.parent / "services" / "qianfan_sdk.py"


@pytest.fixture(scope="module")
def of_the_sdk(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Seen], str]:
    """What the official SDK asks and makes of the answers. It runs by itself: it starts threads and logs to stderr."""
    home = str(tmp_path_factory.mktemp("home"))
    with QianfanService() as service:
        environment = os.environ | {"HOME": home, "USERPROFILE": home, "NO_PROXY": "127.0.0.1"}
        ran = subprocess.run(
            [sys.executable, "-I", str(SDK), service.root, ACCESS, SECRET],
            capture_output=True,
            check=False,
            cwd=home,
            env=environment,
            text=True,
            timeout=100,
        )
        assert ran.returncode == 0, ran.stderr
        return list(service.log), ran.stdout


def test_the_service_is_one_to_the_official_sdk(of_the_sdk: tuple[list[Seen], str]) -> None:
    log, answers = of_the_sdk
    assert answers.split("\n") == [
        "return a + b",
        "return a + b",
        "bce-v3/ALTAK-temporary/0",
        "return a + b",
        "2",
        "1",
        "",
    ]
    assert [seen.path for seen in log if seen.generating][-1].endswith("bce_reranker_base")


def test_the_official_sdk_signs_the_same_requests_alike(of_the_sdk: tuple[list[Seen], str]) -> None:
    """Every signed request of the SDK, signed again by us: the same signature."""
    signatures = 0
    for seen in of_the_sdk[0]:
        authorization = seen.headers.get("authorization", "")
        if not authorization.startswith("bce-auth-v1/"):
            continue
        *_, stamp, _, names, signature = authorization.split("/")
        url = httpx.URL(f"http://{seen.headers['host']}{seen.path}?{seen.query}")
        covered = {name: seen.headers[name] for name in names.split(";") if name not in ("host", "x-bce-date")}
        ours = signed(KeyPair(SECRET, "", ACCESS), seen.method, url, covered, datetime.fromisoformat(stamp))
        assert ours["authorization"].endswith(f"/{signature}")
        assert ours["x-bce-date"] == stamp
        signatures += 1
    assert signatures >= 5


# Pairs of keys and tokens --------------------------------------------------------------------------------------------


async def test_a_pair_hides_both_and_says_where_they_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "access-canary")
    monkeypatch.setenv("S_KEY", "secret-canary")
    settings = BackendSettings(kind="qianfan", access_key_env="A_KEY", secret_key_env="S_KEY")
    pair = await PairSource(settings).get()
    assert pair
    assert (pair.identity, pair.value) == ("access-canary", "secret-canary")
    assert "canary" not in f"{pair!r} {pair}"
    assert pair.source == "environment variable A_KEY and environment variable S_KEY"


@pytest.mark.parametrize(("missing", "setting"), [("A_KEY", "access_key_env"), ("S_KEY", "secret_key_env")])
async def test_a_missing_half_is_named(missing: str, setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "a")
    monkeypatch.setenv("S_KEY", "s")
    monkeypatch.delenv(missing)
    settings = BackendSettings(kind="qianfan", access_key_env="A_KEY", secret_key_env="S_KEY")
    with pytest.raises(BackendError) as caught:
        await PairSource(settings).get()
    assert caught.value.kind is ErrorKind.SETTINGS
    assert missing in caught.value.message
    assert setting in caught.value.message


class Fetches:
    """Gives tokens `t0`, `t1` …, each when `go` is set; those whose number is in `fail` fail."""

    def __init__(self, lifetime_s: float = 100.0, fail: tuple[int, ...] = ()) -> None:
        self.lifetime_s, self.fail = lifetime_s, fail
        self.number = 0
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self.go.set()

    async def __call__(self, pair: KeyPair) -> Token:
        number, self.number = self.number, self.number + 1
        self.begun.set()
        await self.go.wait()
        if number in self.fail:
            raise BackendError(ErrorKind.OVERLOADED, "busy", status=503, retry_after_s=2.0)
        return Token(f"t{number}", self.lifetime_s)


async def test_one_fetch_serves_all(caplog: Any) -> None:
    fetches = Fetches()
    store = TokenStore(fetches)
    assert store.current == ""
    assert await asyncio.gather(*[store.get(PAIR) for _ in range(5)]) == ["t0"] * 5
    assert (await store.get(PAIR), fetches.number, store.current) == ("t0", 1, "t0")
    assert "t0" not in repr(Token("t0", 1.0))


async def test_a_token_about_to_expire_is_renewed() -> None:
    fetches = Fetches(lifetime_s=10.0)  # as long before its end as it is given up
    store = TokenStore(fetches)
    assert [await store.get(PAIR), await store.get(PAIR)] == ["t0", "t1"]


async def test_other_keys_have_another_token() -> None:
    store = TokenStore(Fetches())
    assert await store.get(PAIR) == "t0"
    assert await store.get(KeyPair("other", "", "other")) == "t1"


async def test_a_refused_token_is_dropped_once() -> None:
    fetches = Fetches()
    store = TokenStore(fetches)
    first = await store.get(PAIR)
    store.refused(first)
    assert await store.get(PAIR) == "t1"
    store.refused(first)  # a slower request with the old one
    assert (await store.get(PAIR), fetches.number) == ("t1", 2)


async def test_a_failure_reaches_all_who_wait_and_is_not_kept() -> None:
    store = TokenStore(Fetches(fail=(0,)))
    outcomes = await asyncio.gather(store.get(PAIR), store.get(PAIR), return_exceptions=True)
    assert [(type(each), getattr(each, "status", 0)) for each in outcomes] == [(BackendError, 503)] * 2
    assert outcomes[0] is not outcomes[1]
    assert await store.get(PAIR) == "t1"


async def test_who_is_cancelled_does_not_stop_the_fetch_for_others() -> None:
    fetches = Fetches()
    fetches.go.clear()
    store = TokenStore(fetches)
    task = asyncio.create_task(store.get(PAIR))
    await fetches.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    fetches.go.set()
    assert (await store.get(PAIR), fetches.number) == ("t0", 1)


async def test_closing_ends_a_fetch() -> None:
    fetches = Fetches()
    fetches.go.clear()
    store = TokenStore(fetches)
    task = asyncio.create_task(store.get(PAIR))
    await fetches.begun.wait()
    await store.aclose()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert store.current == ""
