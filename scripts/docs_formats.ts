/** Writes the tables of `docs/formats.md` and the entries of the targets: `bun scripts/docs_formats.ts`. */

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as formats from "../src/formats/mod.ts";
import type { CallFormat, Feature, KeywordForm, KeywordRule, Limit } from "../src/formats/mod.ts";
import type { NameRule, Target, TargetName } from "../src/formats/mod.ts";
import * as records from "../src/formats/records.ts";
import { isTarget } from "../src/formats/target.ts";

const { FEATURES, KEYWORD_FORMS, LIMITS, TARGET_ALIASES, targetOf } = formats;
const TARGETS = formats.listTargets();

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [row(head), row(head.map(() => "---")), ...rows.map(row)].join("\n");
}

function characters(rule: NameRule): string {
  const set = `[A-Za-z0-9_${rule.also.replace("-", "\\-")}]`;
  const first = rule.letterFirst === true ? ", a letter or `_` first" : "";
  return `\`${set}\`, 1 to ${rule.max}${first}`;
}

function limitsOf(limits: readonly Limit[]): string {
  if (limits.length === 0) return "none known";
  return limits.map(({ name, value, uncertain }) =>
    `${LIMITS[name]}: ${value.toLocaleString("en-US")}${uncertain === true ? " (?)" : ""}`
  ).join("<br>");
}

function ruleCell({ action, enforcement, into, uncertain }: KeywordRule): string {
  const cell = {
    keep: { enforced: "yes", advisory: "read", ignored: "ignored" }[enforcement],
    transform: `→ ${into ?? ""}`,
    drop: "–",
    reject: "rejected",
  }[action];
  return uncertain === true ? `${cell} ?` : cell;
}

/** A table in which targets that have the same cell in every row share a column. */
function sharedTable(
  corner: string,
  rows: readonly (readonly [name: string, cell: (target: Target) => string])[],
): string {
  const groups = sameTargets((target) => rows.map(([, cell]) => cell(target)).join("|"));
  return tableOf(
    [corner, ...groups.map((group) => group.map(({ id }) => `\`${id}\``).join("<br>"))],
    rows.map(([name, cell]) => [name, ...groups.map(([first]) => cell(first))]),
  );
}

type Group = readonly [Target, ...Target[]];

function sameTargets(keyOf: (target: Target) => string): readonly Group[] {
  return [...Map.groupBy(TARGETS, keyOf).values()] as unknown as Group[];
}

function targetTable(): string {
  return tableOf(
    ["Target", "Alias", "Surface", "Facts from"],
    TARGETS.map(({ id, title, source }) => [
      `\`${id}\``,
      Object.entries(TARGET_ALIASES).flatMap(([alias, of]) => of === id ? [`\`${alias}\``] : [])
        .join(", "),
      title,
      source,
    ]),
  );
}

function nameTable(): string {
  return tableOf(
    ["Target", "Tool names", "`:` becomes", "Property keys", "Limits", "Falls back to"],
    TARGETS.map(({ id, names, namespaces, keys, limits, fallback }) => [
      `\`${id}\``,
      characters(names),
      namespaces ? `a namespace, or \`${names.separator}\`` : `\`${names.separator}\``,
      keys === undefined ? "any" : characters(keys),
      limitsOf(limits),
      fallback === undefined ? "" : `\`${fallback.id}\``,
    ]),
  );
}

function featureTable(): string {
  return sharedTable(
    "Field",
    (Object.keys(FEATURES) as Feature[]).map((feature) => [
      `${feature}: ${FEATURES[feature]}`,
      ({ features }) =>
        features.includes(feature) ? "yes" : feature === "deprecated" ? "in words" : "–",
    ]),
  );
}

function keywordTable(): string {
  return sharedTable(
    "Form",
    (Object.keys(KEYWORD_FORMS) as KeywordForm[]).map((form) => [
      KEYWORD_FORMS[form],
      ({ input, formats }) =>
        ruleCell(input[form]) +
        (form === "format" && formats !== undefined ? ` (${formats.length} values)` : ""),
    ]),
  );
}

function formatList(): string {
  const code = (words: readonly string[]) => words.map((word) => `\`${word}\``).join(", ");
  return sameTargets(({ formats }) => JSON.stringify(formats))
    .filter(([{ formats }]) => formats !== undefined)
    .map((group) => `- ${code(group.map(({ id }) => id))}: ${code(group[0].formats ?? [])}`)
    .join("\n");
}

/** The kinds of files in the table, with their media types. */
const FILES: Readonly<Record<string, readonly string[]>> = {
  "images: PNG, JPEG, WebP": ["image/png", "image/jpeg", "image/webp"],
  "images: GIF": ["image/gif"],
  "images of other types": ["image/tiff"],
  "audio: WAV, MP3": ["audio/wav", "audio/mpeg"],
  "video: MP4": ["video/mp4"],
  "PDF": ["application/pdf"],
  "documents: Word, Excel, CSV": ["application/msword", "application/vnd.ms-excel", "text/csv"],
  "other files": ["application/zip"],
};

function takes(id: string, types: readonly string[]): boolean {
  if (id.startsWith("openapi@")) return true;
  const { media } = targetOf(id as TargetName).calls as CallFormat;
  return types.every((mimeType) => media?.file({ mimeType, data: "" }, "1") !== undefined);
}

function fileTable(): string {
  return sharedTable(
    "In a result",
    Object.entries(FILES).map(([kind, types]) => [
      kind,
      ({ id }) => takes(id, types) ? "yes" : "a text",
    ]),
  );
}

const TABLES: Readonly<Record<string, () => string>> = {
  targets: targetTable,
  names: nameTable,
  fields: featureTable,
  schemas: keywordTable,
  formats: formatList,
  files: fileTable,
};

/** Returns the page with new tables, each between a comment with its name and an empty line. */
export function formatsPage(page: string): string {
  return page.replaceAll(
    /(<!-- table: (\w+) -->\n\n).+?(?=\n\n|\n$)/gs,
    (_, comment, name) => comment + TABLES[name]?.(),
  );
}

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
  const file = new URL("../docs/formats.md", import.meta.url);
  writeFileSync(file, formatsPage(readFileSync(file, "utf8")));
  for (const [name, text] of await targetEntries()) {
    writeFileSync(join(FORMATS, "entries", name), text);
  }
}
