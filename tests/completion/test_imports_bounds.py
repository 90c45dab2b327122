"""Imports in a workspace that means no good: what is never read, and that whatever a file holds makes no trouble."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion.context.definitions import LANGUAGES
from completion.context.definitions.code import Code
from completion.context.definitions.files import LARGEST, MOST_FILES
from completion.privacy import Ignored
from completion.types import CompletionContext, DocumentSnapshot, PlainText
from tests.completion.project import Project

ASK = "from m import secret\nfrom ok import fine\nsecret, fine⟦|⟧"
FINE = {"ok.py": "fine = 1\n"}
SECRET = "secret = 1\n"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "m.py").write_text(SECRET)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "inside")
    made.write(FINE)
    return made


def link(path: Path, target: Path) -> None:
    try:
        path.symlink_to(target, target_is_directory=target.is_dir())
    except OSError:
        pytest.skip("no links here")


def test_a_link_out_of_the_workspace_is_not_followed(project: Project, outside: Path) -> None:
    link(project.root / "m.py", outside / "m.py")
    link(project.root / "there", outside)
    link(project.root / "loop.py", project.root / "loop.py")
    text = f"{ASK}\nfrom there.m import secret\nfrom loop import x\n"
    assert project.texts("main.py", text) == FINE
    assert project.texts("there/main.py", text) == FINE


def test_a_link_within_the_workspace_is_followed(project: Project, tmp_path: Path) -> None:
    project.write({"real/m.py": SECRET})
    link(project.root / "m.py", project.root / "real/m.py")
    assert project.texts("main.py", ASK) == {**FINE, "m.py": SECRET}
    link(tmp_path / "alias", project.root)  # the workspace itself may be reached by one
    assert Project(tmp_path / "alias").texts("main.py", ASK) == {**FINE, "m.py": SECRET}


def test_a_name_cannot_lead_out_of_the_workspace(project: Project, outside: Path) -> None:
    outside.joinpath("a.h").write_text("int secret(void);\n")
    outside.joinpath("a.js").write_text("export const secret = 1\n")
    project.write({"tsconfig.json": '{"compilerOptions": {"baseUrl": "../outside", "paths": {"x": ["../outside/a"]}}}'})
    whole = outside.as_posix()
    c = f'#include "../outside/a.h"\n#include "{whole}/a.h"\n#include "..\\outside\\a.h"\nsecret(⟦|⟧'
    assert project.texts("main.c", c) == {}
    js = f'import {{ secret }} from "../outside/a"\nimport {{ secret }} from "{whole}/a"\n'
    js += (
        'import { secret } from "x"\nimport { secret } from "a"\nimport { secret } from "./..\\\\outside/a"\nsecret⟦|⟧'
    )
    assert project.texts("main.js", js) == {}
    assert project.texts("main.py", "from ..outside.m import secret\nsecret⟦|⟧") == {}
    assert project.texts("main.rs", "use super::super::outside::m::secret;\nsecret⟦|⟧") == {}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_not_waited_for(project: Project) -> None:
    os.mkfifo(project.root / "m.py")
    assert project.texts("main.py", ASK) == FINE


@pytest.mark.parametrize(
    "data",
    [
        b"secret = 1\n" + b"#" * LARGEST,
        b"secret = 1\n\x00",
        b"secret = '\xe9'\n",
        "secret = 1\n".encode("utf-16"),
        b"secret = '" + b"x" * 1000 + b"'\n",
    ],
    ids=["large", "binary", "latin-1", "utf-16", "wide"],
)
def test_files_that_nobody_wrote_by_hand_are_skipped(project: Project, data: bytes) -> None:
    (project.root / "m.py").write_bytes(data)
    assert project.texts("main.py", ASK) == FINE


def test_a_folder_with_the_name_of_a_file_is_no_file(project: Project) -> None:
    (project.root / "m.py").mkdir()
    assert project.texts("main.py", ASK) == FINE


def test_a_byte_order_mark_is_no_text(project: Project) -> None:
    (project.root / "m.py").write_bytes(b"\xef\xbb\xbfsecret = 1\r\n")
    assert project.texts("main.py", ASK) == {**FINE, "m.py": SECRET}


def test_ignored_files_are_not_quoted_whatever_leads_to_them(project: Project) -> None:
    project.write({"private/m.py": SECRET, "m.py": SECRET, "passing.py": "from private.m import secret\n"})
    text = "from private.m import secret\nfrom passing import secret\nfrom ok import fine\nsecret, fine⟦|⟧"
    assert project.texts("main.py", text)["private/m.py"] == SECRET
    assert project.texts("main.py", text, ignored=Ignored(("private/",))) == FINE
    others = [project.document("private/m.py", SECRET)]
    assert project.texts("main.py", text, ignored=Ignored(("private/",)), others=others) == FINE
    (project.root / "m.py").unlink()
    link(project.root / "m.py", project.root / "private/m.py")
    assert project.texts("main.py", ASK, ignored=Ignored(("private/",))) == FINE
    assert project.texts("main.py", ASK, ignored=Ignored(("/m.py",))) == FINE


def test_what_is_no_longer_ignored_is_read(project: Project) -> None:
    project.write({"m.py": SECRET})
    assert project.texts("main.py", ASK, ignored=Ignored(("m.py",))) == FINE
    assert project.texts("main.py", ASK) == {**FINE, "m.py": SECRET}


def test_one_look_reads_a_few_files_and_the_next_ones_the_rest(project: Project) -> None:
    most = MOST_FILES * 3 // 2
    project.write({f"m{n}.py": f"x{n} = 1\n" for n in range(most)})
    text = "".join(f"from m{n} import x{n}\n" for n in range(most)) + "⟦|⟧"
    first = len(project.snippets("main.py", text))
    assert 0 < first <= MOST_FILES
    assert len(project.snippets("main.py", text)) == most


def test_a_root_of_another_system_is_no_trouble(project: Project) -> None:
    def windows(name: str, text: str) -> DocumentSnapshot:
        return DocumentSnapshot(f"file:///c%3A/w/{name}", "python", 1, PlainText(text), name, "c:\\w")

    text = "from m import secret\nfrom ok import fine\nsecret, fine"
    look = project.look("main.py", f"{text}⟦|⟧")
    context = CompletionContext(windows("a/main.py", text), len(text), others=(windows("m.py", SECRET),))
    (snippet,) = project.imports.snippets(replace(look, context=context))
    assert (snippet.path, snippet.text, snippet.uri) == ("m.py", SECRET, "file:///c%3A/w/m.py")


# Beginnings and ends of whatever the patterns look for.
PIECES = [
    *("x", ")", ":", "'", "#", "//", "/*", "*/", "{", "}", "(", "[", "]", ";", "=", "=>", ",", "@", "<", ">", "|", "é"),
    *('"""', "'''", '"', "`", "\n", "\n\n", "\\", "    ", "\t", "\u2028", "\f", "async ", "pub "),
    *("def f(", "class A(B):", "import ", "from ", "export ", "default ", "function f", "type T = ", "interface I "),
    *("const c = ", "func f", "func (s *T) M", "type (", "struct S ", "impl S ", "use a::{", "fn f", "#define M "),
    *("typedef ", "public class K ", "enum E ", "template <"),
]
REPEATED = [
    *PIECES,
    *("export {\n", "a.", "a::", "x = ", "/* ", "struct\n", "typedef struct {\n", '" ', "use a,\n", "import (", "(\n"),
    *("def f(\n", "class A:\n", "//\n", "type (\n", "const x = {\n", "@a\n", "impl<", "static const ", "\\\n", "a->"),
]
FAMILIES = {id(language): language for language in LANGUAGES.values()}.values()


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_what_is_shown_are_lines_of_the_file_in_their_order(text: str) -> None:
    lines = text.split("\n")
    for language in FAMILIES:
        code = Code(text, language)
        assert len(code.bare) == len(text)
        assert code.bare.count("\n") == text.count("\n")
        list(code.imports)
        for name in code.index:
            found = code.define(name)
            if found is None:
                continue
            first, end = found.lines
            rest = iter(lines[first:end])
            assert found.text.endswith("\n")
            assert all(line in rest for line in found.text.removesuffix("\n").split("\n"))  # each behind the one before
            assert found.head in lines[first:end]


@pytest.mark.parametrize("piece", REPEATED)
def test_the_time_for_a_text_grows_with_its_length_alone(piece: str) -> None:
    """Of what grows with its square this would take minutes."""
    text = piece * (100_000 // len(piece))
    for language in FAMILIES:
        code = Code(text, language)
        list(code.imports)
        language.statement.sub("", text[:4000])
        for name in list(code.index)[:50]:
            code.define(name)


def test_a_cursor_behind_much_that_makes_no_sense(project: Project) -> None:
    for piece in PIECES:
        for name in ("main.py", "main.ts", "main.go", "main.rs", "A.java", "main.c"):
            project.snippets(name, piece * 3000 + "⟦|⟧" + piece * 300)
