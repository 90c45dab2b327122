"""One line, one statement or a block: by syntax, and by the line alone where there is none."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion import syntax
from completion.multiline import LARGEST, Extent, extent
from completion.syntax import GRAMMARS, Place, place
from completion.types import Window
from tests.completion.desk import Desk
from tests.completion.golden import window_of

LINES = "words of a text\n" * 40  # more than is parsed
LINE, STATEMENT, BLOCK = Extent.LINE, Extent.STATEMENT, Extent.BLOCK


@pytest.fixture
def no_parsers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing of tree-sitter were installed."""
    monkeypatch.setattr(syntax, "_parser", lambda language_id: None)


def found(marked: str, language: str, length: int = 0, mode: str = "auto") -> Extent:
    return extent(mode, window_of(marked), language, length)


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("python", "def f():\n    ⟦|⟧\n\nx = 1\n", Place.EMPTY_BODY),
        ("python", 'def f():\n    """Doc."""\n    ⟦|⟧\n', Place.EMPTY_BODY),
        ("python", "def f():\n    x = ⟦|⟧\n    return x\n", Place.BETWEEN),
        ("python", "def f():\n    y = 1\n    x = ⟦|⟧\n", Place.LAST),
        ("python", "f(⟦|⟧)\n", Place.EMPTY_ITEMS),
        ("python", "f(a, ⟦|⟧)\n", Place.ITEMS),
        ("python", "x = [\n    1,\n    ⟦|⟧\n]\n", Place.ITEMS),
        ("python", "x = 'a ⟦|⟧'\n", Place.STRING),
        ("python", "x = f'a {⟦|⟧}'\n", Place.STRING),
        ("python", 'def f():\n    """A ⟦|⟧\n    """\n', Place.TEXT),
        ("python", 'def f():\n    """⟦|⟧"""\n', Place.TEXT),
        ("python", 'def f():\n    """\nLeft margin ⟦|⟧\n    """\n    return 1\n', Place.TEXT),
        ("python", f'"""Doc.\n\nLeft margin ⟦|⟧\n{LINES}"""\n', Place.TEXT),
        ("python", f'def f():\n    """Doc."""\n    x = g(⟦|⟧)\n{LINES}', Place.EMPTY_ITEMS),
        ("python", f'def f():\n    """\n    Doc.\n    """\n    x = g(⟦|⟧)\n{LINES}', Place.EMPTY_ITEMS),
        ("python", f"SQL = '''\nselect ⟦|⟧\n{LINES}'''\n", Place.TEXT),
        ("python", f'f("""a""", ⟦|⟧)\n{LINES}', Place.ITEMS),
        ("c", f"/* All rights\nare ⟦|⟧\n{LINES}*/\nint a;\n", Place.COMMENT),
        ("c", f"/* a */ int b = f(⟦|⟧);\n{LINES}", Place.EMPTY_ITEMS),
        ("typescript", f"const all = glob('src/*/*.ts', ⟦|⟧);\n{LINES}", Place.ITEMS),
        ("python", "@⟦|⟧\ndef f():\n    pass\n", Place.DECORATOR),
        ("python", "x = 1  # so ⟦|⟧\n", Place.COMMENT),
        ("javascript", "function f() {\n  ⟦|⟧\n}\n", Place.EMPTY_BODY),
        ("javascript", "a.map(⟦|⟧);\n", Place.EMPTY_ITEMS),
        ("javascriptreact", "const a = <p>{b ? ⟦|⟧ : c}</p>;\nd();\n", Place.BETWEEN),
        ("typescript", "const a = `x ${⟦|⟧}`;\n", Place.STRING),
        ("typescript", "import { a, ⟦|⟧ } from 'b';\n", Place.ITEMS),
        ("typescriptreact", 'const a = <p id="⟦|⟧" />;\n', Place.STRING),
        ("go", "package a\n\nfunc f() {\n\t⟦|⟧\n}\n", Place.EMPTY_BODY),
        ("go", "package a\n\n// f is ⟦|⟧\nfunc f() {}\n", Place.COMMENT),
        ("rust", "fn f() -> i32 {\n    ⟦|⟧\n}\n", Place.EMPTY_BODY),
        ("rust", "#[derive(⟦|⟧)]\nstruct A;\n", Place.EMPTY_ITEMS),
        ("java", "class A {\n  int f() {\n    ⟦|⟧\n  }\n}\n", Place.EMPTY_BODY),
        ("java", "class A {\n  @⟦|⟧\n  int f() { return 1; }\n}\n", Place.DECORATOR),
        ("java", "class A {\n  /**\n   * The ⟦|⟧\n   */\n  int a;\n}\n", Place.COMMENT),
        ("c", "int f(void)\n{\n    int a = ⟦|⟧\n    return a;\n}\n", Place.BETWEEN),
        ("c", 'int a = f("⟦|⟧");\n', Place.STRING),
        ("cpp", "void f() {\n    ⟦|⟧\n}\n", Place.EMPTY_BODY),
        ("cpp", "enum class A { B, ⟦|⟧ };\n", Place.ITEMS),
        ("ruby", "def f\n  ⟦|⟧\nend\n", Place.EMPTY_BODY),
        ("ruby", 'a = "b #{⟦|⟧}"\n', Place.STRING),
        ("shellscript", "f() {\n    ⟦|⟧\n}\n", Place.EMPTY_BODY),
        ("shellscript", "# all ⟦|⟧\nls\n", Place.COMMENT),
        ("lua", "local a = { 1, ⟦|⟧ }\n", Place.ITEMS),
        ("json", '{"a": 1, "b": ⟦|⟧}\n', Place.ITEMS),
        ("yaml", "a: ⟦|⟧\nb: 1\n", Place.BETWEEN),
        ("html", '<p class="⟦|⟧">a</p>\n', Place.STRING),
        ("css", "a {\n  color: ⟦|⟧;\n  margin: 0;\n}\n", Place.BETWEEN),
        ("fortran", "x = ⟦|⟧\n", None),
    ],
)
def test_places(language: str, text: str, expected: Place | None) -> None:
    assert place(window_of(text), language) is expected


