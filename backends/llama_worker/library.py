"""llama.cpp's shared library, loaded and quiet, and the flag that stops it. The one place that imports llama_cpp.

Knows nothing of models, prompts, answers or the protocol. Errors leave as `WorkerError`.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from backends.llama_worker.errors import WorkerError

_ERROR = 4  # GGML_LOG_LEVEL_ERROR


class AbortFlag:
    """One byte that llama.cpp reads before each graph node, and that another thread sets.

    The callback given to llama.cpp is the C library's `strlen` over this byte and a zero behind it: 0 (go on) or 1
    (abort). A Python callback costs the lock of the interpreter some 500 times a token.
    """

    def __init__(self) -> None:
        self._bytes = ctypes.create_string_buffer(2)

    @property
    def address(self) -> int:
        return ctypes.addressof(self._bytes)

    def set(self) -> None:
        self._bytes[0] = b"\1"

    def clear(self) -> None:
        self._bytes[0] = b"\0"

    def is_set(self) -> bool:
        return self._bytes[0] != b"\0"


def strlen() -> Any:
    if sys.platform == "win32":
        return ctypes.cdll.msvcrt.strlen
    return ctypes.CDLL(None).strlen


class Library:
    """llama.cpp, loaded and quiet: only errors go to stderr, and the first one is kept. Raises ImportError too."""

    def __init__(self) -> None:
        try:
            from llama_cpp import llama_cpp as bindings
        except (OSError, RuntimeError) as error:  # its shared library
            raise WorkerError("settings", f"llama.cpp cannot be loaded, reinstall llama-cpp-python: {error}") from error
        self.api: Any = bindings
        self._error = ""
        self._on_log = self.api.llama_log_callback(self._log)  # kept: llama.cpp holds only its address
        self.api.llama_log_set(self._on_log, ctypes.c_void_p(0))
        self.api.llama_backend_init()

    def _log(self, level: int, text: bytes, _data: object) -> None:
        if level == _ERROR:
            line = text.decode("utf-8", "replace").strip()
            self._error = self._error or line  # those after it only say that something failed
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    def reason(self) -> str:
        """What llama.cpp said went wrong since this was last asked."""
        reason, self._error = self._error, ""
        return reason or "no reason given"
