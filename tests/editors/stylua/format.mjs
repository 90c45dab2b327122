// Formats Lua with stylua's WASM build, which has no command line: [{code, ...}] on stdin, the same formatted on stdout.
// Arguments: the file of the library, and the fields of stylua.toml as JSON.
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const [library, options] = process.argv.slice(2)
const stylua = await import(pathToFileURL(library))
const kinds = { syntax: 'LuaVersion', indent_type: 'IndentType', quote_style: 'QuoteStyle' }
const configured = () => {
  const config = stylua.Config.new()
  for (const [name, value] of Object.entries(JSON.parse(options))) {
    const found = name in kinds ? stylua[kinds[name]][value] : value
    if (!(name in config) || found === undefined) throw new Error(`stylua.toml: ${name} = ${value} is not known here`)
    config[name] = found
  }
  return config // formatting uses it up
}
const format = (code) => stylua.formatCode(code, configured(), undefined, stylua.OutputVerification.Full)
process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, 'utf8')).map(format)))
