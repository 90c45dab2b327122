// Bundles the extension into the one file that VS Code loads, and puts the licences of what is bundled beside it.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const { metafile } = await build({
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  bundle: true,
  minify: true,
  external: ["vscode"], // VS Code itself brings it
  format: "cjs",
  platform: "node",
  target: "node20", // of VS Code 1.91
  legalComments: "inline",
  metafile: true,
  logLevel: "warning",
});

const folders = new Set(Object.keys(metafile.inputs).map((path) => /^.*node_modules\/(@[^/]+\/)?[^/]+/.exec(path)?.[0]));
const texts = [...folders].filter((folder) => folder !== undefined).sort().map((folder) => {
  const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = readdirSync(folder).find((each) => /^licen[cs]e(\.|$)/i.test(each));
  if (file === undefined) {
    throw new Error(`${folder} has no licence`);
  }
  return `${name} ${version}\n\n${readFileSync(`${folder}/${file}`, "utf8").replaceAll("\r\n", "\n").trim()}\n`;
});
writeFileSync("dist/licences.txt", texts.join(`\n${"-".repeat(80)}\n\n`));
