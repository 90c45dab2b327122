"""Where in the syntax the cursor is, by tree-sitter. Must not know documents, prompts or what is done with it.

Only what stands around the cursor is parsed, from the line that begins the statement it belongs to: the time does not
grow with the file. The cursor's line may be incomplete; a name put at the cursor makes it parse. All places are bytes
of the text that is parsed, so no columns are converted. Without tree-sitter, without a grammar, or when parsing fails,
nothing is known, and nothing is raised.
"""

from __future__ import annotations

import enum
import importlib
import logging
import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from completion.types import Window

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_log = logging.getLogger(__name__)

# Module and function of each language's grammar. Their wheels hold the compiled grammar: nothing is fetched.
GRAMMARS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "bash": ("tree_sitter_bash", "language"),
        "c": ("tree_sitter_c", "language"),
        "cpp": ("tree_sitter_cpp", "language"),
        "css": ("tree_sitter_css", "language"),
        "go": ("tree_sitter_go", "language"),
        "html": ("tree_sitter_html", "language"),
        "java": ("tree_sitter_java", "language"),
        "javascript": ("tree_sitter_javascript", "language"),
        "javascriptreact": ("tree_sitter_javascript", "language"),
        "json": ("tree_sitter_json", "language"),
        "jsonc": ("tree_sitter_json", "language"),
        "lua": ("tree_sitter_lua", "language"),
        "python": ("tree_sitter_python", "language"),
        "ruby": ("tree_sitter_ruby", "language"),
        "rust": ("tree_sitter_rust", "language"),
        "shellscript": ("tree_sitter_bash", "language"),
        "typescript": ("tree_sitter_typescript", "language_typescript"),
        "typescriptreact": ("tree_sitter_typescript", "language_tsx"),
        "yaml": ("tree_sitter_yaml", "language"),
    }
)

# Code points parsed before and after the cursor: 0.1 ms for a function of 10 lines, at most 0.3 ms.
_BEFORE, _AFTER = 1500, 400

# What is put at the cursor: a name, or what stands for one. A statement needs its end there, where nothing follows.
_NAME = {"json": "0", "jsonc": "0"}
_ENDED = frozenset({"c", "cpp", "java", "rust", "css"})

_BLOCK_COMMENTS = frozenset(
    {"c", "cpp", "css", "go", "java", "javascript", "javascriptreact", "rust", "typescript", "typescriptreact"}
)
_PREFIX = re.compile(r"(?:^|[\s=(,\[:+])[rbfuRBFU]{1,2}\Z")  # of a Python string

_TEXT = re.compile(
    r"string|.*string_(?:content|literal|fragment|value)|string_(?:start|end)|template_string|heredoc_(?:body|content)"
    r"|char(?:acter)?_literal|(?:quoted_)?attribute_value|(?:double|single)_quote_scalar|block_scalar|raw_text"
)
_CODE_IN_TEXT = frozenset({"interpolation", "template_substitution", "expansion", "command_substitution"})
_DECORATORS = frozenset({"decorator", "annotation", "marker_annotation", "attribute_item", "inner_attribute_item"})
_ITEM_TYPES = (
    "argument_list arguments parameters formal_parameters parameter_list type_arguments type_parameters"
    " template_argument_list list tuple set dictionary array object hash initializer_list field_initializer_list"
    " tuple_expression array_expression token_tree named_imports export_clause literal_value enum_body"
    " enumerator_list table_constructor flow_sequence flow_mapping annotation_argument_list"
)
_ITEMS = frozenset(_ITEM_TYPES.split())
_BODY_TYPES = (
    "block statement_block compound_statement class_body declaration_list field_declaration_list body_statement"
    " do_group module program source_file translation_unit chunk stylesheet switch_body switch_block match_block"
    " do_block then else interface_body constructor_body statement_list case_statement script document element"
    " block_sequence block_mapping import_spec_list"
)
_BODIES = frozenset(_BODY_TYPES.split())

# Lines that belong to the one above them.
_GOES_ON = re.compile(
    r"\s*(?:[)\]}]|(?:else|elif|elsif|except|finally|catch|rescue|ensure|end|fi|done|esac|when|case)\b)"
)


class Place(enum.Enum):
    COMMENT = "comment"
    STRING = "string"  # on one line, or code in one
    TEXT = "text"  # a docstring, or a string over several lines
    DECORATOR = "decorator"
    EMPTY_ITEMS = "empty items"  # between brackets with nothing else in them
    ITEMS = "items"
    EMPTY_BODY = "empty body"
    LAST = "last"  # of its body: nothing follows
    BETWEEN = "between"  # more of its body follows


