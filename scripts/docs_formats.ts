/** Writes `docs/formats.md` from the targets: `bun scripts/docs_formats.ts`. */

import { writeFileSync } from "node:fs";
import * as formats from "../src/formats/mod.ts";
import type { CallFormat, Feature, KeywordForm, KeywordRule, Limit } from "../src/formats/mod.ts";
import type { NameRule, Target, TargetName } from "../src/formats/mod.ts";

const { FEATURES, KEYWORD_FORMS, LIMITS, TARGET_ALIASES, targetOf } = formats;
const TARGETS = formats.listTargets();

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [row(head), row(head.map(() => "---")), ...rows.map(row)].join("\n");
}

function characters(rule: NameRule): string {
  const letters = { upper: "A-Z", lower: "a-z", both: "A-Za-z" }[rule.case ?? "both"];
  const set = `[${letters}0-9_${rule.also.replace("-", "\\-")}]`;
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
      fallback === undefined ? "" : `\`${fallback as string}\``,
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

/** The page. */
export function formatsPage(): string {
  return `# Formats

<!-- Written by scripts/docs_formats.ts from the records in src/formats/providers. Do not edit. -->

\`exportTools(toolset, target)\` from \`@plue/tools/formats\` writes a toolset in a provider's shape,
and reports what the provider cannot express. \`listTargets()\` gives all of this page as data.
\`defineTarget(record)\` creates a target of your own, from scratch or from one of these
(\`targetOf(id)\`). The functions that export, decode and encode accept it like a name.

${targetTable()}

## Names and limits

An id that a target allows is sent unchanged. Other ids are mapped, and \`names\` maps them back. A
limit with (?) is not documented, or documented in two ways: it is a warning. A tool that a strict mode
cannot hold is sent to the target that it falls back to, without \`strict\`.

${nameTable()}

## Fields of a tool

\`yes\`: the target has a field for it. \`in words\`: it is added to the description. \`–\`: it is not
sent, and reported as a loss if the tool has it.

${featureTable()}

## Schemas

\`yes\`: sent, and the target holds the model to it or documents that it reads it. \`read\`: sent, and
the model reads it; nothing enforces it. \`ignored\`: sent, accepted, and not looked at. \`→\`: sent as
something else. \`–\`: omitted, and by default added to the description. \`rejected\`: the tool is
rejected, or falls back. A \`?\` means that the provider does not document it.

Whatever is sent, the arguments of a call are checked against the tool's own schema.

${keywordTable()}

## Values of \`format\`

If a target accepts only some values, the others are added to the description:

${formatList()}

## Files in results

\`yes\`: a block of the target. \`a text\`: a short text replaces it, and the turn's \`losses\` report it.
The AI SDK and LangChain pass all files on, and the package of the provider accepts or rejects them.

${fileTable()}
`;
}

if (import.meta.main) {
  writeFileSync(new URL("../docs/formats.md", import.meta.url), formatsPage());
}
