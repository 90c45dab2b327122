"""What differs between programming languages. Data only."""

from __future__ import annotations

# Line comment mark by LSP language id; a pair where only block comments exist.
_HASH = (
    "python ruby shellscript perl perl6 r julia yaml toml makefile dockerfile elixir coffeescript powershell nix cmake"
    " graphql gdscript starlark tcl crystal nim fish dotenv properties ignore"
)
_DASHES = "lua sql haskell ada vhdl elm purescript"
_SEMICOLON = "clojure lisp scheme racket ini asm emacs-lisp elisp"
_PERCENT = "latex tex erlang matlab prolog bibtex"
_ANGLE = "html xml vue svelte markdown xsl"

COMMENT: dict[str, tuple[str, str]] = {
    **dict.fromkeys(_HASH.split(), ("# ", "")),
    **dict.fromkeys(_DASHES.split(), ("-- ", "")),
    **dict.fromkeys(_SEMICOLON.split(), ("; ", "")),
    **dict.fromkeys(_PERCENT.split(), ("% ", "")),
    **dict.fromkeys(_ANGLE.split(), ("<!-- ", " -->")),
    "vb": ("' ", ""),
    "vim": ('" ', ""),
    "viml": ('" ', ""),
    "css": ("/* ", " */"),
    "ocaml": ("(* ", " *)"),
    "bat": ("REM ", ""),
}


def comment_marks(language_id: str) -> tuple[str, str]:
    """What stands before and after a comment of one line. Unknown languages get `//`, which most of them use."""
    return COMMENT.get(language_id, ("// ", ""))


# Languages in which tags are code.
_TAGS = (
    "html xml vue svelte markdown xsl javascriptreact typescriptreact astro handlebars php erb jsx tsx razor plaintext"
)
MARKUP = frozenset(_TAGS.split())
