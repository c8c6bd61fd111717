/** Reads JavaScript's regular expressions with the "u" flag as a tree of characters. */

export type PatternPart =
  /** One character, as a pattern. */
  | { readonly kind: "character"; readonly source: string }
  /** `^`, `$`, `\b` or `\B`. */
  | { readonly kind: "assertion"; readonly source: string }
  | { readonly kind: "look"; readonly open: string; readonly part: PatternPart }
  | { readonly kind: "sequence" | "choice"; readonly parts: readonly PatternPart[] }
  | {
    readonly kind: "repeat";
    readonly part: PatternPart;
    readonly min: number;
    readonly max: number;
  };

const MAX_DEPTH = 100;

const TOKEN = new RegExp(
  [
    String.raw`\[(?:\\.|[^\]\\])*\]`,
    String.raw`\\(?:u\{[^}]*\}|ud[89ab]..\\ud[c-f]..|u....|x..|c.|p\{[^}]*\}|k<[^>]*>|[1-9]\d*|.)`,
    String.raw`\((?:\?(?:[-a-z]*:|<?[=!]|<[^>]*>))?`,
    String.raw`[*+?]\??|\{\d+(?:,\d*)?\}\??`,
    ".",
  ].join("|"),
  "gisu",
);

interface Group {
  readonly open: string;
  readonly choices: PatternPart[];
  parts: PatternPart[];
}

/** Parses a pattern that `RegExp` accepts; returns the violated rule if a part is unsupported. */
export function readPattern(source: string): PatternPart | string {
  const groups: Group[] = [];
  let group: Group = { open: "", choices: [], parts: [] };
  for (const [token] of source.matchAll(TOKEN)) {
    const { parts } = group;
    const last = parts.length - 1;
    const repeated = parts[last];
    if (token.startsWith("(")) {
      if (/^\(\?[-a-z]+:/i.test(token)) return `a regular expression without "${token}"`;
      if (groups.push(group) > MAX_DEPTH) return `at most ${MAX_DEPTH} groups deep`;
      group = { open: token, choices: [], parts: [] };
    } else if (token === ")") {
      const { open } = group;
      const part = partOf(group);
      group = groups.pop() ?? group;
      group.parts.push(/[=!]$/.test(open) ? { kind: "look", open, part } : part);
    } else if (token === "|") {
      group.choices.push({ kind: "sequence", parts });
      group.parts = [];
    } else if (/^[*+?{]/.test(token) && repeated !== undefined) {
      const [min = 0, max = token.includes(",") ? Infinity : min] = token.startsWith("{")
        ? token.match(/\d+/g)?.map(Number) ?? []
        : [token.startsWith("+") ? 1 : 0, token.startsWith("?") ? 1 : Infinity];
      parts[last] = { kind: "repeat", part: repeated, min, max };
    } else if (/^\\(?:[1-9]|k<)/.test(token)) {
      return `a regular expression without references back to groups ("${token.slice(0, 20)}")`;
    } else {
      const isAssertion = /^(?:[$^]|\\b)$/i.test(token);
      parts.push({ kind: isAssertion ? "assertion" : "character", source: token });
    }
  }
  return partOf(group);
}

function partOf({ choices, parts }: Group): PatternPart {
  const sequence: PatternPart = { kind: "sequence", parts };
  return choices.length === 0 ? sequence : { kind: "choice", parts: [...choices, sequence] };
}
