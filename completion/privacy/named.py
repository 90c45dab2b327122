"""Values of names that say that they hold a secret: `password = "…"`. Must not know what becomes of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from completion.privacy.entropy import bits, jumbled

# Looked for first, in lower case, which is much quicker than the patterns.
_NEEDLES = (
    *("passw", "passphrase", "pwd", "secret", "token", "api_key", "api-key", "apikey", "access_key", "accesskey"),
    *("access-key", "private_key", "privatekey", "private-key", "credential", "auth", "account_key", "accountkey"),
    *("encryption_key", "signing_key", "connection_string", "connectionstring", "passwort", "kennwort", "contrase"),
    *("senha", "mot_de_passe", "motdepasse", "artif", "jfrog"),
)
# Those that other words begin with: here a name must end, or a part of one.
_SHORT = ("key", "pass", "pw", "pat")
_ENDS = re.compile(r"(?:key|pass|pw|pat)(?![a-z])")

_NAME = (
    r"(?:passw(?:or)?d|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|"
    r"authorization|auth[_-]?(?:key|token)?|account[_-]?key|encryption[_-]?key|signing[_-]?key|"
    r"shared[_-]?access[_-]?key|connection[_-]?string|(?<![a-z])(?:pass|pw)(?![a-z])|(?<=[a-z0-9])[_-]key(?![a-z])|"
    r"(?-i:(?<=[a-z0-9])Pass(?![a-z]))|passwort|kennwort|contrase[ñn]a|(?<![a-z])senha|mot_?de_?passe)"
)
_REST = r"(?P<rest>[\w-]{0,64}+)"
_ARRAY = r"(?:\[[0-9A-Z_]{0,20}+\])?"
_TYPE = r"(?:[ \t]*:[ \t]*(?:&?'\w++[ \t]+|[&*])?[\w.:]++(?:\[[^\]\n\"']{0,60}+\])?(?:[ \t]*\|[ \t]*\w++)?(?=[ \t]*=))?"
_SIGN = r"(?:=>|:=|==?|!=|:)"
_TEXT = r"(?:\"((?:[^\"\\\n\r]|\\.){6,})|'((?:[^'\\\n\r]|\\.){6,})|`([^`\n\r$]{6,}))"

# The other groups are ways to write the value, of which one matches. Its closing quote may be missing as it is typed.
_QUOTED = re.compile(
    rf"{_NAME}{_REST}[\"'\])]{{0,2}}{_ARRAY}{_TYPE}[ \t]*{_SIGN}[ \t]*\(?[a-z@$]{{0,2}}{_TEXT}",
    re.IGNORECASE,
)
_PAIR = re.compile(rf"[(\[][ \t]*[\"'][\w.-]{{0,40}}?{_NAME}{_REST}[\"'][ \t]*,[ \t]*{_TEXT}", re.IGNORECASE)

# Without quotes, as in shells, `.env`, YAML and .ini files, connection strings and on command lines.
_VALUE = r"[^\s\"'`;,(){}\[\]<>|&$\\]"
_BARE = re.compile(rf"{_NAME}{_REST}[\"']?[ \t]*[=:][ \t]*({_VALUE}{{6,}}+)(?![(\[.])", re.IGNORECASE)
_OPTION = re.compile(
    rf"(?:--?|(?<=ENV )|(?<=env )|(?<=set )|(?<=setx ))[\w-]{{0,40}}?{_NAME}{_REST}[ \t]+(?![-=:])({_VALUE}{{6,}}+)",
    re.IGNORECASE,
)
# In a string that holds names and values; a constructor of C++; a comparison the other way round.
_ESCAPED = re.compile(rf"{_NAME}{_REST}\\+[\"'][ \t]*(?:=>|[=:])[ \t]*\\+[\"']([^\"'\\\n\r]{{6,}}+)", re.IGNORECASE)
_BUILT = re.compile(rf"[\w>*&][ \t]{{1,8}}\w{{0,40}}?{_NAME}{_REST}[({{][ \t]*{_TEXT}", re.IGNORECASE)
_BACKWARDS = re.compile(
    rf"(?:\"([^\"\\\n\r]{{6,}}+)\"|'([^'\\\n\r]{{6,}}+)')[ \t]*[!=]={{1,2}}[ \t]*[\w.$>-]{{0,60}}?{_NAME}{_REST}",
    re.IGNORECASE,
)
# Names that mean other things, too: only what is evidently random.
_SERVICE = re.compile(
    rf"(?:(?<![a-z])(?:pat(?![a-z])|artif(?![a-z])|artifactory|jfrog)|(?-i:(?<=[a-z0-9])Key(?![a-z]))){_REST}"
    rf"[\"'\])\\]{{0,3}}{_ARRAY}{_TYPE}(?:[ \t]*{_SIGN}[ \t]*|[ \t]+|>)\\?[\"'`]?"
    r"([A-Za-z0-9_+/-]{11,}+={0,2})",
    re.IGNORECASE,
)
_ELEMENT = re.compile(rf"<[\w:.-]{{0,40}}?{_NAME}{_REST}>([^<>\n\r]{{6,}}+)</", re.IGNORECASE)

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
    r"(.)\1*|__\w+__|[a-z._]*\{\w+\}[\w.]*|<.*>|\{.*\}|\[.*\]|%\(?[a-z_]+\)?s?|\$.*|(?:your|my|some|the|an?|enter|insert|put|replace|choose|new|old)\b.*|"
    r".*(?:example|placeholder|changeme|change[_-]me|redacted|dummy|todo|xxxx|\*\*\*\*|\.\.\.|…).*|"
    r"(?:none|null|undefined|true|false|default|optional|required|password|secret|token|string|bearer|basic)[:\w]*",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[A-Za-z]+(?:[ _.:/-]+[A-Za-z]+)*|[a-z]+(?:[A-Z][a-z]+)+|[A-Z][A-Z0-9_]+|\\?[rntb\\ ]+")
_ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]{1,20}:)?/[^@]*|\.{0,2}/.*|[~.]/.*|[\w.-]+\.(?:py|js|ts|json|ya?ml|toml|txt|pem|key|html?)"
)
_PASSWORD = re.compile(
    r"(?:passw(?:or)?[dt]|passwd|passphrase|pwd|pass|pw|kennwort|contrase[ñn]a|senha|mot_?de_?passe)$", re.IGNORECASE
)
_PHRASE = re.compile(r"passw|passp|secret", re.IGNORECASE)
_FIELD = re.compile(r"[a-z]+[_-](?:field|input|again|confirm\w*|reset|change)")
_CODE = re.compile(r"\s*[+,).]")  # the quote was a closing one
_ENVIRONMENT = re.compile(r"\s*(?:(?:export|ENV|ARG|-)?\s*[\"']?[A-Z][A-Z0-9_]*=|(?:export|set|-e|--env)\s+\w+=)")
_SYMBOLS = re.compile(r"\w[!#%*?@^~]\w")
_NUMBERED = re.compile(r"[A-Za-z_]+[0-9_]{0,2}(?:\.\w+)*")
_EXPRESSION = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*|[\d.xa-f_]+|.*[=*/+<>:]=?")
_SENTENCE = re.compile(
    r"[A-Z][a-z]+(?:'\w+)?[ :].*|.*[a-z] [a-z].*[.!?:…]|.*\{[\w.!]*\}.*|.*%(?:[sdr](?![A-Za-z0-9])|\().*", re.DOTALL
)


def named(line: str) -> Iterator[tuple[int, int]]:
    """Where such values stand in a line."""
    lowered = line.lower()
    if not any(needle in lowered for needle in _NEEDLES) and not (
        any(needle in lowered for needle in _SHORT) and _ENDS.search(lowered)
    ):
        return
    for pattern, marks, good in _PATTERNS:
        if not any(mark in lowered for mark in marks):
            continue
        for match in pattern.finditer(line):
            if _about(match):
                continue
            group = next(at for at, each in enumerate(match.groups(), 1) if each and at != pattern.groupindex["rest"])
            if good(match[group], match):
                yield match.span(group)


def _about(match: re.Match[str]) -> bool:
    """Whether the name is that of something about a secret."""
    rest = match["rest"].rstrip("_-")
    words = rest.lower().startswith(_OTHER_WORDS) and not rest.lower().startswith("ed_")
    return words or _ABOUT.search(rest) is not None or (not rest and _name(match).lower().endswith("auth"))


def _name(match: re.Match[str]) -> str:
    """The name, with what of the match stands before it."""
    return match.string[match.start() : match.end("rest")]


def _quoted(value: str, match: re.Match[str]) -> bool:
    """Whether a value in quotes may be a secret."""
    if not value.strip() or _PLACEHOLDER.fullmatch(value) or _address(value) or _CODE.match(value):
        return False
    if _SENTENCE.fullmatch(value) and not any(map(str.isdigit, value)):
        return False
    if _PASSWORD.search(_name(match)) and " " not in value:
        return not _FIELD.fullmatch(value)
    if jumbled(value):
        return True
    if _unbroken(value):
        return True
    if _IDENTIFIER.fullmatch(value):
        # words: a passphrase, where the name promises one
        return " " in value and len(value) >= 12 and _PHRASE.search(_name(match)) is not None
    return len(value) >= 8 and (any(map(str.isdigit, value)) or not value.replace(" ", "").isalpha())


def _pair(value: str, match: re.Match[str]) -> bool:
    """The same for ("password", "..."), which is also how lists of names look."""
    return (not re.fullmatch(r"[A-Za-z_]\w*", value) or _mingled(value) or _unbroken(value)) and _quoted(value, match)


def _bare(value: str, match: re.Match[str]) -> bool:
    """Whether a value without quotes may be one. Code is full of names here: these are not."""
    if _PLACEHOLDER.fullmatch(value) or _address(value) or value.startswith("#"):
        return False
    if _ENVIRONMENT.match(match.string):  # a line that gives values to variables: no code
        return not _IDENTIFIER.fullmatch(value) or _PASSWORD.search(_name(match)) is not None or _unbroken(value)
    if jumbled(value) or _unbroken(value):
        return True
    if _PASSWORD.search(_name(match)) and _SYMBOLS.search(value) and len(value) >= 12 and _mixed_case(value):
        return True
    digits = sum(map(str.isdigit, value))
    if not digits or not any(map(str.isalpha, value)) or len(value) < 8:
        return False
    if _NUMBERED.fullmatch(value):
        return False
    return not _EXPRESSION.fullmatch(value) or (digits >= 3 and len(value) >= 12)


def _mixed_case(value: str) -> bool:
    return any(map(str.islower, value)) and any(map(str.isupper, value))


def _service(value: str, match: re.Match[str]) -> bool:
    return _mingled(value) and not _address(value)


def _address(value: str) -> bool:
    return _ADDRESS.fullmatch(value) is not None and not jumbled(value)


def _mingled(value: str) -> bool:
    """Whether digits stand among letters as they do in no name."""
    return jumbled(value) or (
        len(value) >= 16
        and sum(map(str.isdigit, value)) >= len(value) // 12
        and len(re.findall(r"[0-9]+[A-Za-z]", value)) >= max(3, len(value) // 16)
    )


def _unbroken(value: str) -> bool:
    """Whether it is longer than words are, and of as many different letters as no word."""
    return len(value) >= 24 and value.isalpha() and (value.islower() or value.isupper()) and bits(value) >= 3


# With what stands in each line that one matches, in lower case.
_PATTERNS: tuple[tuple[re.Pattern[str], tuple[str, ...], Callable[[str, re.Match[str]], bool]], ...] = (
    (_QUOTED, ("=", ":"), _quoted),
    (_PAIR, (",",), _pair),
    (_BARE, ("=", ":"), _bare),
    (_OPTION, ("-", "env ", "set ", "setx "), _bare),
    (_ELEMENT, ("</",), _quoted),
    (_ESCAPED, ("\\",), _quoted),
    (_BUILT, ("(", "{"), _pair),
    (_BACKWARDS, ("==", "!="), _quoted),
    (_SERVICE, (" ", "=", ":", ">"), _service),
)
