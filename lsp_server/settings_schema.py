"""Every setting as data: its kind, its range, what it is for. Knows nothing of where values come from.

A new setting is a field in the `settings.py` of its package and a row here; `docs/configuration.md` is made from them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

Kind = Literal["bool", "int", "float", "str", "path", "url", "env", "choice", "strings", "names", "headers", "json"]


class Refused(Exception):  # noqa: N818 - not an error of the program
    """A value is not allowed. The message says what is."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What one setting takes. `low` and `high` are inclusive and in the setting's own unit."""

    kind: Kind
    help: str
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()  # of a "choice", or of each entry of "strings"; empty: any text
    secret: bool = False  # what stands there is never shown: users paste keys into the wrong field

    @property
    def allowed(self) -> str:
        """What is allowed, as the end of a sentence."""
        one_of = ", ".join(f'"{choice}"' for choice in self.choices)
        match self.kind:
            case "int":
                return f"a whole number from {_number(self.low)} to {_number(self.high)}"
            case "float":
                return f"a number from {_number(self.low)} to {_number(self.high)}"
            case "choice":
                return f"one of {one_of}"
            case "strings":
                return f"a list of {one_of}" if one_of else "a list of texts"
            case _:
                return _ALLOWED[self.kind]

    def check(self, value: object) -> Any:
        """Return the value as the dataclasses hold it. Raises Refused."""
        checked = _CHECKS[self.kind](self, value)
        if checked is None:
            raise Refused(self.allowed)
        return checked


