// Bundles the extension into the one file that VS Code loads.
import { build } from "esbuild";

await build({
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  bundle: true,
  minify: true,
  external: ["vscode"], // VS Code itself brings it
  format: "cjs",
  platform: "node",
  target: "node20", // of VS Code 1.91
  legalComments: "inline",
  logLevel: "warning",
});
