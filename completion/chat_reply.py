"""Steps that take the code out of a chat model's reply as it streams in. Must not know how the model was asked.

Like the steps of `stopping`, none depends on where the text is split into deltas: they decide by whole lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*(.*)")
_LANGUAGE = re.compile(r"[\w+#.:/-]*\s*")  # what may stand behind an opening fence; all else is code
_THINKING = re.compile(r"\s*<(?:think|thinking|thought|reasoning)>")
_THOUGHT = re.compile(r".*?</(?:think|thinking|thought|reasoning)>", re.S)

# How models begin to talk about their answer.
_OPENER = re.compile(
    r"here(?:['’]s| is| are) |(?:sure|certainly|of course|okay|ok|absolutely|great)[,.!:]"
    r"|(?:i['’]m|i am) (?:sorry|unable)|sorry[,.]|i (?:can(?:['’]t|not)|would|will|have) |i['’](?:ll|ve) "
    r"|the (?:missing|completed?|filled|following|answer)(?: \w+)? (?:is|are|code|text|lines?)\b"
    r"|to (?:complete|fill) |this (?:code|completes|fills) |(?:answer|output|code|solution):$",
    re.I,
)
# A sentence: a capital, two more words, an end. Code has brackets or signs in it, or begins with a small letter.
_SENTENCE = re.compile(r"[^\W\d_a-z][^\s(){}\[\]=;<>]*(?: (?:`[^`]*`|\(?[^\s(){}\[\]=;<>`]+\)?)){2,}[.:!]")

# Lines before the cursor looked at for a repetition; longer ones do not fit an answer.
_ECHOED_LINES = 40
# Less is repeated by chance. Characters without white space at the ends of lines.
_TELLING = 8
_WORD = re.compile(r"[^\W\d]\w{2,}\Z")

# Languages whose files hold sentences and fences of their own.
PROSE = frozenset({"markdown", "plaintext", "latex", "tex", "restructuredtext", "asciidoc", "git-commit", ""})


@dataclass(frozen=True, slots=True)
class Reply:
    """What is needed to read a reply: the mark of the hole, and the text before it as the model saw it."""

    marker: str  # empty: none was put there
    prefix: str
    prose: bool = False  # the file is made of sentences: one is no sign that the model talks


class TakeCode:
    """Lets only the code of a reply pass: no reasoning, no sentence before it, no fences. Ends with the code block.

    A reply that begins with neither a fence nor a sentence is code as it is. After a sentence all is held back until a
    fence comes; if none does, an announcement is left out, and what may be a comment or a docstring is kept.
    """

    def __init__(self, *, prose: bool = False) -> None:
        self._prose = prose
        self._held = ""
        self._talk: list[str] = []  # complete lines before the code, blank ones too
        self._thought = False  # the model's reasoning was left out, and only blank lines came since
        self._code = False
        self._fence = ""  # that opened the block; empty: none did
        self._line_begins = True
        self._newline = ""  # a line end that was not let pass yet: none belongs before the closing fence

    def feed(self, text: str, *, last: bool) -> tuple[str, bool]:
        self._held += text
        if not self._code:
            self._begin(last)
        return self._pass(last) if self._code else ("", False)

    def _begin(self, last: bool) -> None:
        """Take away what stands before the code."""
        while not self._code:
            talked = any(line.strip() for line in self._talk)
            if not talked and _THINKING.match(self._held):
                thought = _THOUGHT.match(self._held)
                if not thought and not last:
                    return
                self._held, self._thought = self._held[thought.end() :] if thought else "", True
                self._talk = []  # blank lines before it, if they came earlier
                if thought:
                    continue  # more of it may follow
            line, end, rest = self._held.partition("\n")
            if not end and not last:
                return
            if fence := _FENCE.match(line):
                self._open(fence, end + rest)
            elif line.strip() and not talked and not self._talks(line):
                self._held = "\n".join((*self._talk, self._held))
                self._code = True
            elif not end:
                self._talk.append(line)
                self._held, self._code = self._without_fence(), True
            else:
                # Reasoning may have begun in the prompt: then only its end is seen.
                thought = _THOUGHT.match(line)
                if thought:
                    self._talk, self._thought, rest = [], True, self._held[thought.end() :]
                elif talked or line.strip() or not self._thought:
                    self._talk.append(line)
                self._held = rest

    def _open(self, fence: re.Match[str], rest: str) -> None:
        self._code, (self._fence, info) = True, fence.groups()
        if _LANGUAGE.fullmatch(info):
            self._held = rest.removeprefix("\n")
        else:  # the code begins, and may end, beside the fence
            self._held = info.rstrip().removesuffix(self._fence) + (
                f"\n{self._fence}\n" if self._fence in info else rest
            )

    def _talks(self, line: str) -> bool:
        bare = line.strip().lstrip("*#>_ ").rstrip("*_ ")
        return not self._prose and bool(_OPENER.match(bare) or _SENTENCE.fullmatch(bare))

    def _without_fence(self) -> str:
        first = next((n for n, line in enumerate(self._talk) if line.strip()), 0)
        bare = self._talk[first].strip().strip("*")
        if self._prose or not _OPENER.match(bare):
            return "\n".join(self._talk)
        return "\n".join(self._talk[first + 1 :]).lstrip("\n") if bare.endswith(":") else ""

    def _pass(self, last: bool) -> tuple[str, bool]:
        passed: list[str] = []
        while True:
            line, end, rest = self._held.partition("\n")
            if self._line_begins:
                whole = bool(end) or last
                if whole and self._closes(line, cut=not end):
                    return "".join(passed), True
                if not whole and self._may_close(line):
                    break
                passed.append(self._newline)
                self._newline, self._line_begins = "", False
            passed.append(line)
            self._held = rest
            if not end:
                break
            self._newline, self._line_begins = "\n", True
        return "".join(passed), False

    def _closes(self, line: str, *, cut: bool) -> bool:
        """`cut`: the answer ends within the line."""
        bare = line.strip()
        if self._fence:
            return bool(bare) and not bare.strip(self._fence[0]) and (cut or len(bare) >= len(self._fence))
        return not self._prose and bool(_FENCE.match(line))

    def _may_close(self, line: str) -> bool:
        bare = line.strip()
        if self._fence:
            return not bare.strip(self._fence[0])
        return not self._prose and (not bare.strip("`") or not bare.strip("~") or bool(_FENCE.match(line)))


class DropEcho:
    """Takes off what the reply repeats of the text before the hole: whole lines, the hole's line, the word begun."""

    def __init__(self, prefix: str) -> None:
        self._candidates = tuple(_echoes(prefix))  # the longest first
        self._held = ""
        self._done = False

    def feed(self, text: str, *, last: bool) -> tuple[str, bool]:
        if self._done:
            return text, False
        self._held += text
        for lines, lead in self._candidates:
            length = _echoed(self._held, lines, lead)
            if length is None:
                if last:
                    continue
                return "", False
            if length:
                self._held = self._held[length:]
                break
        self._done = True
        return self._held, False


def _echoes(prefix: str) -> Iterator[tuple[tuple[str, ...], str]]:
    *before, lead = prefix.split("\n")
    lead = lead.lstrip()
    lines = tuple(line.strip() for line in before if line.strip())[-_ECHOED_LINES:]
    for first in range(len(lines)):
        if lead or sum(map(len, lines[first:])) >= _TELLING:
            yield lines[first:], lead
    if any(character.isalnum() for character in lead) or lead[-1:].isspace():
        yield (), lead
    if word := _WORD.search(lead):
        yield (), word[0]


def _echoed(text: str, lines: tuple[str, ...], lead: str) -> int | None:
    """How much of `text` repeats `lines` and then `lead`; 0 if it does not, None if more must come to tell."""
    at = 0
    for line in lines:
        found = ""
        while not found:
            end = text.find("\n", at)
            found = text[at : end if end >= 0 else None].strip()
            if end < 0:
                return None if line.startswith(found) else 0
            at = end + 1
        if found != line:
            return 0
    rest = text[at:].lstrip() if lead else text[at:]
    if rest.startswith(lead):
        return len(text) - len(rest) + len(lead)
    return None if lead.startswith(rest) else 0
