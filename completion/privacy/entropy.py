"""Long runs of letters and digits that nobody has chosen. Must not know what stands around them beyond the line."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

LEAST, MOST = 24, 120  # code points; shorter ones are too often names, longer ones are data

_RUN = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{LEAST},}}+={{0,2}}(?![A-Za-z0-9_-])")

# A text of 24 random characters of base64 has about 4.3 bits for each, one of 40 about 4.8; names have below 4.
_BITS = 3.9
_CHANGES = 0.4  # of neighbours are of different classes: 0.62 in random text of base64, hardly over 0.3 in names

_PUBLIC = re.compile(
    r"sha[0-9]{1,3}|md5|hash|digest|checksum|integrity|fingerprint|etag|uuid|guid|nonce|public|ssh-|certificate|signature",
    re.I,
)
# Hexadecimal and the like, in quotes: few things but keys are, where nothing on the line says what it is.
_LOWER = re.compile(r"[\"'`](?:([0-9a-f]{32,64})|([0-9A-F]{32,64})|([a-z0-9]{52}|[a-z0-9]{64}))[\"'`\\]")
_NAMED = re.compile(
    r"\b(?:rev|revision|commit|git|tree|blob|ref|version|crc\w*|\w*ids?|oid)\b|_id\b|Id\b|[^\w\s]x\d", re.I
)

_DATA = re.compile(r"[\s(+]*[A-Za-z]{0,2}[\"'`]?[A-Za-z0-9+/=_-]{56,}[\"'`]?[\\n\"'`+,;)\s]*")


def random_runs(line: str) -> Iterator[tuple[int, int]]:
    """Where such runs stand in a line."""
    for match in _RUN.finditer(line):
        if not _random(match[0]) or _PUBLIC.search(line) or _DATA.fullmatch(line) or _is_name(match, line):
            continue
        yield match.span()
    for match in _LOWER.finditer(line) if len(line) > 32 else ():
        group = match.lastindex or 0
        if not (_PUBLIC.search(line) or _NAMED.search(line) or _DATA.fullmatch(line)) and _many(match[group]):
            yield match.span(group)


def _random(text: str) -> bool:
    body = text.rstrip("=")
    if len(text) > MOST or sum(map(str.isdigit, body)) < 2:
        return False
    if not (any(map(str.islower, body)) and any(map(str.isupper, body))):
        return False
    return jumbled(body) and bits(body) >= _BITS and not readable(text)


def _many(text: str) -> bool:
    """Whether letters and digits are as many and as different as in random text."""
    digits = sum(map(str.isdigit, text))
    return 4 <= digits <= len(text) - 4 and bits(text) >= 3


def jumbled(text: str) -> bool:
    """Whether letters of both cases and digits follow each other as they do in no name; at least 9 of them."""
    pairs = changes = 0
    for part in re.split("[-_+/=]", text):
        if part and not part.isalnum():
            return False
        pairs += max(0, len(part) - 1)
        changes += sum(left != right for left, right in pairwise(map(_class, part)))
    return pairs >= 8 and changes >= _CHANGES * pairs


def bits(text: str) -> float:
    """Shannon's entropy of a text, per character."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def _class(char: str) -> int:
    return 0 if char.islower() else 1 if char.isupper() else 2


def readable(text: str) -> bool:
    """Whether it is plain text in base64, such as test data."""
    try:
        plain = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return sum(32 <= byte < 127 or byte in (9, 10, 13) for byte in plain) >= 0.9 * len(plain)


def _is_name(match: re.Match[str], line: str) -> bool:
    """Whether it is a part of a URL or a path, where such runs name things, or a name of the program."""
    at = match.start()
    before = line[max(line.rfind(mark, 0, at) for mark in " \t\"'`(<") + 1 : at]
    word = before + match[0]
    if "://" in word or word.startswith(("./", "../", "~/", "data:")):
        return True
    quoted = line[at - 1 : at] in ("'", '"', "`") or line[match.end() : match.end() + 1] in ("'", '"', "`")
    return match[0].isidentifier() and not quoted and not re.search(r"[=:][ \t]*$", line[:at])
