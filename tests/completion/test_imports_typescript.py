"""Definitions behind imported names in small projects of TypeScript and JavaScript."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.completion.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


GEO = """/** Area of a shape.
 * In units.
 */
export function area(
  shape: Shape,
  opts: { exact: boolean } = { exact: true },
): number {
  return 1;
}

// A shape.
export interface Shape {
  kind: "a" | "b";
  nested: {
    x: number;
  };
}

export default abstract class Base<T> {
  private x = 1;
  constructor(readonly a: string) {
    this.a = a;
  }
  @decorated()
  async run(
    a: number,
  ): Promise<void> {
    if (a) { return; }
  }
}

export const pad = (s: string): string => {
  return `}${s}`;
};
export type Id =
  | string
  | number;
export const LIMIT = 3
const unrelated = 4
"""
AREA = (
    "/** Area of a shape.\nexport function area(\n  shape: Shape,\n"
    "  opts: { exact: boolean } = { exact: true },\n): number {\n"
)
SHAPE = '// A shape.\nexport interface Shape {\n  kind: "a" | "b";\n  nested: {\n    x: number;\n  };\n}\n'
BASE = (
    "export default abstract class Base<T> {\n  constructor(readonly a: string) {\n  async run(\n    a: number,\n"
    "  ): Promise<void> {\n}\n"
)


@pytest.mark.parametrize(
    ("statement", "used", "shown"),
    [
        ('import { area } from "./geo";', "area", AREA + SHAPE),
        ("import { area as size } from './geo.js'", "size", AREA + SHAPE),
        ('import type { Shape } from "./geo"', "Shape", SHAPE),
        ('import Base, { type Shape } from "./geo"', "Base, Shape", BASE + SHAPE),
        ('import Anything from "./geo"', "Anything", BASE),
        ('import * as geo from "./geo"', "geo.pad", "export const pad = (s: string): string => {\n"),
        (
            'import {\n  Id, // this\n  LIMIT,\n} from "./geo"',
            "Id, LIMIT",
            "export type Id =\n  | string\n  | number;\nexport const LIMIT = 3\n",
        ),
        ('const { LIMIT } = require("./geo")', "LIMIT", "export const LIMIT = 3\n"),
        ('const geo = require("./geo")', "geo.LIMIT", "export const LIMIT = 3\n"),
        ('import { LIMIT } from "lib/geo"', "LIMIT", "export const LIMIT = 3\n"),
        ('import { LIMIT } from "@lib/geo"', "LIMIT", "export const LIMIT = 3\n"),
        ('import { LIMIT } from "geometry"', "LIMIT", "export const LIMIT = 3\n"),
        ('import { LIMIT } from "@/lib/geo"', "LIMIT", "export const LIMIT = 3\n"),
        ('import { LIMIT } from "./indexed"', "LIMIT", "export const LIMIT = 3\n"),
        ('import { MOST } from "./indexed"', "MOST", "export const LIMIT = 3\n"),
        ('import { LIMIT } from "./nowhere"', "LIMIT", ""),
        ('import { LIMIT } from "../../../../geo"', "LIMIT", ""),
        ('import { LIMIT } from "geo"', "LIMIT", ""),
        ('// import { LIMIT } from "./geo"', "LIMIT", ""),
    ],
)
def test_typescript(project: Project, statement: str, used: str, shown: str) -> None:
    project.write(
        {
            "src/lib/geo.ts": GEO,
            "src/lib/indexed/index.ts": 'export * from "../geo";\nexport { LIMIT as MOST } from "../geo";\n',
            "tsconfig.json": '{ // comment\n "compilerOptions": {"baseUrl": "src", "paths": '
            '{"@lib/*": ["lib/*"], "geometry": ["lib/geo"]},},}',
        }
    )
    assert "".join(project.texts("src/lib/app.ts", f"{statement}\n{used}⟦|⟧\n").values()) == shown


@pytest.mark.parametrize(
    "config", ["", "[]", "{", '{"compilerOptions": 1}', '{"compilerOptions": {"paths": {"*": 1}}}', "[" * 20_000]
)
def test_a_configuration_that_makes_no_sense_leads_nowhere(project: Project, config: str) -> None:
    project.write({"tsconfig.json": config, "geo.ts": GEO})
    assert project.texts(
        "app.ts", 'import { LIMIT } from "lib/geo"\nimport { Id } from "./geo"\nLIMIT, Id⟦|⟧'
    ).keys() == {"geo.ts"}


def test_commonjs_and_a_default_that_is_named_later(project: Project) -> None:
    project.write(
        {
            "a.js": "function one(a) {\n  return a;\n}\nmodule.exports = { one };\n",
            "b.js": "const conf = {\n  x: 1,\n};\nexport default conf;\n",
            "c.js": "exports.two = function (a, b) {\n  return 1;\n};\n",
        }
    )
    text = 'import conf from "./b"\nconst { one } = require("./a")\nconst c = require("./c.js")\none, conf, c.two⟦|⟧'
    assert project.texts("main.js", text) == {
        "a.js": "function one(a) {\n",
        "b.js": "const conf = {\n  x: 1,\n};\n",
        "c.js": "exports.two = function (a, b) {\n",
    }


def test_a_file_that_is_another_ones_and_a_folder_as_a_module(project: Project) -> None:
    project.write(
        {
            "index.js": "module.exports = require('./lib/tool');\n",
            "lib/tool.js": "exports.make = function (a) {\n  return a;\n};\n",
        }
    )
    shown = {"lib/tool.js": "exports.make = function (a) {\n"}
    assert project.texts("test/a.js", "var tool = require('../')\ntool.make(⟦|⟧") == shown
    assert project.texts("test/a.js", "var tool = require('..')\ntool.make(⟦|⟧") == shown
