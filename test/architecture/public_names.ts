/**
 * Reports the exported names of each entry of the package. As a program it writes the reports:
 * `bun test/architecture/public_names.ts`.
 */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { API, type Checker, type Symbol, SymbolFlags } from "typescript/unstable/async";

const ROOT = join(import.meta.dirname, "../..");
/** The folder of the reports, one file per entry. */
export const REPORTS: string = join(import.meta.dirname, "names");

const KINDS: readonly (readonly [flag: SymbolFlags, kind: string])[] = [
  [SymbolFlags.Class, "class"],
  [SymbolFlags.Function, "function"],
  [SymbolFlags.Interface, "interface"],
  [SymbolFlags.TypeAlias, "type"],
  [SymbolFlags.Variable, "const"],
];

function describe(name: string, { flags }: Symbol): string {
  const kinds = KINDS.filter(([flag]) => (flags & flag) !== 0).map(([, kind]) => kind);
  return `${kinds.join(" and ") || "namespace"} ${name}`;
}

/** The exports of an entry, with aliases resolved. */
export type Exports = readonly (readonly [name: string, Symbol])[];

/**
 * Returns the report of each entry, by the name of its file.
 *
 * @param read Receives the exports, too, because the compiler takes seconds to read the project.
 */
export async function reportNames(
  read?: (exported: Exports, checker: Checker) => Promise<void>,
): Promise<ReadonlyMap<string, string>> {
  const { exports }: { exports: Record<string, string> } = JSON.parse(
    readFileSync(join(ROOT, "deno.json"), "utf8"),
  );
  const api = new API({ cwd: ROOT });
  try {
    const snapshot = await api.updateSnapshot({ openProjects: [join(ROOT, "tsconfig.json")] });
    const [project] = snapshot.getProjects();
    if (project === undefined) throw new TypeError("The compiler finds no project");
    const { program, checker } = project;
    const reports = new Map<string, string>();
    for (const [entry, path] of Object.entries(exports)) {
      const file = await program.getSourceFile(join(ROOT, path));
      const module = file && await checker.getSymbolAtLocation(file);
      if (module === undefined) throw new TypeError(`The compiler finds no module ${path}`);
      const exported: (readonly [string, Symbol])[] = [];
      for (const symbol of await checker.getExportsOfModule(module)) {
        const isAlias = (symbol.flags & SymbolFlags.Alias) !== 0;
        exported.push([symbol.name, isAlias ? await checker.getAliasedSymbol(symbol) : symbol]);
      }
      await read?.(exported, checker);
      const name = entry === "." ? "tools" : entry.slice(2).replace("/", "-");
      const lines = exported.map(([name, symbol]) => describe(name, symbol)).sort();
      reports.set(`${name}.txt`, `${lines.join("\n")}\n`);
    }
    return reports;
  } finally {
    await api.close();
  }
}

if (import.meta.main) {
  mkdirSync(REPORTS, { recursive: true });
  for (const [name, text] of await reportNames()) writeFileSync(join(REPORTS, name), text);
}
