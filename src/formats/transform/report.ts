/** The context of the passes over a schema, and their losses in the order of the first schema. */

import { type JsonSchema, type JsonSchemaObject, once, pointerStep } from "../../tool/mod.ts";
import type { Loss } from "../export_options.ts";
import { type Resolve, resolverOf } from "./references.ts";
import { hidesEffects, locate, mapSchema, pathOf, type Spot, type Trace } from "./rewrite.ts";
import type { NameRule } from "../../select/mod.ts";

/** A loss in a schema, without the fields for the tool and the side (arguments or result). */
export type SchemaLoss = Omit<Loss, "tool" | "side">;

/** `ignored`: the exported schema has the keyword, although the target ignores it. */
export type KeywordFate = "keep" | "ignored" | "drop";

export interface Context {
  readonly trace: Trace;
  readonly report: Report;
  /** True to add lost constraints to descriptions. */
  readonly describe: boolean;
  /** True to throw for a union that cannot be split. The tool is then sent without strict mode. */
  readonly refuses: boolean;
  /** The legal property keys. If absent, every key is legal. */
  readonly keys?: NameRule | undefined;
  /** Resolves references in the schema of the pass. */
  readonly resolve: Resolve;
  fateOf(keyword: string, node: JsonSchemaObject, isRoot: boolean): KeywordFate;
}

/** The details of a loss. By default, `action` is "replaced" and `grade` is "weakened". */
export interface Note extends Partial<Pick<SchemaLoss, "action" | "grade">> {
  /** A step of the path below the keyword, such as a property's name. */
  readonly step?: string;
  /** The effect if this node were the root. A `not` around the node reverses the effect. */
  readonly widens?: boolean;
  readonly narrows?: boolean;
}

interface Entry extends Note {
  readonly node: JsonSchemaObject;
  readonly spot: Spot;
  readonly keyword: string;
  readonly message: string;
}

export interface NodePass {
  enter?(node: JsonSchemaObject, context: Context, spot: Spot): JsonSchema;
  /** Runs after the rewrite of the children. */
  leave?(node: JsonSchemaObject, context: Context, spot: Spot): JsonSchema;
}

export function runPass(
  { enter, leave }: NodePass,
  schema: JsonSchema,
  outer: Context,
): JsonSchema {
  const context = { ...outer, resolve: resolverOf(schema) };
  return mapSchema(context.trace, schema, {
    ...(enter && { enter: (node, spot) => enter(node, context, spot) }),
    ...(leave && { leave: (node, spot) => leave(node, context, spot) }),
  });
}

/** The losses of the passes over one schema. */
export class Report {
  readonly #entries: Entry[] = [];
  readonly #trace: Trace;

  constructor(trace: Trace) {
    this.#trace = trace;
  }

  add(
    node: JsonSchemaObject,
    spot: Spot,
    keyword: string,
    message: string,
    note: Note = { widens: true },
  ): void {
    this.#entries.push({ node, spot, keyword, message, ...note });
  }

  /** Returns the losses with their paths in `first`, the schema of the first pass. */
  losses(first: JsonSchema): readonly SchemaLoss[] {
    if (this.#entries.length === 0) return Object.freeze([]);
    const locations = locate(first);
    const found = this.#entries.map((entry) => {
      const { node, keyword, step } = this.#trace.originOf(entry.node, entry.keyword);
      return { entry, keyword, node, step: step ?? entry.step, at: locations.get(node)?.at ?? 0 };
    });
    found.sort((a, b) =>
      a.at - b.at ||
      compare(a.keyword, b.keyword) ||
      compare(String(a.step ?? ""), String(b.step ?? ""))
    );
    const hiding = new Map<JsonSchema, boolean>();
    const hides = (schema: JsonSchema): boolean =>
      once(hiding, schema, () => hidesEffects(this.#trace, schema));
    const losses: SchemaLoss[] = [];
    const seen = new Set<string>();
    for (const { entry, keyword, node, step } of found) {
      const { action = "replaced", grade = "weakened", message, spot } = entry;
      const widens = entry.widens ?? false;
      const narrows = entry.narrows ?? false;
      const either = (widens || narrows) && (spot.effect === "both" || hides(spot.schema));
      const loss: SchemaLoss = {
        path: pathOf(node, locations) + pointerStep(keyword) +
          (step === undefined ? "" : pointerStep(step)),
        keyword,
        action,
        grade,
        widens: either || (spot.effect === "flipped" ? narrows : widens),
        narrows: either || (spot.effect === "flipped" ? widens : narrows),
        message,
      };
      // The same loss in a definition that was inlined twice is listed once.
      const key = [loss.path, entry.keyword, action, grade, loss.widens, loss.narrows].join("\n");
      if (seen.has(key)) continue;
      seen.add(key);
      losses.push(Object.freeze(loss));
    }
    return Object.freeze(losses);
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