def test_every_grammar_is_installed_where_the_tests_run() -> None:
    assert [language for language in GRAMMARS if syntax._parser(language) is None] == []


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("python", "def f():\n    ⟦|⟧\n", BLOCK),
        ("python", "def f():\n    x = ⟦|⟧\n    return x\n", STATEMENT),
        ("python", "def f():\n    ⟦|⟧\n    return x\n", BLOCK),
        ("python", "x = f(a, ⟦|⟧)\ny = 1\n", STATEMENT),
        ("python", "x = f(⟦|⟧)\n", BLOCK),
        ("python", "x = [\n    1,\n    ⟦|⟧\n]\n", BLOCK),
        ("python", "x = 'a⟦|⟧'\n", LINE),
        ("python", 'def f():\n    """⟦|⟧"""\n', LINE),
        ("python", 'def f():\n    """⟦|⟧\n', BLOCK),
        ("python", "# so ⟦|⟧\nx = 1\n", LINE),
        ("python", "@⟦|⟧\ndef f():\n    pass\n", LINE),
        ("python", "x = ⟦|⟧ + 1\n", LINE),
        ("fortran", "! so ⟦|⟧\n", BLOCK),
        ("elixir", "# so ⟦|⟧\n", LINE),
        ("elixir", "x = ⟦|⟧\n", BLOCK),
    ],
)
def test_extents(language: str, text: str, expected: Extent) -> None:
    assert found(text, language) is expected


def test_the_setting_wins() -> None:
    assert found("# so ⟦|⟧\n", "python", mode="always") is BLOCK
    assert found("def f():\n    ⟦|⟧\n", "python", mode="never") is LINE


@pytest.mark.usefixtures("no_parsers")
def test_without_tree_sitter_the_line_decides() -> None:
    assert found("def f():\n    x = ⟦|⟧\n    return x\n", "python") is BLOCK
    assert found("x = 'a⟦|⟧'\n", "python") is BLOCK
    assert found("x = ⟦|⟧ + 1\n", "python") is LINE
    assert found("# so ⟦|⟧\nx = 1\n", "python") is LINE


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("javascript", "foo(⟦|⟧\nbar();\n", STATEMENT),
        ("c", 'char *s = "abc ⟦|⟧\n', STATEMENT),
        ("x", "a = [1, ⟦|⟧\n", STATEMENT),
        ("x", "say(\"it's ⟦|⟧\n", STATEMENT),
        ("x", "it's (a) ⟦|⟧\n", BLOCK),
        ("x", 'test("a", () => {⟦|⟧\n', BLOCK),
        ("javascript", 'test("a", () => {⟦|⟧\n', BLOCK),
        ("shellscript", 'echo "abc ⟦|⟧\n', BLOCK),
        ("markdown", "Words (of ⟦|⟧\n", BLOCK),
        ("x", "foo(⟦|⟧)\n", BLOCK),
    ],
)
@pytest.mark.usefixtures("no_parsers")
def test_arguments_and_strings_that_are_not_closed_end_with_their_statement(
    language: str, text: str, expected: Extent
) -> None:
    assert found(text, language) is expected


