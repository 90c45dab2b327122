"""FFM on sse-starlette itself, whose own task pings before the first record and between two."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from starlette.routing import BaseRoute

from tests.services.ffm import FfmService


class New(FfmService):
    old = False

    def routes(self) -> list[BaseRoute]:
        return [self.own_pings(0.01, old=self.old)]


class Old(New):
    old = True


@pytest.mark.parametrize(("service_class", "form"), [(New, b": ping - "), (Old, b"event: ping\r\ndata: 2023")])
async def test_the_librarys_own_pings_are_passed_over(
    service_class: type[FfmService], form: bytes, make_ffm: Any, collect: Any, question: Any
) -> None:
    with service_class() as service:
        asked = asyncio.create_task(collect(make_ffm(service.url), question))
        await service.until(begun=1)
        # A second reader, who came later, sees the ping; so the first one has had one, too.
        async with (
            httpx.AsyncClient() as client,
            client.stream("POST", f"{service.url}/models/text_infilling", json={}) as response,
        ):
            parts = response.aiter_raw()
            seen = b""
            while form not in seen:
                seen += await anext(parts)
            service.release()
            seen += b"".join([part async for part in parts])
        deltas = await asked
    assert "".join(delta.text for delta in deltas) == "return a + b"
    assert deltas[-1].finish
    assert seen.count(b'"generated_text"') == 2
