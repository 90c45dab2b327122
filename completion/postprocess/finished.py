"""Behind a finished line nobody waits for the next ones, nor for a comment on it: they come when the cursor is there.

Finished is what plainly is: a closed block, a statement with its `;`, an import, a `return`, a comment's last sentence,
and a line that has its next one right below, as deep. Unless asked for.
"""

from __future__ import annotations

import re

from completion.lines import bare, columns, opens
from completion.postprocess import brackets
from completion.postprocess.base import Around
from completion.types import Reason

_CLOSED = re.compile(r"[)\]}]+(?:\(\))?[;,]?|(?:end|fi|done|esac)[;,)]*|.*</[\w-]+>|.*\*/")
# A block on one line: what stands before its brace, without a value and with one; and blocks that a word ends.
_HEAD = re.compile(
    r".*(?:\)|=>|\b(?:else|try|finally|do|const|noexcept|override|throws [\w., ]+))\Z"
    r"|(?:[a-z]+(?:\([a-z]+\))?\s+)*(?:class|struct|enum|union|interface|impl|trait|namespace|mod|record)\b"
)
_KEYWORD = re.compile(
    r"(?:[a-z]+(?:\([a-z]+\))?\s+)*(?:fn|func|fun|function|if|for|while|switch|match|loop)\b"
    r"|(?:const|let|var) \w+ = .*=>\Z"
)
_VALUE = re.compile(r"(?<![=!<>])=(?![=>])")
_LONGEST = 300  # code points; a longer line is not read as one
_WORDED = re.compile(
    r"(?:def|class|module|function|local function|if|unless|for|while|until|case)\b.*\b(?:end|fi|done|esac)\Z"
)
_INDENTED = frozenset({"python", "yaml", "json", "jsonc", "markdown", "plaintext", "html", "toml"})
_STYLES = frozenset({"css", "scss", "less"})
_IMPORT = re.compile(
    r"(?:import|using|use|require|require_relative|#\s*include|package|from\s+\S+\s+import|export\s+\*\s+from)\b\s*[(\"'<\w*{]"
    r"|\"[\w./-]+\"\Z"
)
# Only where no `;` tells.
_JUMP = re.compile(r"(?:pass|break|continue|return|raise|throw|next|redo|retry)\b")
_SENTENCE = re.compile(r"\w[.!?]\Z")
# Beginnings of what goes on with the lines above.
_GOES_ON = re.compile(r"(?:else|elif|elsif|except|finally|catch|rescue|ensure|while|until|and|or)\b|[.?|&+%=>:,)\]}-]")
_OPEN_END = re.compile(r"(?:[\\,({\[=+*/%&|<.:-]|\b(?:and|or|not|in|is|do|then|else))\Z")


def drop(text: str, around: Around) -> str | Reason:
    window = around.window
    line = window.lead.strip()
    if not around.automatic or not line or window.rest.strip():
        return text
    first, _, below = text.partition("\n")
    if first.strip() and not _adds_little(first, line, around):
        return text
    if not first.strip() and _GOES_ON.match(below.lstrip()):
        return text
    return Reason.FINISHED if _finished(line, around) else text


def _adds_little(first: str, line: str, around: Around) -> bool:
    """Whether `first`, which stands behind `line`, is a comment on it, more of a finished one, or a mark."""
    language = around.language_id
    if bare(line, language) == "":
        return first[:1].isspace() and _SENTENCE.search(line) is not None
    return bare(f" {first}", language) == "" or (_IMPORT.match(line) is not None and first.strip() == ";")


def _finished(line: str, around: Around) -> bool:
    language = around.language_id
    code = bare(line, language)
    if not code:  # code may follow a comment, unless there is some
        below = around.window.suffix.partition("\n")[2]
        return bool(_SENTENCE.search(line)) and bool(below.partition("\n")[0].strip())
    if line.endswith("*/"):
        return bool(around.window.suffix.partition("\n")[2].partition("\n")[0].strip())
    if _OPEN_END.search(code) and not _CLOSED.fullmatch(code):
        return False
    if _CLOSED.fullmatch(code):
        return True
    if brackets.read(code).open:
        return False
    if _one_line_block(code, language):
        return True
    if code.endswith(";") or _IMPORT.match(code) or _JUMP.match(code):
        return True
    below = around.window.suffix.partition("\n")[2].partition("\n")[0]
    as_deep = below.strip() != "" and columns(below) == columns(around.window.lead)
    return as_deep and not opens(code, language) and not code.startswith("@")


def _one_line_block(code: str, language: str) -> bool:
    """Whether `code`, which leaves no bracket open, is a definition or a statement with its block: no value."""
    if language in _INDENTED or len(code) > _LONGEST:
        return False
    if _WORDED.match(code):
        return True
    if not code.endswith("}"):
        return False
    begin = next((begin for begin, end in brackets.read(code).pairs if end == len(code) - 1), 0)
    head = code[:begin].rstrip()
    if language in _STYLES:
        return head != "" and "{" not in head
    return bool(_KEYWORD.match(head)) or (_HEAD.match(head) is not None and not _VALUE.search(head))
