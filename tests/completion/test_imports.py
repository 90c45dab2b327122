"""Definitions behind imported names: Python, and what holds for all languages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from completion.types import CompletionContext, DocumentSnapshot, PlainText
from tests.completion.project import Project

SHAPES = '''"""Shapes."""
import math

LIMIT = 10  # units


@dataclass(frozen=True)
class Circle(Shape):
    """A circle.

    Round.
    """

    radius: float
    name: str = field(
        default="",
    )

    def __init__(self) -> None:
        self.x = 1

    @property
    def area(self) -> float:
        """Its area."""
        def inner() -> None: ...
        return math.pi

    def _hidden(self) -> None:
        pass


def scale(
    shape: Circle,
    *,
    by: float = 2.0,
) -> Circle:
    """Makes it larger.

    More.
    """
    return shape


if True:

    def conditional() -> int:
        return 1
'''


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write({"pkg/__init__.py": "", "pkg/shapes.py": SHAPES})
    return made


def test_a_signature_is_whole_and_a_body_is_not_shown(project: Project) -> None:
    (snippet, of_header) = project.snippets("main.py", "from pkg.shapes import scale\n\nscale(⟦|⟧")
    assert snippet.text == (
        'def scale(\n    shape: Circle,\n    *,\n    by: float = 2.0,\n) -> Circle:\n    """Makes it larger.\n'
    )
    assert (snippet.source, snippet.path, snippet.score, snippet.lines) == ("imports", "pkg/shapes.py", 1.0, (31, 37))
    assert snippet.uri == (project.root / "pkg/shapes.py").as_uri()
    assert of_header.text.startswith("@dataclass(frozen=True)\nclass Circle(Shape):\n")
    assert of_header.score < snippet.score


def test_a_class_is_shown_with_its_fields_and_public_methods(project: Project) -> None:
    (snippet,) = project.snippets("main.py", "from pkg.shapes import Circle as C\nc = C⟦|⟧\n")
    assert snippet.text == (
        '@dataclass(frozen=True)\nclass Circle(Shape):\n    """A circle.\n    radius: float\n'
        '    name: str = field(\n        default="",\n    )\n    def __init__(self) -> None:\n'
        "    @property\n    def area(self) -> float:\n"
    )


@pytest.mark.parametrize(
    ("path", "text", "shown"),
    [
        ("main.py", "import pkg.shapes\npkg.shapes.LIMIT⟦|⟧", "LIMIT = 10  # units\n"),
        ("main.py", "import pkg.shapes as s\ns.LIMIT⟦|⟧", "LIMIT = 10  # units\n"),
        ("main.py", "from pkg import shapes\nshapes.LIMIT⟦|⟧", "LIMIT = 10  # units\n"),
        ("main.py", "from pkg.shapes import *\nLIMIT⟦|⟧", "LIMIT = 10  # units\n"),
        (
            "main.py",
            "from pkg.shapes import (\n    LIMIT as most,  # why\n    other,\n)\nmost⟦|⟧",
            "LIMIT = 10  # units\n",
        ),
        ("main.py", "from pkg.shapes import other, \\\n    LIMIT\nLIMIT⟦|⟧", "LIMIT = 10  # units\n"),
        ("main.py", "def f():\n    from pkg.shapes import LIMIT\n    LIMIT⟦|⟧", "LIMIT = 10  # units\n"),
        ("main.py", "from pkg.shapes import conditional\nconditional⟦|⟧", "    def conditional() -> int:\n"),
        ("pkg/a.py", "from .shapes import LIMIT\nLIMIT⟦|⟧", "LIMIT = 10  # units\n"),
        ("pkg/a.py", "from . import shapes\nshapes.LIMIT⟦|⟧", "LIMIT = 10  # units\n"),
        ("pkg/sub/a.py", "from ..shapes import LIMIT\nLIMIT⟦|⟧", "LIMIT = 10  # units\n"),
        ("pkg/script.py", "from shapes import LIMIT\nLIMIT⟦|⟧", "LIMIT = 10  # units\n"),
        ("main.py", "from pkg.shapes import LIMIT\r\nLIMIT⟦|⟧\r\n", "LIMIT = 10  # units\n"),
    ],
)
def test_python_imports_lead_to(project: Project, path: str, text: str, shown: str) -> None:
    assert project.texts(path, text) == {"pkg/shapes.py": shown}


