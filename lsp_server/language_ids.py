"""Which language a file is in, by its name, where no editor says so. Data only; ids are those of LSP."""

from __future__ import annotations

from pathlib import PurePath

_SUFFIXES = {
    "bat": "bat cmd",
    "c": "c h",
    "clojure": "clj cljs cljc",
    "cpp": "cpp cc cxx hpp hh hxx",
    "csharp": "cs",
    "css": "css",
    "dart": "dart",
    "elixir": "ex exs",
    "erlang": "erl hrl",
    "fsharp": "fs fsi fsx",
    "go": "go",
    "haskell": "hs",
    "html": "html htm",
    "ini": "ini cfg",
    "java": "java",
    "javascript": "js mjs cjs",
    "javascriptreact": "jsx",
    "json": "json",
    "julia": "jl",
    "kotlin": "kt kts",
    "latex": "tex",
    "lua": "lua",
    "markdown": "md",
    "nix": "nix",
    "objective-c": "m",
    "ocaml": "ml mli",
    "perl": "pl pm",
    "php": "php",
    "powershell": "ps1 psm1",
    "python": "py pyi pyw",
    "r": "r",
    "ruby": "rb",
    "rust": "rs",
    "scala": "scala sc",
    "scss": "scss",
    "shellscript": "sh bash zsh",
    "sql": "sql",
    "swift": "swift",
    "toml": "toml",
    "typescript": "ts mts cts",
    "typescriptreact": "tsx",
    "vb": "vb",
    "vue": "vue",
    "xml": "xml svg",
    "yaml": "yaml yml",
    "zig": "zig",
}
_BY_SUFFIX = {f".{suffix}": language for language, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
_BY_NAME = {"dockerfile": "dockerfile", "makefile": "makefile", "cmakelists.txt": "cmake", "gemfile": "ruby"}


def language_id(name: str) -> str:
    """The LSP language id; "plaintext" if unknown."""
    path = PurePath(name)
    return _BY_NAME.get(path.name.lower()) or _BY_SUFFIX.get(path.suffix.lower(), "plaintext")
