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

/** Passes the exports of each entry of the package, with aliases resolved, to a function. */
export async function readExports<Result>(
  read: (exported: readonly (readonly [name: string, Symbol])[], entry: string, checker: Checker) =>
    | Result
    | Promise<Result>,
): Promise<readonly Result[]> {
  const { exports }: { exports: Record<string, string> } = JSON.parse(
    readFileSync(join(ROOT, "deno.json"), "utf8"),
  );
  const api = new API({ cwd: ROOT });
  try {
    const snapshot = await api.updateSnapshot({ openProjects: [join(ROOT, "tsconfig.json")] });
    const [project] = snapshot.getProjects();
    if (project === undefined) throw new TypeError("The compiler finds no project");
    const { program, checker } = project;
    const results: Result[] = [];
    for (const [entry, path] of Object.entries(exports)) {
      const file = await program.getSourceFile(join(ROOT, path));
      const module = file && await checker.getSymbolAtLocation(file);
      if (module === undefined) throw new TypeError(`The compiler finds no module ${path}`);
      const exported: (readonly [string, Symbol])[] = [];
      for (const symbol of await checker.getExportsOfModule(module)) {
        const isAlias = (symbol.flags & SymbolFlags.Alias) !== 0;
        exported.push([symbol.name, isAlias ? await checker.getAliasedSymbol(symbol) : symbol]);
      }
      results.push(await read(exported, entry, checker));
    }
    return results;
  } finally {
    await api.close();
  }
}

/** Returns the report of each entry, by the name of its file. */
export async function reportNames(): Promise<ReadonlyMap<string, string>> {
  return new Map(
    await readExports((exported, entry) => {
      const lines = exported.map(([name, symbol]) => describe(name, symbol)).sort();
      return [
        `${entry === "." ? "tools" : entry.slice(2).replace("/", "-")}.txt`,
        `${lines.join("\n")}\n`,
      ] as const;
    }),
  );
}

if (import.meta.main) {
  mkdirSync(REPORTS, { recursive: true });
  for (const [name, text] of await reportNames()) writeFileSync(join(REPORTS, name), text);
}
