"""Files and places where nobody waits for a suggestion: no model is asked there unless the user asks for it.

Generated and minified files, lock files, sentences. Must not know the model.
"""

from __future__ import annotations

import re
from functools import lru_cache

from completion.types import CompletionContext, Reason, Window

# Code points of a file that tell whether it is written by hand.
_HEAD = 2000
_MARK = r"^[ \t]*(?:#|//|/?\*+|--|;+|%|<!--|@)"
_GENERATED = re.compile(
    rf"{_MARK}.*(?:@generated\b|(?-i:\bDO NOT (?:EDIT|MODIFY)\b)|\bmade by GNU Bison\b"
    r"|\bauto(?:matically)?[- ]?generated (?:by|from|code|file)\b)"
    rf"|{_MARK}\W*(?:this (?:file|code) (?:is|was|has been) )?(?:code |file )?generated (?:by|from|with|using|code)\b"
    r"|^[ \t]*@(?:[\w.]+\.)?Generated\(",
    re.I | re.M,
)
_GENERATED_NAMES = re.compile(
    r"(?:.*/)?(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|go\.sum|.*[.-]min\.(?:js|css)"
    r"|.+\.(?:lock|snap|(?:js|css)\.map))",
    re.I,
)
# A line this long with hardly a blank is written by a tool: code points, and the share of white space.
_LONG, _BLANKS = 300, 0.1

# Files of sentences. In "plaintext" may be anything: there the line must read as a sentence.
_DOCUMENTS = frozenset({"markdown", "restructuredtext", "asciidoc", "latex", "tex", "git-commit"})
_FENCE = re.compile(r"^[ \t>]*(?:```|~~~|-{4,}$)", re.M)
_FENCED = frozenset({"markdown", "asciidoc"})
_MARKUP = re.compile(r"[`$\\|{}<>=;_\[\]]|^\s*(?:#!|//)|https?:")
_WORDS = re.compile(r"(?:[^\W\d_][\w'’-]*[,.;:!?)\"”]*\s+){3}")


def unwanted(context: CompletionContext, window: Window) -> Reason | None:
    """Why an automatic request for `window` is not worth an answer."""
    document, lead = context.document, window.lead
    if _by_a_tool(document.path or "", document.text.slice(0, _HEAD)) or _minified(lead + window.rest):
        return Reason.GENERATED
    if document.language_id in _DOCUMENTS or document.language_id == "plaintext":
        return Reason.PROSE if _prose(window, document.language_id) else None
    return None


@lru_cache(maxsize=128)
def _by_a_tool(path: str, head: str) -> bool:
    return bool(_GENERATED_NAMES.fullmatch(path) or _GENERATED.search(head))


def _minified(line: str) -> bool:
    return len(line) >= _LONG and sum(map(str.isspace, line)) < len(line) * _BLANKS


def _prose(window: Window, language: str) -> bool:
    """Whether sentences are written here, not code or markup."""
    lead = window.lead
    if language in _FENCED and len(_FENCE.findall(window.prefix)) % 2:
        return False
    if _MARKUP.search(lead):
        return False
    if language in _DOCUMENTS and (language != "restructuredtext" or not lead[:1].isspace()):
        return True
    line = lead if len(lead.split()) > 2 else _line_above(window)
    return bool(_WORDS.match(line.lstrip(" \t>*-") + " ")) and not _MARKUP.search(line)


def _line_above(window: Window) -> str:
    above = window.prefix[: len(window.prefix) - len(window.lead)].rstrip()
    return above[above.rfind("\n") + 1 :]
