/** Writes the entries of the targets from their ids: `bun scripts/target_entries.ts`. */

import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as records from "../src/formats/records.ts";
import { isTarget } from "../src/formats/target.ts";

const FORMATS = join(import.meta.dirname, "../src/formats");

function exportOf(names: readonly string[], file: string): string {
  const line = `export { ${names.join(", ")} } from "../${file}";\n`;
  const lines = names.map((name) => `  ${name},\n`).join("");
  return line.length <= 100 ? line : `export {\n${lines}} from "../${file}";\n`;
}

/** Returns the text of each entry, by the name of its file. */
export async function targetEntries(): Promise<ReadonlyMap<string, string>> {
  const exports = new Map<string, string>();
  for (
    const file of readdirSync(join(FORMATS, "providers")).filter((name) => name !== "index.ts")
  ) {
    const found = Object.entries(await import(join(FORMATS, "providers", file)));
    const byEntry = Map.groupBy(
      found.flatMap(([name, value]) => isTarget(value) ? [{ name, id: value.id }] : []),
      ({ id }) => /^[\w-]+/.exec(id)?.[0] ?? id,
    );
    for (const [entry, targets] of byEntry) {
      const names = targets.map(({ name }) =>
        `${name} as ${name.toLowerCase().replace(/_(\w)/g, (_, letter) => letter.toUpperCase())}`
      );
      const text = exportOf(names, `providers/${file}`);
      exports.set(entry, (exports.get(entry) ?? "") + text);
    }
  }
  const functions = Object.keys(records).filter((name) => name !== "allTools").sort();
  return new Map([...exports].map(([entry, text]) => [
    `${entry.replace("-", "_")}.generated.ts`,
    `/**\n * The records of targets, and the functions that take them: ` +
    `\`@plue/tools/formats/${entry}\`.\n *\n * @module\n */\n\n` +
    text + exportOf(functions, "records.ts"),
  ]));
}

if (import.meta.main) {
  for (const [file, text] of await targetEntries()) {
    writeFileSync(join(FORMATS, "entries", file), text);
  }
}
