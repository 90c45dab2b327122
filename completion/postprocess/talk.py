"""Sentences where a statement was wanted: the model talks. Comments, strings and files of sentences may hold some."""

from __future__ import annotations

import re

from completion.languages import MARKUP
from completion.lines import bare
from completion.postprocess import closers
from completion.postprocess.base import Around
from completion.types import Reason

# A capital, words, an end; signs of code stand in none.
_SENTENCE = re.compile(r"[^\W\d_a-z][\w'’-]*(?:,? (?:`[^`\n]*`|\(?[\w'’/-]+(?:\.\w+)*\)?)){4,}[.!?:]")
# Files whose lines may be sentences.
_WORDY = MARKUP | frozenset(
    ("latex", "tex", "restructuredtext", "asciidoc", "git-commit", "yaml", "toml", "ini", "properties", "gherkin", "")
)
# Languages in which words may follow a command without quotes.
_COMMANDS = frozenset(("shellscript", "bat", "fish", "powershell", "makefile", "dockerfile", "sql"))
_TRIPLE = re.compile(r'"""|\'\'\'')
_BLOCK_COMMENTS = (
    ("/*", "*/"),
    ("--[[", "]]"),
    ("{-", "-}"),
    ("(*", "*)"),
    ("=begin", "=end"),
    ("#|", "|#"),
    ("<#", "#>"),
)


def drop(text: str, around: Around) -> str | Reason:
    lead, prefix = around.window.lead, around.window.prefix
    if around.language_id in _WORDY or (lead.strip() and not _code(lead, around.language_id)):
        return text
    first = text.lstrip()
    if not _SENTENCE.match(first.partition("\n")[0]) or _in_words(prefix):
        return text
    return Reason.TALK


def _code(lead: str, language_id: str) -> bool:
    """Whether a value or the rest of a statement is wanted, and no words are."""
    if language_id in _COMMANDS or bare(lead, language_id) != lead.strip() or lead.lstrip()[:1] in "*#/-":
        return False
    return not any(lead[at] in "\"'`" for at in closers.scan(lead).open)


def _in_words(prefix: str) -> bool:
    """Whether a comment or a text of several lines is open."""
    if len(_TRIPLE.findall(prefix)) % 2 or prefix.count("`") % 2:
        return True
    return any(prefix.rfind(opening) > prefix.rfind(closing) for opening, closing in _BLOCK_COMMENTS)
