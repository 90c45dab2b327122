"""Before text on the same line only what leads into it is shown: words beside words would be one broken statement.

Where nothing but white space stands before the cursor, the model may have written whole lines: then their line end and
the indentation of what follows are kept. Must not know the model; only whether it saw what follows.
"""

from __future__ import annotations

import re

from completion.lines import bare, columns, opens
from completion.postprocess import brackets, closers, suffix_overlap
from completion.postprocess.base import Around
from completion.types import Reason

# Ends of an answer that need something to follow.
_LEADS_IN = tuple("=+-*/%<>&|^!~?.,([@$")
# Beginnings of what goes on with a statement: no lines fit before these.
_INFIX = "=+%&|^?:,.)];>"
_WORDS = re.compile(r"[\w\s]*\s\Z")
_PYTHON_STATEMENT = re.compile(
    r"@|(?:assert|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|nonlocal|pass|raise"
    r"|return|try|while|with)\b"
)
_PYTHON_TARGET = re.compile(r"[\w.\[\]'\", ]+?(?::|(?:[-+%&|^@]|\*\*?|//?|<<|>>)?=(?!=))")
_STRING_PREFIX = re.compile(r"[a-zA-Z]{1,2}")
_WORD = re.compile(r"\w+")

# A statement that goes on after the line's end; `,` is told from the line above.
_GOES_ON = re.compile(r"(?:[\\=*|&.]|(?<!\+)\+|(?<!-)-|\b(?:and|or|not|in|is|await|import|from|as))\Z")
# Lines that belong to the block above them: nothing fits between.
_CONTINUES = re.compile(r"[)\]]|(?:else|elif|elsif|except|finally|catch|rescue|ensure)\b")
_DECORATED = re.compile(r"(?:class|def|async)\b|@")
_TRIPLE = re.compile(r'"""|\'\'\'')


def meets(text: str, around: Around) -> str | Reason:
    """An answer of a model that did not see what follows is shown unasked only if it arrives there by itself."""
    if not (around.blind and around.automatic and _words_follow(around)):
        return text
    return text if suffix_overlap.cut(text, around) != text else Reason.MID_LINE


def fit(text: str, around: Around) -> str | Reason:
    if not _words_follow(around):
        return text
    content, lead = text.rstrip(), around.window.lead
    ended = "\n" in text[len(content) :]
    if not whole_lines_wanted(around):
        if closers.closes_too_much(text, around):
            return Reason.MID_LINE
        return text if _joins(content if ended else text, around) else Reason.MID_LINE
    if ended:
        return f"{content}\n{lead}" if _whole_lines(content, around) else Reason.MID_LINE
    return text if _leads_in(text, around) else Reason.MID_LINE


def whole_lines_wanted(around: Around) -> bool:
    """Whether whole lines may be put before the cursor's line: a statement follows, and nothing stands before."""
    rest = around.window.rest
    return not around.window.lead.strip() and any(map(_is_word, rest)) and rest.lstrip()[0] not in _INFIX


def _words_follow(around: Around) -> bool:
    """A comment alone stays what it is, whatever is written before it behind other code."""
    window = around.window
    if not any(map(_is_word, window.rest)):
        return False
    return not window.lead.strip() or bare(window.rest, around.language_id) != ""


def _joins(text: str, around: Around) -> bool:
    """Whether `text` and the rest of the line can be neighbours."""
    last, first = text[-1:], around.window.rest[0]
    line = text[text.rfind("\n") + 1 :]
    if bare(line, around.language_id) != line.strip():
        return False  # the rest would become part of the comment
    if not _is_word(first):
        return True
    if _is_word(last):
        # Who asks within a word wants a word.
        return not around.automatic and _is_word(around.window.lead[-1:])
    # `(int)` may stand before a word, `f(x)` not.
    return last not in ")]}\"'" or text.startswith("(")


def _leads_in(text: str, around: Around) -> bool:
    """Whether `text` is the beginning of the statement that the rest goes on with."""
    rest, content = around.window.rest.lstrip(), text.rstrip()
    if not _joins(text, around) or len(brackets.read(text + rest).open) > len(brackets.read(rest).open):
        return False
    if around.language_id == "python":
        if _PYTHON_STATEMENT.match(rest):
            return content == "async"
        if _PYTHON_TARGET.match(rest):
            return content.endswith(".")
    if content.endswith(_LEADS_IN) or (rest[0] in "([" and _is_word(content[-1])):
        return True
    if rest[0] in "\"'" and _STRING_PREFIX.fullmatch(text):
        return True
    # `await `, but not `import a ` before `import b`.
    return bool(_WORDS.match(text)) and _WORD.findall(rest)[0] not in text.split()


def _whole_lines(content: str, around: Around) -> bool:
    """Whether the lines of `content` can stand before the cursor's line."""
    window, language = around.window, around.language_id
    below = (window.lead + window.rest).strip()
    lines = [line for line in (window.lead + content).split("\n") if line.strip()]
    depth, first, last = columns(window.lead + window.rest), lines[0].strip(), bare(lines[-1], language)
    if columns(lines[0]) != depth or columns(lines[-1]) < depth:
        return False
    if _CONTINUES.match(below) or _CONTINUES.match(first) or len(_TRIPLE.findall(content)) % 2:
        return False
    found = brackets.read("\n".join(bare(line, language) for line in lines))
    if found.open or found.closers or opens(last, language) or _GOES_ON.search(last):
        return False
    if last.startswith("@") and language == "python" and not _DECORATED.match(below):
        return False
    above = bare(_line_above(around), language)
    if above.startswith("@") and not first.startswith("@"):
        return False
    # Inside brackets an entry is wanted, elsewhere a statement.
    entry = above.endswith((",", "(", "[", "{") if language == "python" else (",", "(", "["))
    return not last or (not _GOES_ON.search(above) and entry == last.endswith(","))


def _line_above(around: Around) -> str:
    above = around.window.prefix[: len(around.window.prefix) - len(around.window.lead)].rstrip()
    return above[above.rfind("\n") + 1 :]


def _is_word(character: str) -> bool:
    return character == "_" or character.isalnum()