def place(window: Window, language_id: str) -> Place | None:
    """The smallest place of these that holds the cursor; None: not known."""
    parser = _parser(language_id)
    if parser is None:
        return None
    known = _over_lines(window.prefix, language_id)
    if known is not None:
        return known
    before, after = _around(window)
    try:
        at = len(before.encode("utf-8", "replace"))
        source = before + _put(before, after, language_id) + after
        tree = parser.parse(source.encode("utf-8", "replace"))
        node = tree.root_node.descendant_for_byte_range(at, at + 1)
        return None if node is None else _place(node, at)
    except Exception:  # noqa: BLE001 - whatever the parser stumbles over, the completion does without it
        _log.debug("a place was not parsed", exc_info=True)
        return None


def _put(before: str, after: str, language_id: str) -> str:
    """What is put at the cursor."""
    name = _NAME.get(language_id, "x")
    if language_id not in _ENDED or after.partition("\n")[0].strip():
        return name
    line = before[before.rfind("\n") + 1 :]
    return name if line.count("(") > line.count(")") or line.count("[") > line.count("]") else f"{name};"


@lru_cache(maxsize=32)
def _parser(language_id: str) -> Parser | None:
    if language_id not in GRAMMARS:
        return None
    module, function = GRAMMARS[language_id]
    try:
        from tree_sitter import Language, Parser

        return Parser(Language(getattr(importlib.import_module(module), function)()))
    except Exception as error:  # noqa: BLE001 - not installed, built for another machine, or of another version
        _log.info("No syntax tree for %s: %s", language_id, error)
        return None


def _around(window: Window) -> tuple[str, str]:
    """What is parsed: from the line that begins the outermost block in sight to some lines below."""
    before = window.prefix[-_BEFORE:]
    if len(window.prefix) > _BEFORE:
        before = before[before.find("\n") + 1 :]
    start = _beginning(before)
    after = window.suffix[:_AFTER]
    if len(window.suffix) > _AFTER:
        after = after[: after.rfind("\n") + 1]
    return before[start:], after


def _beginning(text: str) -> int:
    """Offset of the last line with the least indentation that is not part of one above."""
    best, depth, end = 0, 1 << 30, len(text)
    while end > 0 and depth > 0:
        start = text.rfind("\n", 0, end - 1) + 1 if end else 0
        line = text[start:end]
        bare = line.lstrip()
        if bare.rstrip() and len(line) - len(bare) < depth and not _GOES_ON.match(line):
            best, depth = start, len(line) - len(bare)
        end = start
    return best


def _over_lines(prefix: str, language_id: str) -> Place | None:
    """A comment or a text over several lines that the cursor is in, whose end is further below than what is parsed."""
    if language_id in _BLOCK_COMMENTS:
        opened = prefix.rfind("/*")
        apart = not prefix[:opened].rpartition("\n")[2].strip() or prefix[opened - 1] in " \t;{}("
        return Place.COMMENT if opened > prefix.rfind("*/") and apart else None
    if language_id == "python":
        at = max(prefix.rfind('"""'), prefix.rfind("'''"))
        return Place.TEXT if at >= 0 and _opens_text(prefix, at) else None
    return None


def _opens_text(prefix: str, at: int) -> bool:
    """Whether the three quotes at `at`, which are the last ones, open a text and do not close one."""
    above, _, line = prefix[:at].rpartition("\n")
    behind = prefix[at + 3 :].partition("\n")[0].strip()
    if line.count(prefix[at : at + 3]) % 2:
        return False
    if line.strip():
        return line.rstrip()[-1] in "=(,[:+" or _PREFIX.search(line) is not None
    return behind[:1].isalnum() or not above.strip() or above.rstrip()[-1] in ":([=,"


def _place(node: Node, at: int) -> Place | None:
    below: Node | None = None
    while True:
        kind = node.type
        if kind.endswith("comment"):
            return Place.COMMENT
        if kind in _CODE_IN_TEXT:
            return Place.STRING
        if _TEXT.fullmatch(kind) and (node.parent is None or not _TEXT.fullmatch(node.parent.type)):
            return Place.TEXT if node.start_point[0] < node.end_point[0] or _documents(node) else Place.STRING
        if kind in _DECORATORS:
            return Place.DECORATOR
        if kind in _ITEMS:
            return Place.ITEMS if _others(node, at) else Place.EMPTY_ITEMS
        if kind in _BODIES:
            return _in_body(node, below, at)
        if node.parent is None:
            return None
        below, node = node, node.parent


def _in_body(body: Node, below: Node | None, at: int) -> Place:
    others = _others(body, at)
    if not others:
        return Place.EMPTY_BODY
    return Place.BETWEEN if below is not None and others[-1].start_byte >= below.end_byte else Place.LAST


def _others(node: Node, at: int) -> list[Node]:
    """What stands in a node beside what the cursor is in. Comments and docstrings are nothing."""
    return [
        child
        for child in node.named_children
        if not child.start_byte <= at <= child.end_byte and not child.type.endswith("comment") and not _documents(child)
    ]


def _documents(node: Node) -> bool:
    """Whether a node is a string that stands for itself: a docstring."""
    if node.type == "expression_statement":
        return node.named_child_count == 1 and node.named_children[0].type == "string"
    parent = node.parent
    return node.type == "string" and parent is not None and parent.type == "expression_statement"
