"""Xinference's code routes: `/v1/code/prompt` and `/v1/code/completions`. Must not know who answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from backends.base import BackendError, File
from lsp_server.gateway.endpoint import Asked, Services, json_response, refused
from lsp_server.gateway.fields import Fields
from lsp_server.gateway.limits import read_body
from lsp_server.gateway.openai import ChoiceWriter, sampling
from lsp_server.gateway.question import Question
from lsp_server.gateway.refusal import Cause, Refusal, refusal_of
from lsp_server.language_ids import language_id

PROMPT_PATH, COMPLETIONS_PATH = "/v1/code/prompt", "/v1/code/completions"


class Xinference:
    """Never streams, whatever is asked, as the routes are specified."""

    statuses: Mapping[Cause, int] = {Cause.MODEL: 400, Cause.INFILL: 500}
    separator: Literal["\n", "\r\n"] = "\r\n"
    named_pings = False

    def read(self, fields: Fields) -> Asked:
        mode = fields.optional_text("mode") or "completion"
        if mode not in ("completion", "infill"):
            raise fields.wrong("mode", "one of 'completion' or 'infill'")
        suffix = fields.optional_text("suffix") if mode == "infill" else None
        if mode == "infill" and suffix is None:
            raise Refusal(Cause.FIELD, "suffix is required in infill mode", status=500)
        files = tuple(File(path, text) for path, text in fields.texts_by_name("files"))
        path = fields.optional_text("file_path") or None
        named = path or (files[-1].path if files else "")
        question = Question(
            fields.text("model"),
            fields.text("prompt"),
            suffix,
            files=files,
            repo=fields.optional_text("repo_name") or None,
            # Without other files it is of no use, and would stand in the prompt of some families.
            path=path if files else None,
            language=language_id(named) if named else "",
            **sampling(fields, None),
        )
        return Asked(question)

    def writer(self, asked: Asked) -> ChoiceWriter:
        return ChoiceWriter(asked.question.model)

    def refusal(self, refusal: Refusal, status: int) -> Any:
        message = refusal.message
        if refusal.cause is Cause.INFILL:
            message = "This model does not support infill mode."
        elif refusal.cause is Cause.UNAUTHORIZED:
            message = "Could not validate credentials"
        return {"detail": message}


class CodePrompt:
    """Shows the prompt that `/v1/code/completions` would ask the model with, in the form `/v1/completions` takes."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._api = Xinference()

    async def __call__(self, request: Request) -> Response:
        try:
            self._services.check(request.headers)
            fields = Fields.of(await read_body(request, self._services.max_body))
            question = self._api.read(fields).question
            return json_response({"prompt": self._services.desk.shown_prompt(question)})
        except BackendError as error:
            return refused(self._api, refusal_of(error))
        except Refusal as refusal:
            return refused(self._api, refusal)
        except ClientDisconnect:
            return Response(status_code=400)
