"""Values of names that say that they hold a secret: `password = "…"`. Must not know what becomes of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from completion.privacy.entropy import jumbled

# Looked for first, in lower case, which is much quicker than the patterns.
NEEDLES = (
    *("passw", "passphrase", "pwd", "secret", "token", "api_key", "api-key", "apikey", "access_key", "accesskey"),
    *("access-key", "private_key", "privatekey", "private-key", "credential", "auth", "account_key", "accountkey"),
    *("encryption_key", "signing_key", "connection_string", "connectionstring", "_pass", "pass=", "_key", "-key"),
)

_NAME = (
    r"(?:passw(?:or)?d|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|"
    r"authorization|auth[_-]?(?:key|token)?|account[_-]?key|encryption[_-]?key|signing[_-]?key|"
    r"shared[_-]?access[_-]?key|connection[_-]?string|(?<![a-z])pass(?![a-z])|(?<=[a-z0-9])[_-]key(?![a-z]))"
)
_REST = r"[\w-]{0,64}+"
_TYPE = r"(?:[ \t]*:[ \t]*[\w.]++(?:\[[^\]\n\"']{0,60}+\])?(?:[ \t]*\|[ \t]*\w++)?(?=[ \t]*=))?"
_SIGN = r"(?:=>|:=|==?|!=|:)"
_TEXT = r"(?:\"((?:[^\"\\\n\r]|\\.){6,})|'((?:[^'\\\n\r]|\\.){6,})|`([^`\n\r$]{6,}))"

# Group 1 is the end of the name; one of 2 to 4 the quoted value, whose closing quote may be missing as it is typed.
_QUOTED = re.compile(
    rf"{_NAME}({_REST})[\"'\])]{{0,2}}{_TYPE}[ \t]*{_SIGN}[ \t]*\(?[a-z]{{0,2}}{_TEXT}",
    re.IGNORECASE,
)
_PAIR = re.compile(rf"[(\[][ \t]*[\"'][\w.-]{{0,40}}?{_NAME}({_REST})[\"'][ \t]*,[ \t]*{_TEXT}", re.IGNORECASE)

# Without quotes, as in shells, `.env`, YAML and .ini files, connection strings and on command lines.
_VALUE = r"[^\s\"'`;,(){}\[\]<>|&$\\]"
_BARE = re.compile(rf"{_NAME}({_REST})[\"']?[ \t]*[=:][ \t]*({_VALUE}{{6,}}+)(?![(\[.])", re.IGNORECASE)
_OPTION = re.compile(rf"--?{_NAME}({_REST})[ \t]+(?!-)({_VALUE}{{6,}}+)", re.IGNORECASE)
_ELEMENT = re.compile(rf"<[\w:.-]{{0,40}}?{_NAME}({_REST})>([^<>\n\r]{{6,}}+)</", re.IGNORECASE)

# How a name ends that speaks about a secret without holding it.
_ABOUT = re.compile(
    r"(?:^|[_-]|(?<=[a-z])(?=[A-Z]))(?:s|fields?|names?|ur[il]s?|paths?|files?|types?|envs?|labels?|prompts?|hints?|headers?|"
    r"params?|endpoints?|commands?|policy|length|size|count|regex|pattern|prefix|suffix|columns?|tables?|message|error|"
    r"titles?|text|placeholder|help|description|class|methods?|expir\w*|ttl|lifetime|scopes?|kinds?|format|location|"
    r"provider|manager|storage|services?|issuer|audience|algorithm|index|start|end|limits?|budget|counter|usage|"
    r"generator|parser|re|exact|specs?|ids?|var(?:iable)?|alias|arn|ref|version|enabled|required|valid\w*)$",
    re.IGNORECASE,
)
_OTHER_WORDS = ("ize", "izer", "ization", "ary", "ed", "ing", "or", "ority", "enticat", "orize")

_PLACEHOLDER = re.compile(
    r"(.)\1*|<.*>|\{.*\}|\[.*\]|%\(?\w+\)?s?|\$.*|(?:your|my|some|the|an?|enter|insert|put|replace|choose|new|old)\b.*|"
    r".*(?:example|placeholder|changeme|change[_-]me|redacted|dummy|todo|xxxx|\*\*\*\*|\.\.\.|…).*|"
    r"(?:none|null|undefined|true|false|default|optional|required|password|secret|token|string|bearer|basic)[:\w]*",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[A-Za-z]+(?:[ _.:/-]+[A-Za-z]+)*|[a-z]+(?:[A-Z][a-z]+)+|[A-Z][A-Z0-9_]+|\\?[rntb\\ ]+")
_ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]{1,20}:)?/[^@]*|\.{0,2}/.*|[~.]/.*|[\w.-]+\.(?:py|js|ts|json|ya?ml|toml|txt|pem|key|html?)"
)
_PASSWORD = re.compile(r"(?:passw(?:or)?d|passwd|passphrase|pwd|pass)$", re.IGNORECASE)
_PHRASE = re.compile(r"passw|passp|secret", re.IGNORECASE)
_FIELD = re.compile(r"[a-z]+[_-](?:field|input|again|confirm\w*|reset|change)")
_CODE = re.compile(r"\s*[+,).]")  # the quote was a closing one
_ENVIRONMENT = re.compile(r"\s*(?:export|set|ENV|ARG|-e|--env|-)?\s*[\"']?[A-Z][A-Z0-9_]*=")
_NUMBERED = re.compile(r"[A-Za-z_]+[0-9_]{0,2}(?:\.\w+)*")
_EXPRESSION = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*|[\d.xa-f_]+|.*[=*/+<>:]=?")
_SENTENCE = re.compile(
    r"[A-Z][a-z]+(?:'\w+)?[ :].*|.*[a-z] [a-z].*[.!?:…]|.*\{[\w.!]*\}.*|.*%(?:[sdr](?![A-Za-z0-9])|\().*", re.DOTALL
)


def named(line: str) -> Iterator[tuple[int, int]]:
    """Where such values stand in a line."""
    for pattern, good in _PATTERNS:
        for match in pattern.finditer(line):
            group = match.lastindex or 0
            if not _about(match) and good(match[group], match):
                yield match.span(group)


def _about(match: re.Match[str]) -> bool:
    """Whether the name is that of something about a secret."""
    rest = match[1].rstrip("_-")
    words = rest.lower().startswith(_OTHER_WORDS) and not rest.lower().startswith("ed_")
    return words or _ABOUT.search(rest) is not None or (not rest and _name(match).lower().endswith("auth"))


def _name(match: re.Match[str]) -> str:
    return match.string[match.start() : match.end(1)]


def _quoted(value: str, match: re.Match[str]) -> bool:
    """Whether a value in quotes may be a secret."""
    if not value.strip() or _PLACEHOLDER.fullmatch(value) or _ADDRESS.fullmatch(value) or _CODE.match(value):
        return False
    if _SENTENCE.fullmatch(value) and not any(map(str.isdigit, value)):
        return False
    if _PASSWORD.search(_name(match)) and " " not in value:
        return not _FIELD.fullmatch(value)
    if jumbled(value):
        return True
    if _IDENTIFIER.fullmatch(value):
        # words: a passphrase, where the name promises one
        return " " in value and len(value) >= 12 and _PHRASE.search(_name(match)) is not None
    return len(value) >= 8 and (any(map(str.isdigit, value)) or not value.replace(" ", "").isalpha())


def _pair(value: str, match: re.Match[str]) -> bool:
    """The same for ("password", "..."), which is also how lists of names look."""
    return not re.fullmatch(r"[A-Za-z_]\w*", value) and _quoted(value, match)


def _bare(value: str, match: re.Match[str]) -> bool:
    """Whether a value without quotes may be one. Code is full of names here: these are not."""
    if _PLACEHOLDER.fullmatch(value) or _ADDRESS.fullmatch(value) or value.startswith("#"):
        return False
    if _ENVIRONMENT.match(match.string):  # a line that gives values to variables: no code
        return not _IDENTIFIER.fullmatch(value) or _PASSWORD.search(_name(match)) is not None
    if jumbled(value):
        return True
    digits = sum(map(str.isdigit, value))
    if not digits or not any(map(str.isalpha, value)) or len(value) < 8:
        return False
    if _NUMBERED.fullmatch(value):
        return False
    return not _EXPRESSION.fullmatch(value) or (digits >= 3 and len(value) >= 12)


_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[str, re.Match[str]], bool]], ...] = (
    (_QUOTED, _quoted),
    (_PAIR, _pair),
    (_BARE, _bare),
    (_OPTION, _bare),
    (_ELEMENT, _quoted),
)
