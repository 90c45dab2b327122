"""JSON-RPC as the specification wants it, on top of pygls: one answer to each request, and bad input never kills.

Handlers run synchronously while their message is handled, before the next one is read; they may return an awaitable.
Must not know what any method does.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

import attrs
from cattrs import BaseValidationError, transform_error
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol, default_converter

from lsp_server.quick import read
from lsp_server.transport import frame

if TYPE_CHECKING:
    from cattrs import Converter

    from lsp_server.transport import Writer

logger = logging.getLogger(__name__)

MsgId = int | str
Handler = Callable[[Any], Any]  # takes structured parameters; returns the result or an awaitable of it

_LONGEST_MESSAGE = 300  # characters of an error message
_ESCAPED = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8, as `surrogateescape` decodes them


class InvalidParamsError(Exception):
    """Raised by a handler whose parameters make no sense. The text goes to the client."""


def _read_json(body: bytes) -> Any:
    """Raises ValueError or RecursionError.

    An editor may send the text of a file that is not UTF-8 with the bytes that are in it. Each counts as one character
    in its columns, and so does what takes its place.
    """
    try:
        return json.loads(body)
    except UnicodeDecodeError:
        return json.loads(_ESCAPED.sub("\ufffd", body.decode("utf-8", "surrogateescape")))


def _make_converter() -> Converter:
    """Return pygls' converter, lenient where older clients differ from the specification."""
    result: Converter = default_converter()  # type: ignore[no-untyped-call]

    def trigger(value: Any, _: Any) -> types.InlineCompletionTriggerKind:
        # Drafts before 3.18 counted from 0: 0 was Invoked.
        if value in (0, types.InlineCompletionTriggerKind.Invoked):
            return types.InlineCompletionTriggerKind.Invoked
        return types.InlineCompletionTriggerKind.Automatic

    def text(value: Any, _: Any) -> str:
        if not isinstance(value, str):
            raise TypeError
        return value

    def integer(value: Any, _: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise TypeError
        return int(value)  # 1.0 is an integer of JSON

    result.register_structure_hook(types.InlineCompletionTriggerKind, trigger)
    # cattrs would make text of anything, and an integer of "3", true and 1.5.
    result.register_structure_hook(str, text)
    result.register_structure_hook(int, integer)
    result.register_structure_hook(types.LanguageKind | str, text)
    return result


class Protocol(LanguageServerProtocol):
    """Dispatches messages to `requests` and `notifications`, which are filled by the features."""

    requests: dict[str, Handler]
    notifications: dict[str, Handler]

    def __init__(self, server: Any, converter: None) -> None:
        self.requests = {}
        self.notifications = {}
        self.initialized = False  # `initialize` was answered
        self.shut_down = False
        self.message_id: MsgId = 0  # of the request being handled
        self.received = 0.0  # when the message being handled came, seconds of time.perf_counter
        self.on_initialized: Callable[[], None] = lambda: None  # right after `initialize` was answered
        self.on_bad_notification: Callable[[str, Any], None] = lambda method, params: None
        self._running: dict[MsgId, asyncio.Future[Any]] = {}
        self._complained: set[str] = set()  # methods whose bad notifications were logged
        self._json = json.JSONEncoder(separators=(",", ":"), default=self._plain)
        super().__init__(server, converter)  # type: ignore[arg-type]
        del self._converter  # the property below takes its place

    @cached_property
    def _converter(self) -> Converter:  # type: ignore[override]
        """Made when it is first needed, which is after `initialize` was answered: it takes 20 ms to make."""
        return _make_converter()

    def _register_builtin_features(self) -> None:
        """Register none: pygls would keep a second, wrong and slow copy of every document."""

    # Incoming ---------------------------------------------------------------------------------------------------------

    def receive(self, body: bytes, moment: float | None = None) -> None:
        """Handle one message, which was read at `moment` (seconds of time.perf_counter). Never raises."""
        self.received = time.perf_counter() if moment is None else moment
        try:
            message = _read_json(body)
        except (ValueError, RecursionError) as error:
            logger.warning("not JSON: %s", type(error).__name__)
            self._fail(None, types.ErrorCodes.ParseError, "not JSON")
            return
        if not isinstance(message, dict):
            self._fail(None, types.ErrorCodes.InvalidRequest, "not an object; batches are not part of LSP")
            return
        method = message.get("method")
        if isinstance(method, str) and "id" not in message:
            self._on_notification(method, message.get("params"))
        elif isinstance(method, str) and _is_id(message["id"]):
            self._on_request(message["id"], method, message.get("params"))
        elif method is None and ("result" in message or "error" in message):
            self._on_response(message)
        else:
            msg_id = message.get("id")
            self._fail(msg_id if _is_id(msg_id) else None, types.ErrorCodes.InvalidRequest, "no request")

    def _on_request(self, msg_id: MsgId, method: str, params: Any) -> None:
        if msg_id in self._running:
            self._fail(msg_id, types.ErrorCodes.InvalidRequest, "a request with this id is still unanswered")
        elif self.shut_down:
            self._fail(msg_id, types.ErrorCodes.InvalidRequest, "the server was shut down")
        elif not self.initialized and method != types.INITIALIZE:
            self._fail(msg_id, types.ErrorCodes.ServerNotInitialized, "initialize comes first")
        elif (handler := self.requests.get(method)) is None:
            self._fail(msg_id, types.ErrorCodes.MethodNotFound, f"unknown method {method[:80]}")
        else:
            try:
                self.message_id = msg_id
                result = handler(self._structured(method, params))
            except Exception as error:  # noqa: BLE001 - whatever it is, the request gets its answer
                self._fail_with(msg_id, method, error)
                return
            if isinstance(result, Awaitable):
                future = asyncio.ensure_future(result)
                self._running[msg_id] = future
                future.add_done_callback(lambda done: self._on_done(msg_id, method, done))
            else:
                self._answer(msg_id, result)
                if method == types.INITIALIZE:
                    self.initialized = True
                    self.on_initialized()

    def answer(self, msg_id: MsgId, result: Any) -> None:
        """Answer a running request from within its own task: no turn of the loop later, and before anything else."""
        if msg_id in self._running:
            self._answer(msg_id, result)
            del self._running[msg_id]

    def _on_done(self, msg_id: MsgId, method: str, future: asyncio.Future[Any]) -> None:
        if self._running.get(msg_id) is not future:
            if not future.cancelled():
                future.exception()  # the request was answered when it was cancelled; mark what came later as seen
            return
        del self._running[msg_id]
        if future.cancelled():
            self._fail(msg_id, types.LSPErrorCodes.RequestCancelled, "cancelled")
        elif (error := future.exception()) is not None:
            self._fail_with(msg_id, method, error)
        else:
            self._answer(msg_id, future.result())

    def _on_notification(self, method: str, params: Any) -> None:
        if method == types.CANCEL_REQUEST:
            msg_id = params.get("id") if isinstance(params, dict) else None
            if _is_id(msg_id):
                self._cancel(msg_id)
            return
        handler = self.notifications.get(method)
        if handler is None or not (self.initialized or method == types.EXIT):
            logger.debug("ignored notification %s", method)
            return
        try:
            result = handler(self._structured(method, params))
        except InvalidParamsError as error:
            if method not in self._complained:
                self._complained.add(method)
                logger.warning("notifications %s that make no sense are ignored, first: %s", method, error)
            self.on_bad_notification(method, params)
        except Exception:
            logger.exception("bug while handling %s", method)
        else:
            if isinstance(result, Awaitable):
                asyncio.ensure_future(result).add_done_callback(lambda done: _log_bug(method, done))

    def _on_response(self, message: dict[str, Any]) -> None:
        msg_id = message.get("id")
        if not _is_id(msg_id):
            logger.warning("the client could not read a message of ours")
            return
        future = self._request_futures.pop(msg_id, None)
        response_type = self._result_types.pop(msg_id, None)
        if future is None or not future.set_running_or_notify_cancel():
            logger.debug("response to no request of ours")
            return
        try:
            if isinstance(error := message.get("error"), dict):
                structured = types.ResponseError(int(error.get("code", 0)), str(error.get("message", "")))
                future.set_exception(JsonRpcException.from_error(structured))
            elif response_type is None:
                future.set_result(message.get("result"))
            else:
                future.set_result(self._converter.structure(message, response_type).result)
        except Exception as error:  # noqa: BLE001 - the client's answer is unusable: its waiter is told
            future.set_exception(InvalidParamsError(_short(error)))

    def _cancel(self, msg_id: MsgId) -> None:
        """Answer at once; the work may need a moment more to stop."""
        future = self._running.pop(msg_id, None)
        if future is None:
            logger.debug("cancel for no running request")
            return
        future.cancel()
        self._fail(msg_id, types.LSPErrorCodes.RequestCancelled, "cancelled")

    def cancel_all(self) -> None:
        """Cancel and answer every running request."""
        for msg_id in list(self._running):
            self._cancel(msg_id)

    def _structured(self, method: str, params: Any) -> Any:
        """Return the parameters as the type of the method; as they are for methods outside the specification.

        `initialize` is not structured: that costs more than answering it, and a capability we do not use may be odd.
        """
        quick = read(method, params)
        if quick is not None:
            return quick
        params_type: Any = types.METHOD_TO_TYPES[method][2] if method in types.METHOD_TO_TYPES else None
        if params_type is None or method == types.INITIALIZE:
            return params
        if method == types.TEXT_DOCUMENT_INLINE_COMPLETION and isinstance(params, dict) and not params.get("context"):
            params = {**params, "context": {"triggerKind": types.InlineCompletionTriggerKind.Automatic}}
        try:
            return self._converter.structure(params, params_type)
        except Exception as error:
            raise InvalidParamsError(_short(error)) from error

    # Outgoing ---------------------------------------------------------------------------------------------------------

    def _answer(self, msg_id: MsgId, result: Any) -> None:
        self._send_data({"jsonrpc": "2.0", "id": msg_id, "result": result})

    def _fail_with(self, msg_id: MsgId, method: str, error: BaseException) -> None:
        if isinstance(error, InvalidParamsError):
            self._fail(msg_id, types.ErrorCodes.InvalidParams, f"{method}: {error}")
        elif isinstance(error, JsonRpcException):
            self._fail(msg_id, error.code, error.message)
        else:
            logger.error("bug while handling %s", method, exc_info=error)
            self._fail(msg_id, types.ErrorCodes.InternalError, f"{method}: internal error, see the log")

    def _fail(self, msg_id: MsgId | None, code: int, message: str) -> None:
        error = {"code": int(code), "message": message[:_LONGEST_MESSAGE]}
        self._send_data({"jsonrpc": "2.0", "id": msg_id, "error": error})

    def _send_data(self, data: Any) -> None:
        """Send a message (a dict of ours or a message object of lsprotocol). pygls' own logs what it sends."""
        writer: Writer | None = self.writer  # type: ignore[assignment]
        if writer is None:
            return
        writer.write(frame(self._json.encode(data).encode("ascii")))

    def _plain(self, value: Any) -> Any:
        if attrs.has(type(value)):
            return self._converter.unstructure(value)
        raise TypeError(f"{type(value).__name__} cannot be sent")

    def send_request(
        self,
        method: str,
        params: Any | None = None,
        callback: Callable[[Any], None] | None = None,
        msg_id: MsgId | None = None,
    ) -> Future[Any]:
        """Send a request of ours; see pygls. Nothing is sent once the server was shut down."""
        if self.shut_down:
            done: Future[Any] = Future()
            done.cancel()
            return done
        return super().send_request(method, params, callback, msg_id)


def _is_id(value: Any) -> TypeGuard[MsgId]:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _short(error: Exception) -> str:
    """Say what was wrong and where, never the value itself."""
    if isinstance(error, BaseValidationError):
        return "; ".join(transform_error(error, format_exception=_reason))[:_LONGEST_MESSAGE]
    return type(error).__name__


def _reason(error: BaseException, _: type | None) -> str:
    return "missing" if isinstance(error, KeyError) else "not allowed"


def _log_bug(method: str, future: asyncio.Future[Any]) -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        logger.error("bug while handling %s", method, exc_info=error)