_ALLOWED: Mapping[str, str] = {
    "bool": "true or false",
    "str": "a text",
    "path": "the path of a file",
    "url": "a URL beginning with http:// or https://",
    "env": "the name of an environment variable (letters, digits, underscores)",
    "names": "a name or a list of names",
    "headers": "a table of texts without line breaks",
    "json": "a table",
}
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _bool(_rule: Rule, value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _int(rule: Rule, value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():  # some clients have one number type only
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if rule.low <= value <= rule.high else None


def _float(rule: Rule, value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if rule.low <= value <= rule.high else None  # false for nan


def _text(_rule: Rule, value: object) -> str | None:
    return value if isinstance(value, str) and not _CONTROL.search(value) else None


def _url(_rule: Rule, value: object) -> str | None:
    if not isinstance(value, str) or _CONTROL.search(value):
        return None
    if not value:  # not set
        return value
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return value if good else None


def _env(_rule: Rule, value: object) -> str | None:
    return value if isinstance(value, str) and re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*)?", value) else None


def _choice(rule: Rule, value: object) -> str | None:
    return value if isinstance(value, str) and value in rule.choices else None


def _strings(rule: Rule, value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list | tuple):
        return None
    for item in value:
        if not isinstance(item, str) or (rule.choices and item not in rule.choices):
            return None
    return tuple(value)


def _names(_rule: Rule, value: object) -> tuple[str, ...] | None:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        return None
    texts = [name for name in names if isinstance(name, str) and not _CONTROL.search(name)]
    return tuple(dict.fromkeys(filter(None, texts))) if len(texts) == len(names) else None


def _headers(_rule: Rule, value: object) -> dict[str, str] | None:
    if not isinstance(value, Mapping):
        return None
    for name, text in value.items():
        if not isinstance(text, str) or _CONTROL.search(text) or not _HEADER_NAME.fullmatch(name):
            return None
        if is_secret(name):
            raise Refused(USE_KEY_ENV)
    return dict(value)


def _json(_rule: Rule, value: object) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    if any(is_secret(name) for name in value):
        raise Refused(USE_KEY_ENV)
    try:
        json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError):  # dates, nan, too deep
        raise Refused("a table of what JSON can hold") from None
    return dict(value)


_CHECKS: Mapping[str, Any] = {
    "bool": _bool,
    "int": _int,
    "float": _float,
    "str": _text,
    "path": _text,
    "url": _url,
    "env": _env,
    "choice": _choice,
    "strings": _strings,
    "names": _names,
    "headers": _headers,
    "json": _json,
}

USE_KEY_ENV = "a key does not belong in settings: use key_env or key_command, which say where to find it"
_SECRET = re.compile(
    r"key|token|bearer|secret|.*(apikey|accesskey|secretkey|(access|auth|bearer|api)token|clientsecret|passwo?r?d|passphrase|"
    r"authorization|credentials?)"
)


def is_secret(name: str) -> bool:
    """Whether a key of this name looks as if its value were a secret ("api_key", "X-API-Key", "token")."""
    return _SECRET.fullmatch(re.sub(r"[^a-z0-9]", "", name.lower())) is not None


COMPLETION: Mapping[str, Rule] = {
    "enabled": Rule("bool", "Whether anything is suggested"),
    "max_tokens": Rule("int", "Length of a suggestion, tokens", 1, 2048),
    "temperature": Rule("float", "0 takes the likeliest token each time", 0, 2),
    "debounce_ms": Rule("int", "Quiet time before an automatic request is sent, ms", 0, 5000),
    "multiline": Rule(
        "choice", "Suggestions of several lines: where they fit, always, never", choices=("auto", "always", "never")
    ),
    "prompt_tokens": Rule("int", "Budget of the whole prompt, tokens", 64, 32768),
    "max_lines": Rule("int", "Longer suggestions are cut, lines", 1, 500),
    "time_budget_ms": Rule("int", "After so long a suggestion ends with its last whole line, ms; 0: never", 0, 60_000),
    "cache_entries": Rule("int", "Answers kept for typing the same again", 0, 10000),
    "max_candidates": Rule("int", "Different suggestions to choose from where you ask by hand", 1, 8),
    "join": Rule("bool", "A running request goes on while you type what it writes"),
    "adaptive_debounce": Rule(
        "bool", "`debounce_ms` is adapted to how you type, where the cursor is and how long the model takes"
    ),
    "speculate": Rule(
        "choice",
        "While one is shown, the next suggestion is prepared: never, by models on this machine, or always (it costs)",
        choices=("never", "local", "always"),
    ),
    "learning": Rule(
        "bool", "Where you keep rejecting suggestions, they come later and rarer; kept on this machine alone"
    ),
}
CONTEXT: Mapping[str, Rule] = {
    "sources": Rule(
        "strings",
        "What is shown beside the text around the cursor: see below",
        choices=("header", "imports", "recent_edits", "similar", "open_files"),
    ),
    "suffix_share": Rule("float", "Part of `prompt_tokens` for the text after the cursor", 0, 0.5),
    "extra_share": Rule("float", "Part of `prompt_tokens` for other files", 0, 0.4),
}
PRIVACY: Mapping[str, Rule] = {
    "ignore": Rule("strings", "Files never sent to a model, as patterns, beside the built-in ones"),
    "ignore_files": Rule("strings", "Names of files of such patterns, read as git reads its own"),
    "redact": Rule("bool", "Stand-ins take the place of secrets in prompts that leave this machine"),
    "allow_remote": Rule("bool", "`false`: only models on this machine are used"),
    "local_only": Rule("strings", "Files and folders, as patterns, that only models on this machine may see"),
}
BACKEND: Mapping[str, Rule] = {
    "kind": Rule("str", "What speaks to the model: `ffm`, `llama-cpp` or another installed kind. Required"),
    "url": Rule(
        "url",
        "Base address of the service; empty: the usual one of `llama-server`, `ollama`, `mistral`, `deepseek`, `tabby`",
    ),
    "model": Rule(
        "str",
        "The model's name as the service knows it; `llama-cpp`: [a name, a file of a hub or a path](models.md), empty:"
        " the embedded model",
    ),
    "key_env": Rule("env", "Environment variable that holds the key", secret=True),
    "key_command": Rule("strings", 'Command that prints the key, such as `["pass", "ffm"]`', secret=True),
    "family": Rule("str", "Prompt family of the model; empty: guessed from its name"),
    "mode": Rule(
        "choice",
        "How `openai`, `qianfan` (`suffix`, `template`, `chat`) and `xinference` (`code`, `template`, `chat`) ask;"
        " empty: found out",
        choices=("", "suffix", "template", "chat", "code"),
    ),
    "timeout_s": Rule("float", "Deadline of one request, s; 60 for `llama-cpp` if not set", 0.1, 600),
    "connect_timeout_s": Rule("float", "Deadline of connecting, s", 0.1, 60),
    "first_token_timeout_s": Rule("float", "Deadline of the first text, s; 0: only `timeout_s` counts", 0, 600),
    "ca_file": Rule("path", "Certificates to trust instead of the system's (PEM)"),
    "client_cert": Rule("path", "Certificate that shows the service who asks (PEM; may hold its key, too)"),
    "client_key": Rule("path", "Private key of `client_cert` (PEM, without a passphrase)"),
    "proxy": Rule("url", "HTTP proxy"),
    "headers": Rule("headers", "Headers sent with each request; never a key", secret=True),
    "parameters": Rule("json", "Passed to the service as they are", secret=True),
    "api": Rule("choice", "`qianfan`: version of the API; empty: v2", choices=("", "v1", "v2")),
    "access_key_env": Rule("env", "`qianfan`: environment variable that holds the IAM access key", secret=True),
    "secret_key_env": Rule(
        "env",
        "`qianfan`: environment variable that holds the secret key beside `access_key_env` or `key_env`",
        secret=True,
    ),
    "app_id": Rule("str", "`qianfan`, v2: the application that is billed"),
    "endpoint": Rule("str", "`qianfan`, v1: end of the model's address, such as `chat/ernie_speed`"),
    "model_path": Rule("path", "`llama-cpp`: a GGUF file, in place of `model`"),
    "context_tokens": Rule("int", "`llama-cpp`: prompt and answer together, tokens", 256, 1048576),
    "threads": Rule("int", "`llama-cpp`: 0 means one per physical core", 0, 256),
    "gpu_layers": Rule("int", "`llama-cpp`: layers on the GPU, -1 for all, -2 for as many as fit", -2, 1000),
    "kv_type": Rule(
        "choice",
        "`llama-cpp`: numbers of the KV cache; `q8_0` takes half the memory of `f16`, `q4_0` a quarter, at some cost",
        choices=("f16", "q8_0", "q4_0"),
    ),
    "idle_unload_s": Rule("float", "`llama-cpp`: s without requests until the model is unloaded; 0: never", 0, 604800),
}

GATEWAY: Mapping[str, Rule] = {
    "aliases": Rule("strings", "Names requests may give the model, beside its own"),
    "running": Rule("int", "Requests put to the backends at the same time", 1, 256),
    "waiting": Rule("int", "Requests that wait for their turn; more are answered with 503", 0, 4096),
    "max_tokens": Rule("int", "Longest answer of one request, tokens", 1, 32768),
    "max_body_kb": Rule("int", "Largest body of a request, KiB", 1, 65536),
}

LANGUAGE: Mapping[str, Rule] = {**COMPLETION, "allow_remote": PRIVACY["allow_remote"]}

Table = Mapping[str, Rule]
TABLES: Mapping[str, Table] = {"completion": COMPLETION, "context": CONTEXT, "privacy": PRIVACY, "gateway": GATEWAY}
NAMED: Mapping[str, Table] = {"backends": BACKEND, "languages": LANGUAGE}  # tables whose names the user chooses
ROOT: Mapping[str, Rule] = {
    "backend": Rule("names", "The entry of `backends` that is used, or a list: the next one where one fails"),
    "hedge_ms": Rule("int", "The next of the list is asked, too, if no text came by then, ms; 0: never", 0, 60000),
}

IN_PROJECT = (
    "a project file may hold only languages, completion, context, privacy.ignore and privacy.allow_remote = false"
)


def in_project(path: tuple[str, ...]) -> bool:
    """Whether the untrusted `.midfill.toml` of a project may set this."""
    return path[0] in ("completion", "context", "languages") or path in (
        ("privacy", "ignore"),
        ("privacy", "allow_remote"),
    )


def shown(value: object) -> str:
    """A value for a message: short, one line, without what stands between `//` and `@` in a URL."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and abs(value) > 10**20:
        return "a huge number"
    text = re.sub(r"//[^/@\s]*@", "//…@", repr(value) if isinstance(value, str) else str(value))
    return text if len(text) <= 60 else text[:59] + "…"


def displayed(rule: Rule, value: object) -> str | None:
    """A value that was taken, for a report: as JSON, without what a URL may hold of a secret. None: not to be shown."""
    if rule.secret:
        return None
    text = re.sub(r"//[^/@\s\"]*@", "//…@", json.dumps(value, ensure_ascii=False))
    return re.sub(r"\?[^\"]*", "?…", text) if rule.kind == "url" else text


def snake(name: str) -> str:
    """debounceMs -> debounce_ms"""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: "_" + found[1].lower(), name)


def camel(name: str) -> str:
    """debounce_ms -> debounceMs"""
    return re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), name)
