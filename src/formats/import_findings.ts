/** Cleans the texts of imported tools. Finds hidden text, instructions and look-alike names. */

import {
  cleanText,
  clip,
  cutMarks,
  isWord,
  type JsonSchema,
  type JsonSchemaObject,
  pointerStep,
} from "../tool/mod.ts";
import { mapSchema } from "./transform/rewrite.ts";

/** The maximum lengths of texts, in characters. */
export const MAX_TITLE: number = 500;
export const MAX_DESCRIPTION: number = 8_192;

interface ToolTexts {
  title?: string | undefined;
  description?: string | undefined;
  tags?: readonly string[] | undefined;
  parameters?: JsonSchemaObject | undefined;
  returns?: JsonSchema | undefined;
}

/** Removes hidden characters from a tool's texts, and cuts long texts. Returns changed fields. */
export function cleanTexts(tool: ToolTexts): ReadonlySet<string> {
  const places = new Set<string>();
  const clean = (text: string, place: string, length = MAX_DESCRIPTION): string => {
    const cleaned = cleanText(text, length);
    if (cleaned !== text) places.add(place);
    return cleaned;
  };
  const cleanSchema = (schema: JsonSchema, place: string): JsonSchema =>
    mapSchema(undefined, schema, {
      enter(node) {
        let result = node;
        for (const word of ["title", "description", "$comment"]) {
          const text = node[word];
          const cleaned = typeof text === "string" ? clean(text, place) : text;
          if (cleaned !== text) result = { ...result, [word]: cleaned };
        }
        return result;
      },
    });
  const { title, description, parameters, returns, tags } = tool;
  if (title !== undefined) tool.title = clean(title, "title", MAX_TITLE);
  if (description !== undefined) tool.description = clean(description, "description");
  if (tags !== undefined) {
    tool.tags = tags.map((tag) => clean(tag, "tags", MAX_TITLE)).filter(isWord);
  }
  if (parameters !== undefined) {
    tool.parameters = cleanSchema(parameters, "parameters") as JsonSchemaObject;
  }
  if (returns !== undefined) tool.returns = cleanSchema(returns, "returns");
  return places;
}

const RULES = ["hidden-text", "instruction", "look-alike"] as const;

/** Suspicious text of a tool. A finding may be harmless, and an attack may have no finding. */
export interface Finding {
  readonly rule: typeof RULES[number];
  /** A JSON Pointer into the fields of the tool. */
  readonly path: string;
  readonly message: string;
}

export const FINDING_RULES: ReadonlySet<string> = new Set(RULES);

