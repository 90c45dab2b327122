"""Notebooks through the real server: in sync by their cells, or opened as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.conftest import Editor, script, settings
from tests.lsp_client import LspClient
from tests.services.ffm import FfmService

pytestmark = pytest.mark.e2e

NOTEBOOK = "file:///home/user/project/a.ipynb"


def cell_uri(name: str) -> str:
    return f"vscode-notebook-cell:/home/user/project/a.ipynb#{name}"


def cell(name: str, kind: int = 2) -> dict[str, Any]:
    return {
        "kind": kind,
        "document": cell_uri(name),
        "metadata": {"tags": []},
        "executionSummary": {"executionOrder": 1},
    }


def text(name: str, content: str, language: str = "python") -> dict[str, Any]:
    return {"uri": cell_uri(name), "languageId": language, "version": 1, "text": content}


def opened(editor: Editor, client: LspClient | None = None) -> LspClient:
    client = client or editor(
        "vscode-1.139", workspaceFolders=[{"uri": "file:///home/user/project", "name": "project"}]
    )
    document = {
        "uri": NOTEBOOK,
        "notebookType": "jupyter-notebook",
        "version": 1,
        "metadata": {"kernelspec": {"display_name": "Python 3"}},
        "cells": [cell("a"), cell("m", 1), cell("b"), cell("c")],
    }
    texts = [text("a", "x = 1"), text("m", "# Sums", "markdown"), text("b", "y = \n"), text("c", "!ls")]
    client.notify("notebookDocument/didOpen", {"notebookDocument": document, "cellTextDocuments": texts})
    return client


def change(client: LspClient, **cells: Any) -> None:
    document = {"uri": NOTEBOOK, "version": 2}
    client.notify("notebookDocument/didChange", {"notebookDocument": document, "change": {"cells": cells}})


def replaced(start: tuple[int, int], end: tuple[int, int], new: str) -> dict[str, Any]:
    ends = [{"line": line, "character": character} for line, character in (start, end)]
    return {"range": {"start": ends[0], "end": ends[1]}, "text": new}


def last(ffm: FfmService) -> tuple[str, str]:
    before, _, after = ffm.log[-1].body["inputs"].partition("<FILL_ME>")
    return before, after


def test_a_cell_is_completed_among_the_others(editor: Editor, ffm: FfmService) -> None:
    script(ffm, "x + 1\n# %%\nprint(y)")
    client = opened(editor)
    assert client.initialized["capabilities"]["notebookDocumentSync"]["save"] is True
    (item,) = client.items(cell_uri("b"), (0, 4))
    assert item["insertText"] == "x + 1"
    assert item["range"]["start"] == item["range"]["end"] == {"line": 0, "character": 4}
    before, after = last(ffm)
    assert before.endswith("# %%\nx = 1\n\n# %% [markdown]\n# # Sums\n\n# %%\ny = ")
    assert after == "\n\n# %%\n!ls\n\n"
    change(
        client,
        structure={
            "array": {"start": 0, "deleteCount": 1, "cells": [cell("d")]},
            "didOpen": [text("d", "😀 = x")],
            "didClose": [{"uri": cell_uri("a")}],
        },
        data=[cell("d"), cell("m", 1)],
        textContent=[
            {
                "document": {"uri": cell_uri("d"), "version": 2},
                "changes": [replaced((0, 0), (0, 2), "z"), replaced((0, 5), (0, 5), "1")],
            }
        ],
    )
    assert len(client.items(cell_uri("b"), (0, 4), 2)) == 1
    assert last(ffm)[0].endswith("# %%\nz = x1\n\n# %% [markdown]\n# # Sums\n\n# %%\ny = ")
    assert client.items(cell_uri("a"), (0, 4)) == []
    assert client.items(NOTEBOOK, (0, 0)) == []
    client.notify("notebookDocument/didSave", {"notebookDocument": {"uri": NOTEBOOK}})
    closed = [{"uri": cell_uri(name)} for name in "dmbc"]
    client.notify("notebookDocument/didClose", {"notebookDocument": {"uri": NOTEBOOK}, "cellTextDocuments": closed})
    assert client.items(cell_uri("b"), (0, 4)) == []
    assert client.reasons() == {"shown": 2, "not-open": 3}
    client.shut_down()
    assert "Traceback" not in client.stderr


BAD: list[tuple[str, Any]] = [
    ("notebookDocument/didChange", {"notebookDocument": {"uri": NOTEBOOK, "version": 2}, "change": 7}),
    ("notebookDocument/didChange", {"notebookDocument": {"uri": NOTEBOOK}, "change": {}}),
    (
        "notebookDocument/didChange",
        {
            "notebookDocument": {"uri": NOTEBOOK, "version": 2},
            "change": {"cells": {"structure": {"array": {"start": 9, "deleteCount": 1}}}},
        },
    ),
    (
        "notebookDocument/didChange",
        {
            "notebookDocument": {"uri": NOTEBOOK, "version": 2},
            "change": {"cells": {"textContent": [{"document": {"uri": cell_uri("b"), "version": 2}, "changes": [{}]}]}},
        },
    ),
    ("notebookDocument/didOpen", {"notebookDocument": {"uri": NOTEBOOK, "cells": "SECRET"}}),
    ("notebookDocument/didClose", {"notebookDocument": {"uri": NOTEBOOK}}),
]


def test_messages_that_make_no_sense_end_in_silence_until_it_is_opened_again(editor: Editor, ffm: FfmService) -> None:
    client = opened(editor)
    for method, params in BAD:
        assert len(client.items(cell_uri("b"), (0, 4))) == 1
        client.notify(method, params)
        assert client.items(cell_uri("b"), (0, 4)) == [], params
        opened(editor, client)
    for params in (None, 7, {}, {"notebookDocument": 3}, {"notebookDocument": {"uri": "file:///no", "version": 1}}):
        for method in ("didOpen", "didChange", "didSave", "didClose"):
            client.notify(f"notebookDocument/{method}", params)
    change(client, textContent=[{"document": {"uri": "file:///no", "version": 1}, "changes": [{"text": "x"}]}])
    assert len(client.items(cell_uri("b"), (0, 4))) == 1
    client.shut_down()
    assert "SECRET" not in client.stderr
    assert "Traceback" not in client.stderr


def test_a_cell_is_ignored_as_its_notebook_is(editor: Editor, ffm: FfmService, config: Any) -> None:
    config.write_text(settings(ffm.url, more='[privacy]\nignore = ["a.ipynb"]'), encoding="utf-8")
    client = opened(editor)
    assert client.items(cell_uri("b"), (0, 4)) == []
    client.open("file:///home/user/project/b.py", "z = \n")
    assert len(client.items("file:///home/user/project/b.py", (0, 4))) == 1
    assert client.reasons() == {"ignored-file": 1, "shown": 1}
    assert "x = 1" not in ffm.log[-1].body["inputs"]
    client.shut_down()


def stored(*sources: list[str]) -> str:
    outputs = [{"data": {"image/png": "CANARY" * 100}, "metadata": {}, "output_type": "display_data"}]
    cells = [{"cell_type": "code", "metadata": {}, "outputs": outputs, "source": source} for source in sources]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}, indent=1) + "\n"


def test_a_notebook_opened_as_json(editor: Editor, ffm: FfmService) -> None:
    script(ffm, 'x + ["1",\n    x]')
    client = editor()
    content = stored(["x = 1\n", "y = \n", "z"], ["w = 2"])
    client.open(NOTEBOOK, content, language="json")
    lines = content.split("\n")
    line = next(n for n, each in enumerate(lines) if '"y = ' in each)
    at = line, lines[line].index("y = ") + 4
    (item,) = client.items(NOTEBOOK, at, 2)
    assert item["insertText"] == 'x + [\\"1\\",\\n",\n    "    x]'
    start = item["range"]["start"]
    lines[line] = lines[line][: start["character"]] + item["insertText"] + lines[line][start["character"] :]
    written = json.loads("\n".join(lines))["cells"][0]["source"]
    assert written == ["x = 1\n", 'y = x + ["1",\n', "    x]\n", "z"]
    assert last(ffm) == ("# %%\nx = 1\ny = ", "\nz\n\n# %%\nw = 2\n\n")
    client.change(NOTEBOOK, 2, at, 'x + [\\"')
    (item,) = client.items(NOTEBOOK, (line, at[1] + 7), 2)
    assert item["insertText"] == '1\\",\\n",\n    "    x]', "typed through"
    assert len(ffm.log) == 1
    assert client.items(NOTEBOOK, (0, 1)) == []
    assert client.reasons() == {"shown": 2, "outside-code": 1}
    client.open("file:///home/user/project/b.py", "z = \n")
    assert len(client.items("file:///home/user/project/b.py", (0, 4))) == 1
    inputs = ffm.log[-1].body["inputs"]
    assert 'x = 1\ny = x + ["\nz\n' in inputs
    assert "cell_type" not in inputs
    assert not [seen for seen in ffm.log if "CANARY" in json.dumps(seen.body)]
    client.shut_down()