@pytest.mark.parametrize(
    "text",
    [
        "import math\nmath.pi⟦|⟧",
        "from pkg.shapes import missing\nmissing⟦|⟧",
        "from pkg.shapes import _hidden, inner, area\n⟦|⟧",  # members, not names of the module
        "from ...shapes import LIMIT\nLIMIT⟦|⟧",  # out of the workspace
        "from pkg.elsewhere import LIMIT\nLIMIT⟦|⟧",
        "import pkg.shapes\n⟦|⟧",  # nothing of it is used
        '"""\nfrom pkg.shapes import LIMIT\n"""\nLIMIT⟦|⟧',
        "# from pkg.shapes import LIMIT\nLIMIT⟦|⟧",
        "from pkg.shapes import LIMIT, ⟦|⟧nothing",  # the line being typed
        "⟦|⟧",
    ],
)
def test_python_text_that_leads_nowhere(project: Project, text: str) -> None:
    assert project.snippets("main.py", text) == []


def test_a_src_folder_is_a_root_for_what_stands_beside_it(project: Project) -> None:
    project.write({"lib/src/tool/core.py": "def run() -> None:\n    pass\n"})
    shown = project.texts("lib/tests/test_core.py", "from tool.core import run\nrun(⟦|⟧")
    assert shown == {"lib/src/tool/core.py": "def run() -> None:\n"}


def test_what_a_package_has_from_its_modules_is_found_there(project: Project) -> None:
    project.write(
        {"pkg/__init__.py": "from .shapes import LIMIT as MOST\nfrom .more import *\n", "pkg/more.py": "ONE = 1\n"}
    )
    shown = project.texts("main.py", "from pkg import MOST, ONE\nMOST + ONE⟦|⟧")
    assert shown == {"pkg/shapes.py": "LIMIT = 10  # units\n", "pkg/more.py": "ONE = 1\n"}


def test_modules_that_import_each_other_come_to_an_end(project: Project) -> None:
    project.write({"a.py": "from b import *\nfrom b import x\n", "b.py": "from a import *\nfrom a import x\n"})
    assert project.snippets("main.py", "from a import x\nfrom a import *\nx, y⟦|⟧") == []


def test_scores_fall_with_the_distance_of_use(project: Project) -> None:
    project.write({"m.py": "".join(f"def {name}(): ...\n" for name in ("called", "near", "far", "away", "unused"))})
    text = (
        "from m import called, near, far, away, unused\naway()\n"
        + "\n" * 30
        + "far()\n\n\n\nnear()\ncalled(1, (2), ⟦|⟧"
    )
    snippets = project.snippets("main.py", text)
    assert [snippet.text for snippet in snippets] == [
        f"def {name}(): ...\n" for name in ("called", "near", "far", "away", "unused")
    ]
    scores = [snippet.score for snippet in snippets]
    assert scores == sorted(set(scores), reverse=True)
    assert scores[0] == 1.0
    assert scores[2] > 0.24 > scores[3]


def test_behind_a_dot_all_that_may_follow_is_shown(project: Project) -> None:
    project.write({"m.py": "def load(): ...\ndef lose(): ...\ndef save(): ...\ndef _own(): ...\n"})
    assert project.texts("main.py", "import m\nm.⟦|⟧") == {
        "m.py": "def load(): ...\ndef lose(): ...\ndef save(): ...\n"
    }
    assert project.texts("main.py", "import m\nm.lo⟦|⟧") == {"m.py": "def load(): ...\ndef lose(): ...\n"}
    assert project.texts("main.py", "import m\nn.⟦|⟧") == {}


def test_what_the_window_shows_is_not_shown_again(project: Project) -> None:
    shown = "from pkg.shapes import LIMIT\nLIMIT = 10  # units\nLIMIT⟦|⟧"
    assert project.snippets("main.py", shown) == []
    assert project.snippets("main.py", shown, window=5) != []


def test_a_module_is_never_shown_to_itself(project: Project) -> None:
    assert project.snippets("pkg/shapes.py", "from pkg.shapes import scale\nscale(⟦|⟧") == []


def test_an_open_document_counts_and_not_its_file(project: Project) -> None:
    text = "from pkg.shapes import LIMIT\nfrom new import fresh\nLIMIT, fresh⟦|⟧"
    others = [project.document("pkg/shapes.py", "LIMIT = 11\r\n"), project.document("new.py", "fresh = 1\n")]
    assert project.texts("main.py", text, others=others) == {"pkg/shapes.py": "LIMIT = 11\n", "new.py": "fresh = 1\n"}
    again = [project.document("pkg/shapes.py", "LIMIT = 12\n")]
    assert project.texts("main.py", text, others=again) == {"pkg/shapes.py": "LIMIT = 12\n"}
    assert project.texts("main.py", text) == {"pkg/shapes.py": "LIMIT = 10  # units\n"}