/** Patterns of texts that instruct the model. Their bounded repetitions run in linear time. */
const INSTRUCTIONS: readonly RegExp[] = [
  /\b(?:ignore|disregard|forget|override|bypass) (?:all |any |every |the |your |my |of |these |those |other ){0,4}(?:previous|prior|above|earlier|preceding|system|existing)\b/,
  /\b(?:do not|don't|dont|never|must not|without) (?:\w{1,20} ){0,3}?(?:tell|telling|inform|informing|notify|notifying|mention|mentioning|reveal|revealing|disclose|disclosing|alert|alerting|warn|warning|ask|asking) (?:\w{1,20} ){0,6}?(?:the |your )?users?\b/,
  /\b(?:hide|conceal|keep) (?:this|it|that|these) (?:\w{1,20} ){0,3}?from (?:the |your )?users?\b/,
  /< {0,3}\/? {0,3}(?:important|system|instructions?|assistant|sys|prompt)(?: [^<>]{0,80})?>/,
  /<\|[a-z_]{1,30}\|>|\[\/?inst\]|\b(?:system|assistant) ?: ?you are\b/,
  /\b(?:new|real|actual|true|updated|additional|hidden|secret) (?:system )?(?:instructions?|prompts?)\b ?:/,
  /\b(?:before|prior to|instead of) (?:using|calling|running|invoking|use of) (?:any|all|every|the) other tools?\b/,
  /\b(?:read|cat|send|include|pass|append|attach|upload|copy)\b.{0,80}(?:\.ssh\/|\bid_(?:rsa|ed25519)\b|\bmcp\.json\b|\/etc\/(?:passwd|shadow)\b|\.aws\/credentials\b)/,
  /\b(?:send|include|pass|append|attach|forward|provide) (?:\w{1,20} ){0,4}?(?:whole|entire|full|complete|previous|all) (?:\w{1,20} ){0,2}?(?:conversation|chat|message|tool) (?:history|histories|context|results?)\b/,
];

const MAX_FINDINGS = 8;

/** Searches the texts and property names of a tool. Parts without findings are added to `clean`. */
export function textFindings(
  fields: { readonly [field: string]: unknown },
  clean: WeakSet<object>,
): Finding[] {
  const findings: Finding[] = [];
  const add = (rule: Finding["rule"], path: string, message: string): void => {
    if (findings.length < MAX_FINDINGS) findings.push({ rule, path: clip(path, 300), message });
  };
  const search = (text: string, path: string): void => {
    const hidden = hiddenIn(text);
    if (hidden !== undefined) {
      const code = hidden.toString(16).toUpperCase().padStart(4, "0");
      add("hidden-text", path, `A text contains an invisible character, U+${code}`);
    }
    const words = toLatin(text).replace(/\s+/g, " ");
    const found = INSTRUCTIONS.map((pattern) => pattern.exec(words)?.[0])
      .find((match) => match !== undefined);
    if (found !== undefined) {
      add("instruction", path, `A text addresses the model: "${clip(found, 80)}"`);
    }
  };
  const walk = (value: unknown, path: string): void => {
    if (findings.length >= MAX_FINDINGS) return;
    if (typeof value === "string") return search(value, path);
    if (typeof value !== "object" || value === null || clean.has(value)) return;
    const before = findings.length;
    for (const [key, item] of Object.entries(value)) {
      const at = path + pointerStep(key);
      if (!Array.isArray(value)) search(key, at);
      walk(item, at);
    }
    if (findings.length === before) clean.add(value);
  };
  walk(fields, "");
  return findings;
}

/** Returns the first invisible character, which {@linkcode cleanText} removes. */
function hiddenIn(text: string): number | undefined {
  if (isAscii(text)) return undefined;
  const lines = text.replaceAll("\r\n", "\n");
  const clean = cleanText(lines, lines.length);
  if (clean === lines) return undefined;
  let at = 0;
  while (lines[at] === clean[at]) at++;
  return lines.codePointAt(at);
}

function isAscii(text: string): boolean {
  return /^[\t\n -~]*$/.test(text);
}

/** Latin letters, each before similar letters of other alphabets: a subset of Unicode's UTS 39. */
const LOOK_ALIKES = (
  "a\u0430\u0251\u03b1 b\u0432\u044c\u0185\u03b2 c\u0441\u03f2\u1d04 d\u0501\u0257 " +
  "e\u0435\u0454\u03b5\u04bd f\u0493 g\u0261\u0581 h\u04bb\u043d\u0570 " +
  "i\u0456\u03b9\u0269\u0131 j\u0458\u03f3 k\u043a\u03ba l\u04cf m\u043c " +
  "n\u043f\u03b7\u0578\u057c o\u043e\u03bf\u0585\u03c3 p\u0440\u03c1 q\u051b\u0566 " +
  "r\u0433\u0280 s\u0455\ua731 t\u0442\u03c4 u\u03c5\u057d\u03bc\u0446 v\u0475\u03bd " +
  "w\u051d\u03c9\u0448\u0461 x\u0445\u03c7 y\u0443\u03b3\u04af\u028f z\u1d22\u03b6 H\u0397 " +
  "M\u039c N\u039d Y\u03a5"
).split(" ");

const LATIN: ReadonlyMap<string, string> = new Map(
  LOOK_ALIKES.flatMap(([latin = "", ...others]) =>
    others.map((other): [string, string] => [other, latin])
  ),
);

/** Matches look-alikes only: a callback per letter of a long foreign text would take seconds. */
const LATIN_LETTERS = new RegExp(`[${[...LATIN.keys()].join("")}]`, "g");

/** Characters that look like another letter. */
const AS_LETTERS = new Map(Object.entries({ 0: "o", 1: "l", 5: "s", 8: "b", i: "l", "|": "l" }));

function toLatin(text: string): string {
  if (isAscii(text)) return text.toLowerCase();
  const bare = cutMarks(text).normalize("NFKD").replace(
    /[\p{M}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu,
    "",
  );
  // Replaced twice: a capital letter may look like another letter than its lower-case form.
  return latinised(latinised(bare).toLowerCase());
}

function latinised(text: string): string {
  return text.replace(LATIN_LETTERS, (letter) => LATIN.get(letter) ?? letter);
}

/** The maximum length of a compared name. Longer names with the same beginning count as similar. */
const MAX_NAME = 1_000;

/** Returns the same text for names that look similar, such as `rn` and `m`. */
function skeleton(name: string): string {
  return toLatin(name.slice(0, MAX_NAME))
    .replace(/[0158i|]/g, (letter) => AS_LETTERS.get(letter) ?? letter)
    .replaceAll("rn", "m").replaceAll("vv", "w");
}

/** Returns the skeleton of an id, or of an exported name, which begins with its namespace. */
function asId(text: string): string {
  return skeleton(text).replace(/[^\p{L}\p{N}]+/gu, "_");
}

export interface ToolNames {
  readonly id: string;
  /** The name in the source. */
  readonly name: string;
}

/** Finds tools with a name that looks like the name or id of another tool in either list. */
export function lookAlikes(
  tools: readonly ToolNames[],
  beside: Iterable<ToolNames>,
): ReadonlyMap<string, string> {
  const names = new Map<string, ToolNames>();
  const ids = new Map<string, ToolNames>();
  const add = (tool: ToolNames): void => {
    const [name, id] = [skeleton(tool.name), asId(tool.id)];
    if (!names.has(name)) names.set(name, tool);
    if (!ids.has(id)) ids.set(id, tool);
  };
  for (const tool of beside) add(tool);
  const found = new Map<string, string>();
  for (const tool of tools) {
    const other = [names.get(skeleton(tool.name)), ids.get(asId(tool.name))]
      .find((one) => one !== undefined && one.id !== tool.id && one.name !== tool.name);
    if (other !== undefined) found.set(tool.id, other.id);
    add(tool);
  }
  return found;
}
