"""Definitions behind imported names in a small project of each family of languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.completion.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


GO = {
    "go.mod": "// the module\nmodule example.com/app\n\ngo 1.22\n",
    "store/store.go": """package store

// New makes a Store.
// Slowly.
func New(path string) (*Store, error) {
	return nil, nil
}

// Store keeps things.
type Store struct {
	path string
	deep struct {
		a int
	}
}

func (s *Store) Get(key string) (string, bool) {
	if true {
	}
}

func (s *Store) hidden() {
}

const (
	// Limit is one.
	Limit = 10
	Other = 11
)

var text = `
func Fake() {
`
""",
    "store/more.go": "package store\n\nfunc (s Store) Put(k, v string) error {\n}\n",
    "store/store_test.go": "package store\n\nfunc New() {\n}\n",
    "cmd/help.go": "package main\n\nfunc helper(n int) {\n}\n",
}
STORE = (
    "// Store keeps things.\ntype Store struct {\n\tpath string\n\tdeep struct {\n\t\ta int\n\t}\n}\n"
    "func (s *Store) Get(key string) (string, bool) {\n"
)


@pytest.mark.parametrize(
    ("statement", "used", "shown"),
    [
        (
            '"example.com/app/store"',
            "store.New(",
            "// New makes a Store.\nfunc New(path string) (*Store, error) {\n" + STORE,
        ),
        ('st "example.com/app/store"', "st.Limit", "\t// Limit is one.\n\tLimit = 10\n"),
        ('. "example.com/app/store"', "Limit", "\t// Limit is one.\n\tLimit = 10\n"),
        ('"example.com/app/store"', "store.Store{", "func (s Store) Put(k, v string) error {\n" + STORE),
        ('"fmt"', "helper(", "func helper(n int) {\n"),
        ('"example.com/app/store"', "store.Fake, store.hidden, store.Get", ""),
        ('"example.com/other/store"', "store.New", ""),
        ('"example.com/app/storehouse"', "storehouse.New", ""),
        ('"fmt"', "fmt.New", ""),
    ],
)
@pytest.mark.parametrize("form", ["import {}\n", 'import (\n\t"os"\n\t{}\n)\n'])
def test_go(project: Project, form: str, statement: str, used: str, shown: str) -> None:
    project.write(GO)
    text = f"package main\n\n{form.format(statement)}\nfunc main() {{\n\t{used}⟦|⟧\n}}\n"
    assert "".join(project.texts("cmd/main.go", text).values()) == shown


RUST = {
    "Cargo.toml": '[package]\nname = "my-app"\n',
    "src/lib.rs": "pub mod model;\npub use model::item::Kind as Sort;\n",
    "src/model.rs": """pub mod item;
/// An item.
/// Or not.
#[derive(Debug)]
pub struct Item<T: Into<String>> {
    pub a: T,
}
impl<T: Into<String>> Item<T> {
    /// Makes one.
    pub fn new(a: T) -> Self
    where
        T: Clone,
    {
        Self { a: '"' }
    }
    #[inline]
    fn get<'a>(&'a self) -> &'a T { &self.a }
}
impl<T> Drop for Item<T> {
    fn drop(&mut self) {}
}
macro_rules! make {
    () => {};
}
pub const MOST: usize = 3;
""",
    "src/model/item.rs": "pub enum Kind {\n    A,\n    B { x: u8 },\n}\n",
    "src/a/mod.rs": "pub mod util;\n",
    "src/a/util.rs": "pub async fn helper(n: usize) -> u8 {\n    1\n}\n",
    "other-crate/src/lib.rs": "pub fn other() {}\n",
}
ITEM = (
    "/// An item.\npub struct Item<T: Into<String>> {\n    pub a: T,\n}\nimpl<T: Into<String>> Item<T> {\n"
    "    pub fn new(a: T) -> Self\n    where\n        T: Clone,\n    {\n"
    "    fn get<'a>(&'a self) -> &'a T { &self.a }\n}\n"
)
KIND = "pub enum Kind {\n    A,\n    B { x: u8 },\n}\n"
HELPER = "pub async fn helper(n: usize) -> u8 {\n"


@pytest.mark.parametrize(
    ("path", "text", "shown"),
    [
        ("src/a/b.rs", "use crate::model::Item;\nItem", ITEM),
        (
            "src/a/b.rs",
            "use crate::{model::{item::{self, Kind as K}, MOST}, a::*};\nK MOST",
            KIND + "pub const MOST: usize = 3;\n",
        ),
        ("src/a/b.rs", "use crate::model::item;\nitem::Kind", KIND),
        ("src/a/b.rs", "use crate::model::item::Kind::B;\nB", KIND),
        ("src/a/b.rs", "use crate::Sort;\nSort", KIND),
        ("src/a/b.rs", "use crate::model::make;\nmake", "macro_rules! make {\n"),
        ("src/a/b.rs", "use super::util::*;\nhelper", HELPER),
        ("src/a/b.rs", "use super::util::helper;\nhelper", HELPER),
        ("src/a/b/c.rs", "use super::super::util;\nutil::helper", HELPER),
        ("src/a/mod.rs", "pub(crate) mod util;\nutil::helper", HELPER),
        ("src/a/mod.rs", "use self::util::helper;\nhelper", HELPER),
        ("src/main.rs", "use my_app::a::util::helper;\nhelper", HELPER),
        ("tests/t.rs", "use my_app::model::MOST;\nMOST", "pub const MOST: usize = 3;\n"),
        ("src/main.rs", "use other_crate::other;\nother", "pub fn other() {}\n"),
        ("src/main.rs", "use std::collections::HashMap;\nHashMap", ""),
        ("src/main.rs", "use crate::model::nothing;\nnothing", ""),
        ("src/main.rs", "use super::super::super::x;\nx", ""),
    ],
)
def test_rust(project: Project, path: str, text: str, shown: str) -> None:
    project.write(RUST)
    assert "".join(project.texts(path, f"{text}⟦|⟧\n").values()) == shown


JAVA = {
    "src/main/java/x/z/Thing.java": """package x.z;