def test_a_document_outside_of_any_workspace_sees_what_is_open_beside_it(project: Project) -> None:
    def alone(name: str, text: str) -> DocumentSnapshot:
        return DocumentSnapshot((project.root / name).as_uri(), "python", 1, PlainText(text))

    look = project.look("main.py", "from pkg.shapes import LIMIT\nfrom beside import it\nLIMIT, it⟦|⟧")
    others = (alone("beside.py", "it = 1\n"), alone("pkg/shapes.py", "LIMIT = 1\n"))
    text = look.context.document.text
    context = CompletionContext(alone("main.py", text.slice(0, len(text))), look.context.offset, others=others)
    found = project.imports.snippets(replace(look, context=context))
    assert [snippet.text for snippet in found] == ["it = 1\n"]


def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(project: Project) -> None:
    text = "from pkg.shapes import LIMIT\nLIMIT⟦|⟧"
    assert project.texts("main.py", text) == {"pkg/shapes.py": "LIMIT = 10  # units\n"}
    project.write({"pkg/shapes.py": "LIMIT = 1234\n"})
    assert project.texts("main.py", text) == {"pkg/shapes.py": "LIMIT = 10  # units\n"}  # not asked for yet
    project.now += 60
    assert project.texts("main.py", text) == {"pkg/shapes.py": "LIMIT = 1234\n"}
    (project.root / "pkg/shapes.py").unlink()
    project.now += 60
    assert project.texts("main.py", text) == {}


def test_nothing_is_read_once_it_is_late_and_the_next_look_goes_on(project: Project) -> None:
    text = "from pkg.shapes import LIMIT\nLIMIT⟦|⟧"
    assert project.snippets("main.py", text, late=lambda: True) == []
    assert project.snippets("main.py", text) != []
    project.write({f"m{n}.py": f"x{n} = 1\n" for n in range(10)})
    text = "".join(f"from m{n} import x{n}\n" for n in range(10)) + "⟦|⟧"
    answers = iter([False] * 6)
    project.now += 60
    some = project.snippets("main.py", text, late=lambda: next(answers, True))
    assert 0 < len(some) < 10
    assert len(project.snippets("main.py", text)) == 10


def test_a_language_that_is_not_known_has_no_imports(project: Project) -> None:
    assert project.snippets("main.txt", "from pkg.shapes import LIMIT\nLIMIT⟦|⟧") == []


def test_imports_above_the_window_and_far_from_the_top_are_found(project: Project) -> None:
    filler = "x = 1\n" * 20_000
    assert project.texts("main.py", f"from pkg.shapes import LIMIT\n{filler}LIMIT⟦|⟧", window=500)
    assert project.texts("main.py", f"{filler}from pkg.shapes import LIMIT\nLIMIT⟦|⟧", window=500)
    assert not project.texts("main.py", f"{filler}from pkg.shapes import LIMIT\n{filler}LIMIT⟦|⟧", window=500)


@pytest.mark.parametrize(
    ("path", "text", "shown"),
    [
        ("main.py", "from m import ⟦|⟧\n\nx = 1\n", "def load(): ...\ndef lose(): ...\nWAYS = 1\n"),
        ("main.py", "from m import lo⟦|⟧", "def load(): ...\ndef lose(): ...\n"),
        ("main.py", "from m import (\n    none,\n    los⟦|⟧\n)\n", "def lose(): ...\n"),
        ("main.py", "from n import ⟦|⟧", ""),
        ("main.py", "text = 'from m import '⟦|⟧", ""),
        ("main.ts", 'import { ⟦|⟧ } from "./m";\nf(1);\n', "export function go() {\n"),
        ("main.ts", 'import {\n  ⟦|⟧\n} from "./m";\n', "export function go() {\n"),
    ],
)
def test_in_an_import_all_that_may_be_imported_is_shown(project: Project, path: str, text: str, shown: str) -> None:
    project.write({"m.py": "def load(): ...\ndef lose(): ...\nWAYS = 1\n", "m.ts": "export function go() {\n}\n"})
    assert "".join(project.texts(path, text).values()) == shown
