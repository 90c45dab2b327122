"""Baidu Qianfan: V2 with infilling, V1 with continuation, chat in both. Knows no editor.

V2 takes a bearer key, or one made from a pair of IAM keys. V1 takes a signature, or an access token in the query of the
URL: messages and logs show URLs without their query.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Literal

import httpx

from backends._bce_auth import KeyPair, PairSource, TokenStore, signed
from backends._errors import said_by, too_long
from backends._openai_wire import cannot_infill, messages_of
from backends._qianfan_calls import (
    JSON,
    PREFIX,
    Vector,
    ask_for,
    create_access_token,
    create_bearer_token,
    find_route,
    in_batches,
    scores_in,
    vectors_in,
)
from backends._qianfan_wire import (
    LEAST,
    TOKEN_CODES,
    Choice,
    Result,
    kind_of,
    name_of,
    records_of,
    said_by_v1,
    sampling_v1,
    sampling_v2,
)
from backends._service import Ask, HttpBackend, encoded, source_of
from backends.base import (
    BackendError,
    BackendRequest,
    Capabilities,
    ChatPrompt,
    Delta,
    ErrorKind,
    InfillPrompt,
    Observer,
    Prompt,
    RawPrompt,
    Shape,
)
from backends.keys import Key
from backends.settings import BackendSettings

HOSTS = {"v1": "https://aip.baidubce.com", "v2": "https://qianfan.baidubce.com"}
IAM = "https://iam.bj.baidubce.com"
MAX_STOPS, MAX_STOP_CHARACTERS = 4, 20
EMBEDDED_AT_ONCE, RANKED_AT_ONCE = 16, 64  # the service's limits for one request

# V1's own models whose address needs no asking; an access token does not open the list of models.
ROUTES: Mapping[str, str] = {
    "sqlcoder-7b": "completions/sqlcoder_7b",
    "codellama-7b-instruct": "completions/codellama_7b_instruct",
    "ernie-speed-8k": "chat/ernie_speed",
    "ernie-lite-8k": "chat/ernie-lite-8k",
    "ernie-3.5-8k": "chat/completions",
}
_SHAPES = {"": Shape.INFILL, "suffix": Shape.INFILL, "template": Shape.RAW, "chat": Shape.CHAT}


class QianfanBackend(HttpBackend):
    """One model of Qianfan. `parameters.stream = false` asks for whole answers; all others are the service's.

    `url`, if set to something else than the cloud's own hosts, stands for all of them: no key goes anywhere else.
    """

    infill_hint = "It is asked as a chat model."

    def __init__(self, name: str, settings: BackendSettings, observer: Observer) -> None:
        """Opens nothing. Raises BackendError(SETTINGS)."""
        self._api: Literal["v1", "v2"] = "v1" if settings.api == "v1" else "v2"
        _check(f"backends.{name}", settings, self._api)
        self._parameters = dict(settings.parameters)
        self._stream = bool(self._parameters.pop("stream", True))
        base = (settings.url or HOSTS[self._api]).rstrip("/")
        super().__init__(name, replace(settings, url=base.removesuffix("/v2")), observer)
        self._base = self._http.url("")
        cloud = self._base.host == "baidubce.com" or self._base.host.endswith(".baidubce.com")
        self._console, self._iam = (httpx.URL(HOSTS["v2"]), httpx.URL(IAM)) if cloud else (self._base, self._base)
        self._tokens: TokenStore | None = None
        if settings.secret_key_env:
            self._keys = PairSource(settings)
            if self._api == "v2":
                self._tokens = TokenStore(partial(create_bearer_token, self._call, self._iam))
            elif not settings.access_key_env:
                self._tokens = TokenStore(partial(create_access_token, self._call, self._base))
        self._signs = bool(self._api == "v1" and settings.access_key_env)
        self._shape = _SHAPES.get(settings.mode, Shape.INFILL)  # of V2
        self._route = _route(settings.endpoint) or ROUTES.get(settings.model.lower(), "")  # of V1
        self._finding = asyncio.Lock()

    @property
    def model(self) -> str:
        return self._settings.model or self._settings.endpoint.rpartition("/")[2]

    @cached_property
    def fingerprint(self) -> str:
        more = f"{self._api} {self._settings.endpoint}"
        return hashlib.sha256(f"{super().fingerprint} {more}".encode()).hexdigest()[:16]

    @property
    def capabilities(self) -> Capabilities:
        """V2: INFILL until the model turns out to chat only. V1: RAW or CHAT, by its address, known after `prepare`."""
        shape = self._shape
        if self._api == "v1":
            shape = Shape.CHAT if self._route.startswith("chat/") else Shape.RAW
        # V2's models chat, also where they infill.
        return Capabilities(shapes=frozenset({shape}), chats=self._api == "v2", remote=self._http.remote)

    async def prepare(self) -> None:
        """Finds the address of a V1 model that is known by its name only."""
        await super().prepare()
        await self._find_route()

    async def _find_route(self) -> None:
        if self._api == "v2" or self._route:
            return
        async with self._finding:
            if self._route:
                return
            pair = await self._keys.get()
            if not self._signs or not isinstance(pair, KeyPair):
                why = "only IAM keys (access_key_env) open the list of models"
                message = f"The address of the model {self.model} is not known, and {why}: set endpoint to its end."
                raise BackendError(ErrorKind.SETTINGS, message)
            self._route = await find_route(self._call, self._console, pair, self.model)

    # Requests ---------------------------------------------------------------------------------------------------------

    def stream(self, request: BackendRequest) -> AsyncGenerator[Delta, None]:
        ready = self._tokens is None and (self._api == "v2" or self._route)
        return super().stream(request) if ready else self._renewing(request)

    async def _renewing(self, request: BackendRequest) -> AsyncGenerator[Delta, None]:
        """Ask, and once more if the token was refused before anything came."""
        await self._find_route()
        begun = renewed = False
        while True:
            try:
                async with aclosing(super().stream(request)) as deltas:
                    async for delta in deltas:
                        begun = True
                        yield delta
            except BackendError as error:
                if begun or renewed or not self._renews(error):
                    raise
                renewed = True  # its own deadline: a refusal comes at once
            else:
                return

    def _renews(self, error: BackendError) -> bool:
        """Whether a new token may help."""
        refused = error.status in TOKEN_CODES if self._api == "v1" else error.status == 401
        return self._tokens is not None and refused and error.kind is ErrorKind.AUTH

    def ask(self, request: BackendRequest) -> Ask:
        body: dict[str, Any] = {"stream": self._stream, "temperature": max(request.temperature, LEAST)}
        if stops := [text for text in request.stop if 0 < len(text) <= MAX_STOP_CHARACTERS][:MAX_STOPS]:
            body["stop"] = stops
        source = source_of(request.prompt)
        if self._api == "v1":
            # No limit of tokens: most models of V1 take none, and an answer that is not read on is cut off.
            path, prompt, shape = self._prompt_v1(request.prompt)
            url = self._http.url(f"{PREFIX}/{path}")
            sampling = sampling_v1(request.sampling, chats=shape is Shape.CHAT)
            return Ask(url, prompt | body | self._parameters | sampling, Result(), shape, source, JSON)
        path, prompt, shape = self._prompt_v2(request.prompt)
        body |= {"model": self.model, "max_tokens": request.max_tokens}
        if self._stream:
            body["stream_options"] = {"include_usage": True}
        headers = JSON | ({"appid": self._settings.app_id} if self._settings.app_id else {})
        body = prompt | body | self._parameters | sampling_v2(request.sampling)
        return Ask(self._http.url(path), body, Choice(), shape, source, headers)

    def _prompt_v2(self, prompt: Prompt) -> tuple[str, dict[str, Any], Shape]:
        chats = self._shape is Shape.CHAT
        match prompt:
            case InfillPrompt() if chats:
                raise self.cannot_infill()
            case InfillPrompt():
                # An empty suffix would make it a continuation.
                return "/v2/completions", {"prompt": prompt.prefix, "suffix": prompt.suffix or "\n"}, Shape.INFILL
            case RawPrompt() if not chats:
                return "/v2/completions", {"prompt": prompt.text}, Shape.RAW
            case RawPrompt():
                return "/v2/chat/completions", {"messages": _said_by_user(prompt.text)}, Shape.CHAT
            case ChatPrompt():
                return "/v2/chat/completions", {"messages": messages_of(prompt)}, Shape.CHAT

    def _prompt_v1(self, prompt: Prompt) -> tuple[str, dict[str, Any], Shape]:
        if isinstance(prompt, InfillPrompt):
            raise self.cannot_infill()
        if not self._route.startswith("chat/"):
            text = prompt.text if isinstance(prompt, RawPrompt) else "\n\n".join(m.content for m in prompt.messages)
            return self._route, {"prompt": text}, Shape.RAW
        if isinstance(prompt, RawPrompt):
            return self._route, {"messages": _said_by_user(prompt.text)}, Shape.CHAT
        return self._route, {"messages": _without_system(messages_of(prompt))}, Shape.CHAT

    async def addressed(self, ask: Ask, key: Key | None) -> Ask:
        """With the token: V1 takes it in the URL."""
        if self._tokens is not None and isinstance(key, KeyPair):
            token = await self._tokens.get(key)
        elif self._api == "v1" and key and not self._signs:
            token = key.value
        else:
            return ask
        if self._api == "v1":
            return replace(ask, url=ask.url.copy_merge_params({"access_token": token}))
        return replace(ask, headers={**ask.headers, "authorization": f"Bearer {token}"})

    async def headers(self, ask: Ask, key: Key | None) -> Mapping[str, str]:
        if self._signs and isinstance(key, KeyPair):
            # Configured headers win over ours, so they are what is signed.
            given = httpx.Headers(dict(self._settings.headers))
            sent = JSON | {name: given[name] for name in ("content-type", "host") if name in given}
            return signed(key, "POST", ask.url, sent)
        if self._api == "v2" and key and self._tokens is None:
            return {"authorization": f"Bearer {key.value}"}
        return {}

    # Answers ----------------------------------------------------------------------------------------------------------

    def records(self, response: httpx.Response) -> AsyncGenerator[dict[str, Any], None]:
        return records_of(response)

    def said(self, record: Mapping[str, Any]) -> str:
        if said := said_by_v1(record):
            return said
        said, more = said_by(record), record.get("error_description")  # of a refused pair of keys
        return f"{said}: {more}" if said and more else said

    def error_kind(
        self, status: int | None, record: Mapping[str, Any], said: str, ask: Ask, *, streamed: bool
    ) -> ErrorKind | None:
        if self._tokens is not None and (status in TOKEN_CODES or status == 401):
            in_header = ask.headers.get("authorization", "").removeprefix("Bearer ")
            self._tokens.refused(ask.url.params.get("access_token", in_header))
        if streamed and isinstance(ask.reader, Result | Choice) and ask.reader.begun:
            return ErrorKind.STREAM_ERROR
        unknown = name_of(record) in ("invalid_model", "unsupported_model")
        if ask.shape is Shape.INFILL and (unknown or (status in (400, 404, 422) and cannot_infill(said))):
            self._shape = Shape.CHAT
            return ErrorKind.INFILL_UNSUPPORTED
        if ask.shape is Shape.RAW and unknown and not self._settings.mode:  # of V2; a model that chats only, or none
            self._shape = Shape.CHAT
            return ErrorKind.SHAPE_UNSUPPORTED
        if record.get("error") == "invalid_client":
            return ErrorKind.AUTH
        kind = kind_of(record)
        return ErrorKind.CONTEXT_TOO_LONG if kind is ErrorKind.BAD_REQUEST and too_long(said) else kind

    async def _whole(self, response: httpx.Response, ask: Ask, key: Key | None) -> dict[str, Any]:
        try:
            return await super()._whole(response, ask, key)
        except BackendError as error:
            why = response.headers.get("x-bce-error-message", "")
            if not why:
                raise
            message = f"{error.message} ({self._safe(why, ask, key)})"
            raise BackendError(error.kind, message, status=error.status, retry_after_s=error.retry_after_s) from None

    def _safe(self, said: str, ask: Ask, key: Key | None) -> str:
        hidden = (self._tokens.current if self._tokens else "", key.identity if isinstance(key, KeyPair) else "")
        for secret in filter(None, hidden):
            said = said.replace(secret, "***")
        return super()._safe(said, ask, key)

    async def aclose(self) -> None:
        if self._tokens is not None:
            await self._tokens.aclose()
        await super().aclose()

    # Besides completions ----------------------------------------------------------------------------------------------

    async def embed(
        self, texts: Sequence[str], *, model: str = "", workers: int | None = None
    ) -> list[Vector | BackendError]:
        """The embedding of each text, in order; where a request failed, its error.

        `model`: of V1 the end of its address. `workers`: requests at a time; all of them, at most 1000, if not said.
        """
        model = model or "embedding-v1"

        async def ask(batch: Sequence[str]) -> list[Vector]:
            body = {"input": list(batch)}
            return vectors_in(await self._asked("embeddings", model, body, "\n".join(batch)), len(batch))

        return await in_batches(texts, EMBEDDED_AT_ONCE, ask, workers)

    async def rerank(
        self, query: str, documents: Sequence[str], *, model: str = "", workers: int | None = None
    ) -> list[float | BackendError]:
        """How well each document fits the query, the more the better, in their order. Otherwise as `embed`."""
        model = model or ("bce_reranker_base" if self._api == "v1" else "bce-reranker-base")

        async def ask(batch: Sequence[str]) -> list[float]:
            body = {"query": query, "documents": list(batch)}
            return scores_in(await self._asked("reranker", model, body, "\n".join((query, *batch))), len(batch))

        return await in_batches(documents, RANKED_AT_ONCE, ask, workers)

    async def _asked(self, what: str, model: str, body: dict[str, Any], source: str) -> dict[str, Any]:
        """One whole answer, with a token renewed once. Raises BackendError."""
        if self._api == "v1":
            url = self._http.url(f"{PREFIX}/{what}/{model}")
        else:
            url, body = self._http.url("/v2/rerank" if what == "reranker" else f"/v2/{what}"), {"model": model} | body
        key, renewed = await self._keys.get(), False
        while True:
            ask = await self.addressed(ask_for(url, body, source=source), key)
            try:
                return await self._call(replace(ask, headers={**ask.headers, **await self.headers(ask, key)}), key)
            except BackendError as error:
                if renewed or not self._renews(error):
                    raise
                renewed = True

    async def _call(self, ask: Ask, key: Key | None, method: str = "POST") -> dict[str, Any]:
        """Send a request as it is; return its whole answer. Raises BackendError."""
        deadline = asyncio.get_running_loop().time() + self._settings.timeout_s
        async with AsyncExitStack() as stack:
            async with self._http.within(deadline, ask.url):
                if method == "GET":
                    response = await self._http.get(ask.url, headers=ask.headers)
                else:
                    response = await self._http.post(ask.url, headers=ask.headers, body=encoded(ask))
                stack.push_async_callback(self._http.release, response)
            async with self._http.within(deadline, ask.url, begun=True):
                return await self._whole(response, ask, key)


def _said_by_user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def _without_system(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """V1 wants the user first, and not all of its models know a system."""
    begin = [message["content"] for message in messages if message["role"] == "system"]
    rest = [dict(message) for message in messages if message["role"] != "system"]
    if begin and rest:
        rest[0]["content"] = "\n\n".join((*begin, rest[0]["content"]))
    return rest or _said_by_user("\n\n".join(begin))


def _route(endpoint: str) -> str:
    """The end of a V1 address: `NAME` continues text, `chat/NAME` chats."""
    endpoint = "/".join(endpoint.strip("/").split("/")[-2:])
    return endpoint if "/" in endpoint or not endpoint else f"completions/{endpoint}"


def _check(path: str, settings: BackendSettings, api: str) -> None:
    """Refuse what cannot work. Raises BackendError(SETTINGS)."""
    plain = settings.key_env or settings.key_command
    problem = ""
    if not settings.model and (api == "v2" or not settings.endpoint):
        problem = "model is not set; allowed: a model's name" + (", or endpoint." if api == "v1" else ".")
    elif settings.endpoint and api == "v2":
        problem = 'endpoint is for V1: set api = "v1", or model alone.'
    elif settings.access_key_env and plain:
        problem = "access_key_env: allowed: it or key_env, not both."
    elif settings.access_key_env and not settings.secret_key_env:
        problem = "access_key_env is of no use without secret_key_env."
    elif settings.secret_key_env and not settings.access_key_env and not (plain and api == "v1"):
        problem = "secret_key_env is of no use without access_key_env" + (" or key_env." if api == "v1" else ".")
    elif settings.mode not in _SHAPES:
        problem = f"mode is {settings.mode!r}; allowed: {', '.join(filter(None, _SHAPES))}."
    elif not isinstance(settings.parameters.get("stream", True), bool):
        problem = f"parameters.stream is {settings.parameters['stream']!r}; allowed: true or false."
    if problem:
        raise BackendError(ErrorKind.SETTINGS, f"{path}.{problem}")
