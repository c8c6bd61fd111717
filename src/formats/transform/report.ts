/**
 * The passes over a schema: their context, and what they lose in the order of the first schema, with
 * positions in it.
 */

import { type JsonSchema, type JsonSchemaObject, once, pointerStep } from "../../tool/mod.ts";
import type { Loss } from "../export_options.ts";
import { type Resolve, resolverOf } from "./references.ts";
import { hidesEffects, locate, mapSchema, pathOf, type Spot, type Trace } from "./rewrite.ts";
import type { NameRule } from "../../select/mod.ts";

/** A loss in a schema, before it is known whose schema it is. */
export type SchemaLoss = Omit<Loss, "tool" | "side">;

/** The treatment of a keyword: kept, kept although the target ignores it, or dropped. */
export type KeywordFate = "keep" | "ignored" | "drop";

export interface Context {
  readonly trace: Trace;
  readonly report: Report;
  /** Lost constraints are written into descriptions. */
  readonly describe: boolean;
  /** A union that cannot be split is an error, because the tool can be sent without strict mode. */
  readonly refuses: boolean;
  /** The property keys that the target allows; absent: all. */
  readonly keys?: NameRule | undefined;
  /** Resolves references in the schema of the pass. */
  readonly resolve: Resolve;
  /** Returns the treatment of a keyword of `node`. */
  fateOf(keyword: string, node: JsonSchemaObject, isRoot: boolean): KeywordFate;
}

/** A reported loss. By default, something looser or tighter is sent instead. */
export interface Note extends Partial<Pick<SchemaLoss, "action" | "grade">> {
  /** A step below the keyword, such as a property's name. */
  readonly step?: string;
  /** The effect if this node were the root; a `not` around it reverses the effect. */
  readonly widens?: boolean;
  readonly narrows?: boolean;
}

interface Entry extends Note {
  readonly node: JsonSchemaObject;
  readonly spot: Spot;
  readonly keyword: string;
  readonly message: string;
}

/** A pass over each node: on the way down, after the rewrite of its children, or up. */
export interface NodePass {
  enter?(node: JsonSchemaObject, context: Context, spot: Spot): JsonSchema;
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

/** The losses of the passes over one schema, in its order and with positions in it. */
export class Report {
  readonly #entries: Entry[];
  readonly #trace: Trace;

  /** @param trace Leads back to the places in the first schema. */
  constructor(trace: Trace) {
    this.#trace = trace;
    this.#entries = [];
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

  /** The losses, with places in `first`: the schema that the first transform was given. */
  losses(first: JsonSchema): readonly SchemaLoss[] {
    if (this.#entries.length === 0) return NONE;
    const places = locate(first);
    const found = this.#entries.map((entry) => {
      const { node, keyword, step } = this.#trace.originOf(entry.node, entry.keyword);
      return { entry, keyword, node, step: step ?? entry.step, at: places.get(node)?.at ?? 0 };
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
        path: pathOf(node, places) + pointerStep(keyword) +
          (step === undefined ? "" : pointerStep(step)),
        keyword,
        action,
        grade,
        widens: either || (spot.effect === "flipped" ? narrows : widens),
        narrows: either || (spot.effect === "flipped" ? widens : narrows),
        message,
      };
      // A definition that was inlined in two places loses the same thing twice, and is listed once.
      // The parts that a keyword was split into are listed one by one.
      const key = [loss.path, entry.keyword, action, grade, loss.widens, loss.narrows].join("\n");
      if (seen.has(key)) continue;
      seen.add(key);
      losses.push(Object.freeze(loss));
    }
    return Object.freeze(losses);
  }
}

const NONE: readonly SchemaLoss[] = Object.freeze([]);

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
