"""Prints what the installed llama.cpp was built for, as one line of JSON. A program of its own: see `llama_build`.

Loading the library starts its GPU drivers, which may take seconds or fail.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any

_CPU = 0  # GGML_BACKEND_DEVICE_TYPE_CPU


def describe() -> dict[str, Any]:
    """Raises ImportError, OSError, RuntimeError: llama.cpp is not there or cannot be loaded."""
    import llama_cpp
    from llama_cpp import llama_cpp as api

    quiet = api.llama_log_callback(lambda level, text, data: None)
    api.llama_log_set(quiet, ctypes.c_void_p(0))
    api.llama_backend_init()
    return {
        "version": llama_cpp.__version__,
        "system": api.llama_print_system_info().decode("utf-8", "replace"),
        "gpu": bool(api.llama_supports_gpu_offload()),
        "devices": _devices(),
    }


def _devices() -> list[dict[str, Any]]:
    """GPUs as ggml sees them. The Python package does not bind these functions; older builds do not have them."""
    try:
        from llama_cpp import _ggml

        library = _ggml.libggml
        count, get = library.ggml_backend_dev_count, library.ggml_backend_dev_get
        name, description = library.ggml_backend_dev_name, library.ggml_backend_dev_description
        kind, memory = library.ggml_backend_dev_type, library.ggml_backend_dev_memory
    except (ImportError, AttributeError):
        return []
    count.restype, get.restype, get.argtypes = ctypes.c_size_t, ctypes.c_void_p, [ctypes.c_size_t]
    for function in (name, description):
        function.restype, function.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
    kind.argtypes = [ctypes.c_void_p]
    memory.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)]
    found = []
    for device in map(get, range(count())):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        memory(device, ctypes.byref(free), ctypes.byref(total))
        if kind(device) != _CPU:
            names = [(text or b"").decode("utf-8", "replace") for text in (name(device), description(device))]
            found.append({"name": names[0], "description": names[1], "memory": total.value})
    return found


def main() -> None:
    sys.stdout.write(json.dumps(describe()) + "\n")
