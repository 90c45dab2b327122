"""Keys and temporary tokens of Qianfan, in both versions: fetched, renewed, refused."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from backends.base import ErrorKind
from tests.backends.qianfan_desk import (
    APP,
    BEARER_PATH,
    CODER,
    IAM,
    INFILL,
    OAUTH_PATH,
    RAW,
    failure,
    paths,
    text_of,
)
from tests.services.qianfan import Answer, QianfanService
from tests.services.raw import http, raw_server

# Tokens ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("settings", "route"), [(IAM, BEARER_PATH), (APP | CODER, OAUTH_PATH)])
async def test_a_token_is_fetched_once_and_renewed_once(
    qianfan: QianfanService, make_qianfan: Any, settings: dict[str, Any], route: str
) -> None:
    backend, request = make_qianfan(**settings), RAW
    answers = await asyncio.gather(*[text_of(backend, request) for _ in range(4)])
    assert answers == ["return a + b"] * 4
    assert paths(qianfan).count(route) == 1
    qianfan.expire()
    qianfan.reset()
    answers = await asyncio.gather(*[text_of(backend, request) for _ in range(4)])
    assert answers == ["return a + b"] * 4
    assert paths(qianfan).count(route) == 1
    assert len(qianfan.log) <= 1 + 2 * 4


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        (IAM, Answer(status=401, detail="expired")),
        (APP | CODER, Answer(detail={"error_code": 111, "error_msg": "Access token expired"})),
        (APP | CODER, Answer(deltas=(), stream_error={"error_code": 110, "error_msg": "Access token invalid"})),
        (APP | CODER, Answer(deltas=(), stream_error={"error_code": 110, "error_msg": "invalid"}, final="bare")),
    ],
)
async def test_a_token_refused_again_is_an_error(
    qianfan: QianfanService, make_qianfan: Any, settings: dict[str, Any], refusal: Answer
) -> None:
    qianfan.reset(refusal)
    error = await failure(make_qianfan(**settings), RAW)
    assert error.kind is ErrorKind.AUTH
    assert len([seen for seen in qianfan.log if "token" not in seen.path]) == 2
    assert len([seen for seen in qianfan.log if "token" in seen.path]) == 2


async def test_a_token_refused_behind_text_is_not_renewed(qianfan: QianfanService, make_qianfan: Any) -> None:
    qianfan.reset(Answer(stream_error={"error_code": 111, "error_msg": "Access token expired"}))
    assert (await failure(make_qianfan(**(APP | CODER)), RAW)).kind is ErrorKind.STREAM_ERROR
    assert len(qianfan.log) == 2


async def test_a_plain_key_is_not_renewed(qianfan: QianfanService, make_qianfan: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("T_KEY", "wrong-key")
    for backend, request in ((make_qianfan(), INFILL), (make_qianfan(**CODER), RAW)):
        qianfan.reset()
        error = await failure(backend, request)
        assert error.kind is ErrorKind.AUTH
        assert "T_KEY" in error.message
        assert "wrong-key" not in error.message
        assert len(qianfan.log) == 1


async def test_the_bearer_token_is_asked_for_with_a_signature(qianfan: QianfanService, make_qianfan: Any) -> None:
    await text_of(make_qianfan(**IAM))
    token, completion = qianfan.log
    assert (token.method, token.path, token.query) == ("GET", BEARER_PATH, "expireInSeconds=43200")
    assert not qianfan.signature_problem(token)
    assert completion.headers["authorization"] == "Bearer bce-v3/ALTAK-temporary/0"


async def test_a_bearer_token_lives_as_long_as_the_service_says(qianfan: QianfanService, make_qianfan: Any) -> None:
    qianfan.lifetime_s = 5  # less than what is left of it is given up
    backend = make_qianfan(**IAM)
    await text_of(backend)
    await text_of(backend)
    assert paths(qianfan).count(BEARER_PATH) == 2


@pytest.mark.parametrize("settings", [IAM, IAM | CODER, APP | CODER])
async def test_wrong_pairs(
    qianfan: QianfanService, make_qianfan: Any, monkeypatch: Any, settings: dict[str, Any]
) -> None:
    secret = settings["secret_key_env"]
    monkeypatch.setenv(secret, "wrong-secret")
    error = await failure(make_qianfan(**settings), RAW)
    assert error.kind is ErrorKind.AUTH
    assert secret in error.message
    assert "wrong-secret" not in error.message
    if "access_key_env" in settings:
        assert "Signature does not match" in error.message
    assert len(qianfan.log) == 1


async def test_an_error_of_the_token_service_reported_with_status_200(
    qianfan: QianfanService, make_qianfan: Any
) -> None:
    qianfan.refuse_tokens = {"error": "invalid_client", "error_description": "unknown client id"}
    error = await failure(make_qianfan(**(APP | CODER)), RAW)
    assert error.kind is ErrorKind.AUTH
    assert "unknown client id" in error.message


async def test_an_unknown_access_key_is_not_shown(qianfan: QianfanService, make_qianfan: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("T_ACCESS", "another-access-key")
    error = await failure(make_qianfan(**IAM))
    assert "another-access-key" not in error.message
    assert "Could not find credential" in error.message


async def test_keys_go_to_the_clouds_own_host_only(make_qianfan: Any) -> None:
    """Through a proxy that refuses all: it is asked for the host of access management."""
    async with raw_server(http(b"", status="403 Forbidden")) as proxy:
        error = await failure(make_qianfan(url="", proxy=f"http://127.0.0.1:{proxy.port}", **IAM))
        assert error.kind is ErrorKind.UNREACHABLE
        assert proxy.requests[0].startswith(b"CONNECT iam.bj.baidubce.com:443 ")


@pytest.mark.parametrize("token", ["中文-token", "a b-token", "a\nb-token", "", 5, None])
async def test_a_token_that_fits_no_header_is_refused_without_being_told(make_qianfan: Any, token: Any) -> None:
    body = json.dumps({"token": token}).encode()
    async with raw_server(http(body, content_type="application/json", length=True)) as raw:
        error = await failure(make_qianfan(url=raw.url, **IAM))
        assert error.kind is ErrorKind.PROTOCOL
        assert error.message == "The service's answer has no token, or none that can be sent."
        assert len(raw.requests) == 1
