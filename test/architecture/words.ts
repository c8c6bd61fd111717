/**
 * Phrases that readers have to decode, with plain words to replace them. As a program it prints the
 * sentences that contain one: `bun test/architecture/words.ts [part of a file name]…`.
 */

import { filesBelow, textOf } from "./source_tree.ts";

/** A phrase, and its replacement. */
const PHRASES: readonly (readonly [phrase: RegExp, instead: string])[] = [
  [/(?:^|[.:;] )What (?!\?|about\b|are you|do you|if\b|does\b|happens if)[^?]*$/, "a noun phrase"],
  [/(?:^|[.;] )Whether (?!or not|to )[^?,]*$/, "True if ... / Returns true if ..."],
  [/(?:^|[.;] )(?:Who|Whom|Whose|Whoever)\b[^?]*$/, "the noun: the caller, the reader, the owner"],
  [
    /(?:^|[.;] )How (?:many|much|long|often|large|far|fast|big)\b[^?]*$/,
    "The number of / maximum / duration / interval / size ...",
  ],
  [
    /(?:^|[.;] )(?:Where|When) (?:it|they|its|a|an|the|that|what)\b[^,?]*$/,
    "a noun phrase: the location, the time",
  ],
  [
    /(?<![Tt]here )(?<![Tt]here')(?<!that )(?<!which )\b(?:is|are|was|were) no (?!longer\b|more\b|need\b|one\b|different\b|such\b)/,
    "is not a (valid) ...",
  ],
  [
    /\b(?:that|which|what|who) (?:is|are|was|were|has|have) (?:no|none)\b(?! longer)/,
    "without ... / is not a ...",
  ],
  [
    /\b(?:is|are|was|were|be|been|being|not) told\b|\btold (?:of|that|what|why|to)\b/,
    "is notified of / receives / is logged",
  ],
  [
    /\b(?:tells|tell) (?!me\b|us\b|you\b|TypeScript\b)/,
    "reports / notifies / returns / distinguishes",
  ],
  [
    /\b(?:is|are|was|were|be|been) asked\b|\basked (?:about|again|once|at|with|by|of)\b/,
    "is called / is checked / is requested",
  ],
  [
    /\basks (?!the user|the caller|a person|a human|a question|questions)/,
    "calls / requests / checks / queries",
  ],
  [
    /\basking (?:who|what|whether|the source|the server|again)\b|\b(?:to|may|must|could|would) ask (?:again|about|at|in)\b/,
    "calling / requesting / checking",
  ],
  [
    /\b(?:says|said) (?:what|which|whether|who|why|how|where|when|so|that|it|of|no|yes|nothing|the)\b/,
    "returns / specifies / states / describes",
  ],
  [/\b(?:does not|do not|did not|cannot|to|may|must) say\b/, "report / specify / return"],
  [/\b(?:goes|went|going|gone|go) on\b/, "continues / resumes"],
  [
    /(?<!you |we |users? |one )\b(?:knows|wants)\b/,
    "has / supports / contains; requires / expects",
  ],
  [/\b(?:stands|stand|stood) for\b|\b(?:stands|stand) in\b/, "represents / resolves to / replaces"],
  [
    /\b(?:give|gives|gave|given) (?:way|up (?:its|the|his)|it back|them back|back)\b/,
    "is evicted / releases / returns",
  ],
  [/\bin (?:the|its|their|his) place(?: of)?\b/, "instead of / replaces"],
  [/\b(?:nobody|whoever|whomever)\b/, "a positive statement with a subject"],
  [
    /, also (?:if|where|when|while|those|for|in|of|by|to|with|one|after|from|over|a|the)\b/,
    "including / even if",
  ],
  [/\bat once\b/, "immediately / synchronously / concurrently"],
  [/\bbeside\b/, "next to / in addition to / and"],
  [/\b(?:a|its|whose) (?:life|way|end|sentence) of (?:its|their) own\b/, "independent / separate"],
  [
    /(?<![Ii]t )\b(?:is|are|was|were) (?:not )?there\b(?! (?:a|an|any|no|to|for)\b)|\bnot there\b/,
    "exists / is missing / is present",
  ],
  [
    /(?<!there )\b(?:are|for|or|and|than) none\b|; none\b|\b[Nn]one for\b/,
    "empty / undefined / if there is none",
  ],
  [/(?:^|[.;] )(?:Absent|Left out|Nothing|None):/, "If omitted, ... / By default, ..."],
  [/\bleft out\b/, "omitted"],
  [/\b(?:handed|hands|hand) (?:in|on|out|over)\b/, "passed / returned / provided"],
  [
    /\b(?:after|for|at most|than|of|by|but|only|is|are) so (?:many|much|long|often|large|short|old|few)\b/,
    "the number or the limit",
  ],
  [/\b(?:refuses|refused|refuse|refusing)\b/, "rejects / denies / fails"],
  [
    /\banswers (?:with|what|whether|at once|nothing|its|an?|the|for|as|in|anything|something|no|yes|true|false|that|undefined)\b(?<!the answers (?:for|in|that|as|with|the))|\banswer (?:with|at once|a promise)\b/,
    "returns / responds with",
  ],
  [
    /(?:\b(?:and|or|of|for|with|by|to|in|from|as|than|but|not)|[,:;]) what (?:it|is|was|were|are|has|had|have|they|an?|the|its|one|came|comes|goes|ran|runs)\b/,
    "the noun",
  ],
  [
    /\bthose (?:that|which|who|of|whose|with|for|in)\b|\bones? (?:that|which|who|whose)\b|\bthat of (?!course)/,
    "repeat the noun",
  ],
  [
    /\b(?:is|are|was|were|be|looks?) wrong\b|\bwrong (?:option|field|type|value|token|name|one)s?\b/,
    "is invalid",
  ],
  [/\b(?:is|are|was|were|be|been|being) (?:not )?kept\b/, "is stored / is retained / is cached"],
  [/\b(?:its|their|his|the|a|each) share\b(?! of the (?:code|traffic|market))/, "quota"],
  [
    /\b(?:no|has|have|makes?|needs?|the|find) room (?=for|left|in|is|that|where|to)|\bno room\b/,
    "space / capacity / evict",
  ],
  [/\b(?:is|are|was|has|have) gone\b/, "deleted / expired / disconnected"],
  [
    /\b(?:[Tt]he|an|its|[Tt]heir) \**owners?\**\b(?!'s (?:quota|entries)| is the| of the (?:file|process|repo))/,
    "host / operator / (of an entry) principal",
  ],
  [/\balike\b/, "in the same way / identical"],
  [/\bas (?:it|they) (?:is|are|was|were|stands?)\b/, "unchanged"],
  [
    /\b(?:leads?|led|leading) (?:to|back|into|there|out|from)\b/,
    "points to / resolves to / maps to",
  ],
  [/\bbehind (?:it|the bridge|a bridge|another|one|them)\b/, "the target / proxied"],
  [
    /\b(?:twins?|stray|misfits?|withheld|amid|grave|in vain|hardly|meant by|whereby|thereof|anew)\b/,
    "the standard word: duplicate, unknown, invalid, hidden, ...",
  ],
  [
    /\b(?:comes? to nothing|come of|came of|becomes? of|became of|mind|minds) (?:it|them|a|an|the|nothing|what|callbacks|nor)\b/,
    "the result / ignores",
  ],
  [
    /\b(?:does|do) (?:so|that|this) (?:at most|again|too|also|as)\b|\bdoes with(?:out)?\b/,
    "name the action",
  ],
  [
    /\b(?:that|which|who|whose|what|whom)\b[^.:;!?]{1,80}\b(?:that|which|who|whose|what|whom)\b[^.:;!?]{1,80}\b(?:that|which|who|whose|what|whom)\b/,
    "two sentences",
  ],
];

/** The folders with texts for people. */
const FOLDERS = ["src", "ffi", "docs", "test", "examples", "bench", "scripts"];
const PAGES = ["mod.ts", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
const READABLE = /\.(ts|tsx|mts|mjs|md|c|h|py|rs|cpp|hpp|zig|swift)$/;
const NOT_WRITTEN = /built_page|\.generated\.|\/words\.ts$/;

/** A comment, message, test title or paragraph of a guide, and its first line. */
type Paragraph = { readonly file: string; readonly line: number; readonly text: string };

/** Collects lines into paragraphs. */
class Paragraphs {
  readonly all: Paragraph[] = [];
  readonly #file: string;
  #text = "";
  #line = 0;

  constructor(file: string) {
    this.#file = file;
  }

  add(line: number, text: string): void {
    if (this.#text === "") this.#line = line;
    this.#text += ` ${text}`;
  }

  end(): void {
    const text = this.#text.replaceAll(/\s+/g, " ").trim();
    if (text.includes(" ")) this.all.push({ file: this.#file, line: this.#line, text });
    this.#text = "";
  }

  single(line: number, text: string): void {
    this.end();
    this.add(line, text);
    this.end();
  }
}

function ofGuide(file: string): readonly Paragraph[] {
  const found = new Paragraphs(file);
  let isCode = false;
  for (const [index, line] of textOf(file).split("\n").entries()) {
    if (/^\s*(```|~~~)/.test(line)) isCode = !isCode;
    if (isCode || /^\s*(```|~~~|#|<|---)/.test(line) || line.trim() === "") found.end();
    else if (/^\s*\|/.test(line)) {
      for (const cell of line.split("|")) {
        if (cell.trim().split(/\s+/).length > 2) found.single(index + 1, cell);
      }
    } else {
      if (/^\s*([-*]|\d+\.)\s/.test(line)) found.end();
      found.add(index + 1, line.replace(/^\s*([-*]|\d+\.)\s+/, ""));
    }
  }
  found.end();
  return found.all;
}

const TITLE = /\b(?:it|test)(?:\.\w+)*(?:\([^"'`]*\))?\(\s*(["'`])(.+?)\1/;
const LITERAL = /(["'`])((?:\\.|(?!\1).)*)\1/g;

function ofCode(file: string): readonly Paragraph[] {
  const found = new Paragraphs(file);
  const isTest = /(^|\/)tests?\/|\.test\./.test(file);
  let isBlock = false;
  let isExample = false;
  for (const [index, line] of textOf(file).split("\n").entries()) {
    const single = /^\s*\/\/(.*)$/.exec(line);
    if (!isBlock && single !== null) {
      if (!/^\s*(deno-|@ts-|eslint)/.test(single[1] ?? "")) found.add(index + 1, single[1] ?? "");
      continue;
    }
    const begins = /^\s*\/\*/.test(line);
    if (begins || isBlock) {
      if (begins) isExample = false;
      isBlock = !line.includes("*/");
      const text = line.replace(/^\s*\/\*\*?/, "").replace(/\*\/.*$/, "").replace(/^\s*\*? ?/, "");
      if (/^\s*(```|@\w+|[-*|])/.test(text) || text.trim() === "") found.end();
      if (/^\s*```/.test(text)) isExample = !isExample;
      else if (/^@/.test(text)) isExample = text.startsWith("@example");
      if (!isExample && !/^\s*```/.test(text)) {
        found.add(index + 1, text.replace(/^@\w+\s*/, "").replace(/^\s*[-*]\s+/, ""));
      }
      if (!isBlock) found.end();
      continue;
    }
    found.end();
    const title = TITLE.exec(line);
    if (title !== null) found.single(index + 1, title[2] ?? "");
    else if (!isTest && !/^\s*(import|export .* from)\b/.test(line)) {
      for (const [, , text = ""] of line.matchAll(LITERAL)) {
        const isSentence = text.trim().split(/\s+/).length >= 3 && /[a-z]{2,} [a-z]/i.test(text);
        if (isSentence) found.single(index + 1, text.replaceAll(/\$\{[^}]*\}/g, "…"));
      }
    }
  }
  found.end();
  return found.all;
}

/** Returns the sentences that contain a phrase of the list, each with the phrase and the file. */
export function unclearSentences(): readonly string[] {
  const files = [
    ...FOLDERS.flatMap((folder) =>
      filesBelow(folder, (path) => READABLE.test(path) && !NOT_WRITTEN.test(path))
    ),
    ...PAGES,
  ];
  return files.flatMap((file) => file.endsWith(".md") ? ofGuide(file) : ofCode(file))
    .flatMap(({ file, line, text }) => {
      const plain = text.replaceAll(/`[^`]*`/g, "`x`").replaceAll(/\]\([^)]*\)/g, "]")
        .replaceAll(/\{@link(?:code)? ([^}]*)\}/g, "x");
      const sentences = plain.split(/(?<=[.?!;]) /);
      return PHRASES.flatMap(([phrase, instead]) => {
        const sentence = sentences.find((one) => phrase.test(one));
        return sentence === undefined ? [] : [`${file}:${line} [${instead}] ${sentence}`];
      });
    });
}

if (import.meta.main) {
  const parts = process.argv.slice(2);
  const found = unclearSentences()
    .filter((one) => parts.length === 0 || parts.some((part) => one.startsWith(part)));
  console.log([...found, `${found.length} phrases`].join("\n"));
}
