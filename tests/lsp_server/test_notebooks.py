"""Notebooks as the client tells of them: the order of cells against a plain list, and what each cell is asked as."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion.context.leaves import leaves as leaves_of
from completion.types import Completion, CompletionContext, NoSuggestion, Reason, Selected
from lsp_server.documents import Documents
from lsp_server.edit import Edit
from lsp_server.notebook_messages import Change, Opened, Placed
from lsp_server.notebooks import BadNotebookError, Notebooks
from lsp_server.positions import Encoding
from lsp_server.uris import Root
from lsp_server.view import View

URI = "file:///w/sub/a.ipynb"


def cell_uri(name: str) -> str:
    return f"vscode-notebook-cell:/w/sub/a.ipynb#{name}"


def placed(*names: str) -> tuple[Placed, ...]:
    """Names that begin with `m` are of prose."""
    return tuple(Placed(cell_uri(name), name.startswith("m")) for name in names)


def opened(*cells: tuple[str, str], language: str = "python") -> tuple[Opened, ...]:
    return tuple(Opened(cell_uri(name), language, 1, text) for name, text in cells)


class Desk:
    def __init__(self, *cells: tuple[str, str], encoding: Encoding = Encoding.UTF16) -> None:
        self.documents = Documents(encoding)
        self.documents.set_roots([Root("file:///w")])
        self.notebooks = Notebooks(self.documents)
        self.notebooks.open(URI, 1, placed(*(name for name, _ in cells)), opened(*cells))

    def view(self, name: str, offset: int = 0, selected: Selected | None = None) -> View | Reason:
        document = self.documents.get(cell_uri(name))
        if document is None:
            return Reason.NOT_OPEN
        return document.view(CompletionContext(document.snapshot(), offset, selected=selected))

    def around(self, name: str, offset: int = 0) -> tuple[str, str]:
        view = self.view(name, offset)
        assert isinstance(view, View)
        context = view.context
        whole = context.document.text.slice(0, len(context.document.text))
        return whole[: context.offset], whole[context.offset :]

    def change(self, **fields: object) -> bool:
        return self.notebooks.change(URI, 2, Change(**fields))  # type: ignore[arg-type]

    def splice(self, start: int, deleted: int, *names: str, texts: Sequence[tuple[str, str]] = ()) -> bool:
        return self.change(splice=(start, deleted, placed(*names)), opened=opened(*texts))

    @property
    def quoted(self) -> str:
        (found,) = self.documents.others("file:///w/other.py", 5)
        return found.text.slice(0, len(found.text))


def test_cells_above_run_before_and_those_below_follow() -> None:
    desk = Desk(("a", "x = 1"), ("m", "# Title\n\ntext"), ("b", "%matplotlib inline\ny = \n"), ("c", "!ls"))
    before, after = desk.around("b", 23)
    assert before == "# %%\nx = 1\n\n# %% [markdown]\n# # Title\n# text\n\n# %%\n%matplotlib inline\ny = "
    assert after == "\n\n# %%\n!ls\n\n"
    view = desk.view("b", 23, Selected("yes", 20, 23))
    assert isinstance(view, View)
    assert view.context.document.uri == URI
    assert view.context.document.path == "sub/a.ipynb"
    selected, base = view.context.selected, view.context.offset - 23
    assert selected is not None
    assert (selected.start - base, selected.end - base) == (20, 23)
    assert view.outcome(Completion("yes!", base + 20, base + 23, "1")) == Completion("yes!", 20, 23, "1")
    outside, other = Completion("no", base + 20, base + 200, "1"), Completion("ok", base + 20, base + 23, "2")
    assert isinstance(view.outcome(outside), NoSuggestion)
    several = view.outcome(Completion("yes!", base + 20, base + 23, "1", (outside, other)))
    assert several == Completion("yes!", 20, 23, "1", (Completion("ok", 20, 23, "2"),))


def test_other_languages_are_left_out() -> None:
    desk = Desk(("a", "x = 1"), ("b", "%%bash\nls"), ("c", "%%time\ny"))
    desk.splice(3, 0, "d", texts=())  # its text never comes
    desk.change(splice=(4, 0, placed("e")), opened=opened(("e", "SELECT 1"), language="sql"))
    assert desk.around("a") == ("# %%\n", "x = 1\n\n# %%\n%%time\ny\n\n")
    assert desk.around("b") == ("# %%\n", "%%bash\nls\n\n")
    assert desk.around("e") == ("-- %%\n", "SELECT 1\n\n")
    assert desk.view("d") is Reason.NOT_OPEN
    assert desk.quoted == "# %%\nx = 1\n\n# %%\n%%time\ny\n\n"


def test_a_notebook_is_one_neighbour_and_is_not_its_own() -> None:
    desk = Desk(("a", "x = 1"), ("b", "y"))
    desk.documents.open("file:///w/other.py", "python", 1, "")
    (found,) = desk.documents.others("file:///w/other.py", 5)
    assert (found.uri, found.language_id, found.path) == (URI, "python", "sub/a.ipynb")
    assert [each.uri for each in desk.documents.others(cell_uri("b"), 5)] == ["file:///w/other.py"]
    desk.documents.touch(cell_uri("a"))
    assert next(iter(desk.documents)).uri == URI
    document = desk.documents.get(URI)
    assert document is not None
    assert document.view(CompletionContext(document.snapshot(), 0)) is Reason.NOT_OPEN, "a cell must be named"
    assert desk.documents.others("file:///w/other.py", 5)[0] is found
    desk.documents.set_roots([Root("file:///w/sub")])
    cell = desk.documents.get(cell_uri("b"))
    assert cell is not None
    assert (cell.path, cell.repo) == ("a.ipynb", "sub")
    assert desk.documents.others("file:///w/other.py", 5)[0].path == "a.ipynb"


def test_a_cell_changes_its_kind_or_language() -> None:
    desk = Desk(("a", "x = 1"), ("b", "y"))
    desk.change(properties=(Placed(cell_uri("a"), True), Placed(cell_uri("nobody"), True)))
    assert desk.around("b") == ("# %% [markdown]\n# x = 1\n\n# %%\n", "y\n\n")
    desk.change(splice=(0, 1, placed("a")), closed=(cell_uri("a"),), opened=opened(("a", "ls"), language="r"))
    assert desk.around("b") == ("# %%\n", "y\n\n")


def test_a_cell_opened_as_a_document_too_is_known_once() -> None:
    desk = Desk(("a", "x"))
    desk.documents.open(cell_uri("a"), "python", 1, "other text")
    assert desk.documents.change(cell_uri("a"), 2, [Edit("again")]) is None
    assert desk.around("a") == ("# %%\n", "x\n\n")
    desk.documents.open(cell_uri("b"), "python", 1, "before its notebook tells")
    desk.splice(1, 0, "b", texts=[("b", "y")])
    assert desk.around("b")[1] == "y\n\n"
    assert len(desk.documents) == 1
    assert desk.notebooks.close(URI) == {URI}
    assert not desk.notebooks.close(URI)
    assert desk.documents.get(cell_uri("a")) is None
    assert len(desk.documents) == 0
    assert not desk.documents.parts


@pytest.mark.parametrize(
    ("start", "deleted", "names"),
    [(3, 0, ()), (-1, 0, ()), (1, 2, ()), (0, -1, ()), (0, 0, ("b",)), (0, 1, ("c", "c"))],
)
def test_contradictions_are_told(start: int, deleted: int, names: tuple[str, ...]) -> None:
    desk = Desk(("a", "x"), ("b", "y"))
    with pytest.raises(BadNotebookError):
        desk.splice(start, deleted, *names)
    with pytest.raises(BadNotebookError):
        desk.notebooks.open("file:///w/second.ipynb", 1, placed("a"), opened(("a", "z")))
    assert not desk.notebooks.change("file:///w/third.ipynb", 1, Change())


def test_columns_are_the_clients_and_line_ends_the_cells() -> None:
    for encoding in Encoding:
        desk = Desk(("a", "x"), ("b", "é = '😀'\r\n"), encoding=encoding)
        column = len("é = '".encode()) if encoding is Encoding.UTF8 else 5
        wide = {Encoding.UTF8: 4, Encoding.UTF16: 2, Encoding.UTF32: 1}[encoding]
        desk.change(texts=((cell_uri("b"), 2, (Edit("ß", (0, column, 0, column + wide)), Edit("z", (1, 0, 1, 0)))),))
        assert desk.around("b")[1] == "é = 'ß'\r\nz\r\n\r\n"
        desk.change(texts=((cell_uri("nobody"), 2, (Edit("z"),)),))


NAMES = [f"{kind}{n}" for kind in "cm" for n in range(5)]


@settings(max_examples=60)
@given(data=st.data())
def test_structure_against_a_list(data: st.DataObject) -> None:
    desk, model, texts = Desk(), list[str](), dict[str, str]()
    for step in range(data.draw(st.integers(1, 5))):  # six lines of prose are shown
        start = data.draw(st.integers(0, len(model)))
        deleted = data.draw(st.integers(0, len(model) - start))
        taken = model[start : start + deleted]
        free = [name for name in NAMES if name not in model or name in taken]
        names = data.draw(st.lists(st.sampled_from(free), unique=True, max_size=3)) if free else []
        new = {name: f"{name} = {step}\n" for name in names if name not in taken}
        gone = tuple(cell_uri(name) for name in taken if name not in names)
        model[start : start + deleted] = names
        texts.update(new)
        desk.change(splice=(start, deleted, placed(*names)), opened=opened(*new.items()), closed=gone)
        if model:
            name = data.draw(st.sampled_from(model))
            texts[name] += f"# {step}\n"
            lines = texts[name].count("\n") - 1
            desk.change(texts=((cell_uri(name), step, (Edit(f"# {step}\n", (lines, 0, lines, 0)),)),))
        assert desk.quoted == "".join(
            f"# %%\n{texts[name]}\n"
            if name.startswith("c")
            else "".join(["# %% [markdown]\n", *(f"# {line}\n" for line in texts[name].split("\n") if line), "\n"])
            for name in model
        )
        for name in NAMES:
            assert (desk.view(name) is Reason.NOT_OPEN) == (name not in model)


def test_what_did_not_change_is_not_read_again() -> None:
    desk = Desk(("a", "x = 1\r\ny"), ("m", "Text"), ("b", "z"))

    def leaves(name: str) -> Sequence[tuple[str, ...]]:
        view = desk.view(name)
        assert isinstance(view, View)
        return leaves_of(view.context.document.text)

    first = leaves("a")
    assert first == [
        ("# %%\r\n", "x = 1\r\n", "y\r\n", "\r\n"),
        ("# %% [markdown]\n", "# Text\n", "\n"),
        ("# %%\n", "z\n", "\n"),
    ]
    desk.change(texts=((cell_uri("b"), 2, (Edit("zz"),)),))
    second = leaves("b")
    assert [old is new for old, new in zip(first, second, strict=True)] == [True, True, False]
    assert len(leaves("m")) == 3


def test_a_notebooks_text_in_another_language_has_another_name() -> None:
    desk = Desk(("a", "x = 1"), ("m", "Text"))
    found = {name: desk.view(name) for name in "am"}
    names = [view.context.document.uri for view in found.values() if isinstance(view, View)]
    assert names == [URI, f"{URI}#markdown"]
    assert desk.notebooks.close(URI) == {URI, f"{URI}#markdown"}, "nothing is kept of either"