def test_in_a_large_file_the_line_decides() -> None:
    text = "x = 'a⟦|⟧'\n"
    assert (found(text, "python", LARGEST), found(text, "python", LARGEST + 1)) == (LINE, BLOCK)


async def test_a_parser_that_fails_costs_no_completion(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def parse(self, source: bytes) -> None:
            raise MemoryError

    monkeypatch.setattr(syntax, "_parser", lambda language_id: Broken())
    caplog.set_level(logging.INFO)
    assert found("def f():\n    ⟦|⟧\n", "python") is BLOCK
    desk = Desk(("return 1",))
    assert getattr(await desk.ask("def f():\n    ⟦|⟧\n"), "text", None) == "return 1"
    assert caplog.records == []


def test_a_grammar_that_cannot_be_loaded_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "GRAMMARS", {"nil": ("no_such_grammar", "language"), "old": ("json", "dumps")})
    assert (place(window_of("⟦|⟧"), "nil"), place(window_of("⟦|⟧"), "old")) == (None, None)


@pytest.mark.parametrize("before", ["# \U0001f600\U0001f600 𝒳 é\n", "s = '\U0001f468‍\U0001f469'; ", "\ud800 = 1\n"])
def test_columns_are_not_confused_by_characters_of_several_bytes(before: str) -> None:
    assert place(window_of(f"{before}x = f('ü\U0001f600 ⟦|⟧')\n"), "python") is Place.STRING
    assert place(window_of(f"{before}x = f(é, ⟦|⟧)\n"), "python") is Place.ITEMS
    assert place(window_of(f"{before}x = 1  # \U0001f600 ⟦|⟧\n"), "python") is Place.COMMENT


@given(
    pieces=st.lists(
        st.sampled_from(
            ["def f():", "{", "}", "(", ")", '"', "'", '"""', "/*", "*/", "#", "//", "\n", "    ", "x", "é", "\ud83d"]
        ),
        max_size=30,
    ),
    at=st.integers(0, 30),
    language=st.sampled_from(sorted(GRAMMARS)),
)
def test_whatever_the_text_nothing_is_raised(pieces: list[str], at: int, language: str) -> None:
    window = Window("".join(pieces[:at]), "".join(pieces[at:]))
    assert extent("auto", window, language, 0) in Extent


@pytest.mark.parametrize("language", ["python", "typescript", "go"])
def test_only_what_is_near_is_parsed(monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    sizes: list[int] = []
    real = syntax._parser(language)
    assert real is not None
    parse = real.parse

    class Counting:
        def parse(self, source: bytes) -> object:
            sizes.append(len(source))
            return parse(source)

    monkeypatch.setattr(syntax, "_parser", lambda language_id: Counting())
    body = "".join(f"    call_{number}(argument)\n" for number in range(400))
    opener, closer = ("def f():\n", "") if language == "python" else ("function f() {\n", "}\n")
    assert place(window_of(f"{opener}{body}    x = ⟦|⟧\n{body}{closer}"), language) is Place.BETWEEN
    other = "".join(f"{opener}    pass\n{closer}\n" for _ in range(50))
    assert place(window_of(f"{other}{opener}    x = ⟦|⟧\n{closer}"), language) is not None
    assert sizes[0] < 3000
    assert sizes[1] < 100


@pytest.mark.parametrize(
    ("text", "answer", "shown"),
    [
        ("def f():\n    x = ⟦|⟧\n    return x\n", "1\n    y = 2\n", "1"),
        ("def f():\n    x = ⟦|⟧\n    return x\n", "g(\n        1,\n    )\n    y = 2\n", "g(\n        1,\n    )"),
        ("def f():\n    x = ⟦|⟧\n    return x\n", "a + \\\n        b\n    y = 2\n", "a + \\\n        b"),
        ("def f():\n    x = a ⟦|⟧\n    return x\n", "and (b\n        or c)\n    y = 2\n", "and (b\n        or c)"),
        ("def f():\n    if ⟦|⟧\n    return 1\n", "a:\n        b()\n    c()\n", "a:\n        b()"),
        ("def f():\n    x = ⟦|⟧\n", "1\n    return x\n", "1\n    return x"),
        ("foo(⟦|⟧\n", "a,\n    b)\nbar()\n", "a,\n    b)"),
        ('s = "abc ⟦|⟧\n', 'def"\nt = 1\n', 'def"'),
        ("def f(⟦|⟧\n", "a, b):\n    return a\n", "a, b):\n    return a"),
        ('s = """abc ⟦|⟧\n', 'def\nghi"""\n', 'def\nghi"""'),
    ],
)
async def test_one_statement(text: str, answer: str, shown: str) -> None:
    for parts in ((answer,), tuple(answer)):
        assert getattr(await Desk(parts).ask(text), "text", None) == shown