/**
 * A thing.
 */
@Deprecated
public final class Thing extends Base
    implements Runnable
{
  private int a;
  public static final String NAME = "}";
  public Thing() { }
  /** Runs. */
  @Override
  public void run(int a,
      int b) throws X {
    a();
  }
  private void no(int a,
      int b) {
  }
  enum Inner { A, B }
}
""",
    "src/main/java/x/z/Util.java": "package x.z;\nclass Util {\n  static int twice(int a) {\n    return 2;\n  }\n}\n",
    "src/main/java/x/y/Beside.java": "package x.y;\npublic record Beside(int x) {\n}\n",
}
THING = (
    " * A thing.\npublic final class Thing extends Base\n    implements Runnable\n"
    '  public static final String NAME = "}";\n  public Thing() { }\n'
    "  public void run(int a,\n      int b) throws X {\n  enum Inner { A, B }\n}\n"
)
UTIL = "class Util {\n  static int twice(int a) {\n}\n"


@pytest.mark.parametrize(
    ("path", "statement", "used", "shown"),
    [
        ("src/main/java/x/y/A.java", "import x.z.Thing;", "new Thing(", THING),
        ("src/test/java/x/y/ATest.java", "import x.z.Thing;", "new Thing(", THING),
        ("src/main/java/x/y/A.java", "import x.z.*;", "Util.twice(", UTIL),
        ("src/main/java/x/y/A.java", "import x.z.Thing.Inner;", "Inner", "  enum Inner { A, B }\n"),
        ("src/main/java/x/y/A.java", "import static x.z.Util.twice;", "twice(", UTIL),
        ("src/main/java/x/y/A.java", "", "new Beside(", "public record Beside(int x) {\n"),
        ("src/main/java/x/z/A.java", "", "new Beside(", ""),
        ("src/main/java/x/y/A.java", "import java.util.List;", "List", ""),
        ("src/main/java/x/y/A.java", "", "Thing", ""),
    ],
)
def test_java(project: Project, path: str, statement: str, used: str, shown: str) -> None:
    project.write(JAVA)
    text = f"package x.y;\n{statement}\nclass A {{\n  void t() {{\n    {used}⟦|⟧\n"
    assert "".join(project.texts(path, text).values()).removesuffix("}\n") == shown.removesuffix("}\n")


HEADER = """#ifndef G
#define G
#include "deeper.h"
#define COUNT 3
#define MAX(a, b) \\
  ((a) > (b))
/* A point. */
struct point { int x; int y; };
typedef struct {
  int w;
  int h;
} box_t;
typedef int (*callback)(int);
typedef struct node node;
struct node *node_new(int a);
static const int LIMIT = 3;
// Area of a box.
double area(const box_t *box,
            int n);
namespace x {
class EXPORT Widget final : public Base {
 public:
  Widget();
  virtual int go(int a) const { return 1; }
 private:
  int secret_;
};
using Ids = std::vector<int>;
}
#endif
"""


@pytest.mark.parametrize(
    ("used", "shown"),
    [
        ("COUNT", "#define COUNT 3\n"),
        ("MAX(1, 2)", "#define MAX(a, b) \\\n  ((a) > (b))\n"),
        ("struct point p;", "/* A point. */\nstruct point { int x; int y; };\n"),
        ("box_t b;", "typedef struct {\n  int w;\n  int h;\n} box_t;\n"),
        ("callback f;", "typedef int (*callback)(int);\n"),
        ("node *n;", "typedef struct node node;\n"),
        ("node_new(", "struct node *node_new(int a);\n"),
        ("LIMIT", "static const int LIMIT = 3;\n"),
        ("x::Ids", ""),
        ("Ids", "using Ids = std::vector<int>;\n"),
        ("deep(", "int deep(void);\n"),
        ("nothing, secret_", ""),
        (
            "Widget",
            "class EXPORT Widget final : public Base {\n public:\n  Widget();\n"
            "  virtual int go(int a) const { return 1; }\n};\n",
        ),
        (
            "area(",
            "// Area of a box.\ndouble area(const box_t *box,\n            int n);\n"
            "typedef struct {\n  int w;\n  int h;\n} box_t;\n",
        ),
    ],
)
def test_c(project: Project, used: str, shown: str) -> None:
    project.write({"include/geo.h": HEADER, "include/deeper.h": "int deep(void);\n"})
    text = f'#include <stdio.h>\n#include "geo.h"\nint main(void) {{\n  {used}⟦|⟧\n'
    assert "".join(project.texts("src/main.cpp", text).values()) == shown
    assert project.texts("src/main.cpp", text.replace("#include", "//")) == {}


def test_c_includes_by_path(project: Project) -> None:
    project.write({"src/near.h": "int near(void);\n", "src/sub/far.h": "int far(void);\n"})
    text = '#include "../near.h"\n#include <sub/far.h>\n#include "../../../out.h"\nnear(); far(⟦|⟧'
    assert project.texts("src/sub/main.c", text) == {
        "src/near.h": "int near(void);\n",
        "src/sub/far.h": "int far(void);\n",
    }
