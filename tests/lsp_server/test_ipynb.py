"""Notebooks opened as JSON: what is asked is their code, and an answer stands in the JSON as it was written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion.types import Completion, CompletionContext, DocumentSnapshot, PlainText, Reason, Selected
from lsp_server import ipynb
from lsp_server.documents import Documents
from lsp_server.ipynb_json import decoded, encoded, read
from lsp_server.view import View

SECRET = "iVBORw0KGgo" * 50


def code(source: Any, **more: Any) -> dict[str, Any]:
    outputs = [{"data": {"image/png": SECRET, "text/plain": ["{[", '"']}, "output_type": "display_data"}]
    return {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": outputs, "source": source, **more}


def prose(source: Any) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def stored(*cells: dict[str, Any], indent: int | None = 1, language: str = "python") -> str:
    metadata = {"kernelspec": {"language": language, "name": "k"}, "widgets": {"state": SECRET}}
    notebook = {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=indent, ensure_ascii=False) + "\n"


def asked(text: str, offset: int, selected: Selected | None = None) -> CompletionContext:
    document = DocumentSnapshot("file:///w/a.ipynb", "json", 1, PlainText(text), "a.ipynb", "/w")
    return CompletionContext(document, offset, selected=selected)


def view_at(marked: str) -> View | Reason:
    text = marked.replace("⟦|⟧", "")
    return ipynb.view(asked(text, marked.index("⟦|⟧")), read(text))


def around(view: View) -> tuple[str, str]:
    context = view.context
    text = context.document.text.slice(0, len(context.document.text))
    return text[: context.offset], text[context.offset :]


def inserted(marked: str, answer: str) -> str:
    """The JSON with an answer accepted."""
    view = view_at(marked)
    assert isinstance(view, View)
    offset = view.context.offset
    found = view.outcome(Completion(answer, offset, offset, "1"))
    assert isinstance(found, Completion)
    text = marked.replace("⟦|⟧", "")
    assert found.start == found.end == marked.index("⟦|⟧")
    return text[: found.start] + found.text + text[found.end :]


def test_the_code_above_and_below_is_what_the_model_sees() -> None:
    view = view_at(
        stored(
            prose(["# Prices\n", f"![](data:image/png;base64,{SECRET})\n", "of today"]),
            code(["import numpy as np\n", "a = 1"]),
            code(["!pip install x\n", "%matplotlib inline\n", "b = ⟦|⟧\n", 'print("b")']),
            code("%%bash\nls"),
            code(["c = 3"]),
        )
    )
    assert isinstance(view, View)
    before, after = around(view)
    assert before == (
        "# %% [markdown]\n# # Prices\n# of today\n\n# %%\nimport numpy as np\na = 1\n\n"
        "# %%\n!pip install x\n%matplotlib inline\nb = "
    )
    assert after == '\nprint("b")\n\n# %%\nc = 3\n\n'
    document = view.context.document
    assert (document.language_id, document.path, document.uri) == ("python", "a.ipynb", "file:///w/a.ipynb")


@pytest.mark.parametrize("indent", [1, 4, "\t"])
def test_each_line_of_an_answer_is_a_string_of_its_own(indent: int) -> None:
    text = inserted(stored(code(["for x in y:\n", "    ⟦|⟧\n", "z"]), indent=indent), 'print("a\\n")\n    é = "\t"')
    assert text == stored(code(["for x in y:\n", '    print("a\\n")\n', '    é = "\t"\n', "z"]), indent=indent)
    assert inserted(stored(code(["a = ⟦|⟧"])), "1\nb = 2") == stored(code(["a = 1\n", "b = 2"]))
    assert inserted(stored(code([""])).replace('"source": [\n    ""', '"source": [\n    "⟦|⟧"'), "1\n2") == stored(
        code(["1\n", "2"])
    )


def test_behind_a_line_end_another_string_begins() -> None:
    marked = stored(code(["a\n", "b"])).replace('"a\\n"', '"a\\n⟦|⟧"')
    assert inserted(marked, "x = 1\n") == stored(code(["a\n", "x = 1\n", "b"]))


def test_a_source_that_is_one_string_stays_one() -> None:
    assert inserted(stored(code("a = ⟦|⟧\nb")), "1\nc = 2") == stored(code("a = 1\nc = 2\nb"))
    line = stored(code(["a = ⟦|⟧\n", "b"]), indent=None)
    assert inserted(line, "1\nc = 2") == stored(code(["a = 1\n", "c = 2\n", "b"]), indent=None)


def test_line_ends_of_the_file_are_kept() -> None:
    marked = stored(code(["a\n", "b = ⟦|⟧"])).replace("\n", "\r\n")
    assert inserted(marked, "1\nc") == stored(code(["a\n", "b = 1\n", "c"])).replace("\n", "\r\n")


@pytest.mark.parametrize(
    "change",
    [
        ('"cell_type"', '"cell⟦|⟧_type"'),
        ('"image/png": "', '"image/png": "⟦|⟧'),
        ('"display_data"', '"display⟦|⟧_data"'),
        ('"metadata"', '⟦|⟧"metadata"'),
        ('"state": "', '"state": "⟦|⟧'),
        ('"a\\n"', '⟦|⟧"a\\n"'),
        ('"a\\n"', '"a\\⟦|⟧n"'),  # inside an escape
        ('"a\\n"', '"a\\d⟦|⟧\\n"'),  # no escape
        ('"a\\n"', '"a⟦|⟧\\n'),  # not finished
        ('"a\\n"', '"a = "⟦|⟧x"\\n"'),
        ('"cells"', '"worksheets"⟦|⟧'),
        ("{", "⟦|⟧{"),
    ],
)
def test_elsewhere_there_is_silence(change: tuple[str, str]) -> None:
    text = stored(code(["a\n", "b"]))
    assert view_at(text.replace(*change, 1)) is Reason.OUTSIDE_CODE


def test_prose_is_completed_as_prose() -> None:
    view = view_at(stored(prose(["# A\n", "We ⟦|⟧"]), code(["x = 1\n", "y = 2"]), prose("then")))
    assert isinstance(view, View)
    assert view.context.document.language_id == "markdown"
    assert around(view) == ("# A\nWe ", "\n\n```python\nx = 1\ny = 2\n```\n\nthen\n\n")


def test_languages() -> None:
    def language(text: str) -> str:
        view = view_at(text)
        assert isinstance(view, View)
        return view.context.document.language_id

    assert language(stored(code(["⟦|⟧x"]), language="R")) == "r"
    assert language(stored(code(["%%bash\n", "ls ⟦|⟧"]))) == "shellscript"
    assert language(stored(code(["%%time\n", "ls ⟦|⟧"]))) == "python"
    assert language(stored(code(["ls ⟦|⟧"], metadata={"vscode": {"languageId": "rust"}}))) == "rust"


def test_what_is_broken_below_or_no_json_does_not_matter() -> None:
    view = view_at(stored(code(["a = 1"]), code(["b = ⟦|⟧"]), code(["c"])).replace('"c"', '"c'))
    assert isinstance(view, View)
    assert around(view)[0] == "# %%\na = 1\n\n# %%\nb = "
    assert read("# %%\nx = 1\n") is None, "an editor that shows the notebook as a script"
    context = asked("# %%\nx = 1\n", 5)
    assert ipynb.view(context, None) == View(context, context)
    assert view_at("<<<<<<< ours\n" + stored(code(["a⟦|⟧"]))) is Reason.OUTSIDE_CODE
    assert isinstance(view_at("\ufeff" + stored(code(["a⟦|⟧"]))), View)


def test_the_chosen_entry_of_a_menu() -> None:
    text = stored(code(['x = "é\\"" + pri\n', "y"]))
    at = text.index("pri")
    view = ipynb.view(asked(text, at + 3, Selected("print", at, at + 3)), read(text))
    assert isinstance(view, View)
    inner, selected = view.context.document.text, view.context.selected
    assert selected is not None
    assert inner.slice(selected.start, selected.end) == "pri"
    found = view.outcome(Completion("print(x)\ny", selected.start, selected.end, "1"))
    assert isinstance(found, Completion)
    assert text[found.start : found.end] == "pri"
    outside = ipynb.view(asked(text, at, Selected("x", at, at + 40)), read(text))
    assert outside is Reason.OUTSIDE_CODE
    assert view.outcome(Completion("x", selected.start, selected.end + 10, "1")) != found


def test_as_a_neighbour_it_is_its_code() -> None:
    documents = Documents()
    documents.open("file:///w/a.ipynb", "json", 1, stored(prose("# T"), code(["a = 1\n", "b"])))
    documents.open("file:///w/script.ipynb", "python", 1, "# %%\nx\n")
    documents.open("file:///w/b.py", "python", 1, "")
    script, notebook = documents.others("file:///w/b.py", 5)
    assert notebook.text.slice(0, 1000) == "# %% [markdown]\n# # T\n\n# %%\na = 1\nb\n\n"
    assert (notebook.uri, notebook.language_id) == ("file:///w/a.ipynb", "python")
    assert script.text.slice(0, 100) == "# %%\nx\n"
    documents.touch("file:///w/a.ipynb")
    documents.touch("file:///w/b.py")
    assert documents.others("file:///w/b.py", 5)[0] is notebook, "as long as it does not change"


TEXTS = st.text(alphabet='ab"\\\n\t\ré😀{[\u2028\x00,', max_size=12)


@settings(max_examples=50)
@given(TEXTS)
def test_escapes_and_back(text: str) -> None:
    assert decoded(encoded(text)) == text
    assert decoded(json.dumps(text)[1:-1]) == text


def test_halves_of_pairs_can_be_sent() -> None:
    assert decoded("a\\ud83d\\ude00\\ud83d.") == "a\N{GRINNING FACE}\ufffd."
    assert decoded("a\\d") is None


@settings(max_examples=60)
@given(
    sources=st.lists(TEXTS, min_size=1, max_size=4),
    answer=TEXTS.filter(bool),
    data=st.data(),
    indent=st.sampled_from([None, 1, 2]),
    ascii_only=st.booleans(),
    listed=st.booleans(),
)
def test_an_answer_anywhere_in_any_notebook(
    sources: list[str], answer: str, data: st.DataObject, indent: int | None, *, ascii_only: bool, listed: bool
) -> None:
    cells = [code(lines_of(source) if listed else source) for source in sources]
    text = json.dumps({"cells": cells, "metadata": {}}, indent=indent, ensure_ascii=ascii_only)
    parsed = read(text)
    assert parsed is not None
    assert [cell.text for cell in parsed.cells] == sources
    number = data.draw(st.integers(0, len(sources) - 1))
    pieces = parsed.cells[number].pieces
    nth = data.draw(st.integers(0, len(pieces) - 1))
    at = data.draw(st.integers(0, len(pieces[nth].shown)))
    offset = pieces[nth].offset_of(at)
    assert pieces[nth].index_of(offset) == at
    view = ipynb.view(asked(text, offset), parsed)
    assert isinstance(view, View)
    found = view.outcome(Completion(answer, view.context.offset, view.context.offset, "1"))
    assert isinstance(found, Completion)
    written = json.loads(text[: found.start] + found.text + text[found.end :])["cells"]
    start = sum(len(each.shown) for each in pieces[:nth]) + at
    before, after = sources[number][:start], sources[number][start:]
    assert around(view)[0].endswith(before)
    assert around(view)[1].startswith(after)
    sources[number] = before + answer + after
    assert ["".join(cell["source"]) for cell in written] == sources
    # The beginning of a line that goes on in the next string stays apart from it: only this string may be written.
    parted = pieces[nth].shown[:at].endswith("\n") and after and not answer.endswith("\n")
    if listed and not parted:
        assert all(line.endswith("\n") and line.count("\n") == 1 for line in written[number]["source"][:-1])


def lines_of(text: str) -> list[str]:
    """As notebooks are stored; an empty source keeps a string to write in."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last or not whole else [])
