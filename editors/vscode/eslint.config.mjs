import eslint from "@eslint/js";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist/"] },
  eslint.configs.recommended,
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { project: "./tsconfig.json" } },
    rules: {
      "max-lines": ["error", 400],
      "max-lines-per-function": ["error", 50],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
    },
  },
  {
    files: ["test/**"],
    rules: {
      "@typescript-eslint/no-floating-promises": "off", // what `test()` gives is the runner's
      "max-lines-per-function": "off",
    },
  },
  { files: ["**/*.mjs"], languageOptions: { globals: { Buffer: "readonly", URL: "readonly" } } },
);
