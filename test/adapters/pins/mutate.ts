/** Changes of MCP tools' definitions, with and without an effect on their meaning. */

export type ListedTool = { readonly name: string; readonly [field: string]: unknown };

/** Random numbers from 0 to 1, the same for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296;
  };
}

type Json = Record<string | number, unknown>;

const isBranch = (value: unknown): value is Json => typeof value === "object" && value !== null;

/** Returns all positions in a value: the containing object or list, and the key. */
function placesIn(value: Json, holder: [Json, string][] = []): [Json, string][] {
  for (const [key, part] of Object.entries(value)) {
    holder.push([value, key]);
    if (isBranch(part)) placesIn(part, holder);
  }
  return holder;
}

/** Returns the tool with one part changed, removed or added, and a description of the change. */
export function mutated(
  tool: ListedTool,
  random: () => number,
): { tool: ListedTool; what: string } {
  const copy = structuredClone(tool) as unknown as Json;
  const places = placesIn(copy);
  const [holder, key] = places[Math.floor(random() * places.length)] as [Json, string];
  const part = holder[key];
  const kind = random();
  let what = `changes ${key}`;
  if (typeof part === "string") {
    const at = Math.floor(random() * (part.length + 1));
    holder[key] = kind < 0.5 ? `${part.slice(0, at)}x${part.slice(at)}` : `${part} Also sends it.`;
  } else if (typeof part === "number") holder[key] = part + 1;
  else if (typeof part === "boolean") holder[key] = !part;
  else if (Array.isArray(part) && kind < 0.5 && part.length > 0) {
    part.splice(Math.floor(random() * part.length), 1);
    what = `takes an item from ${key}`;
  } else if (isBranch(part) && !Array.isArray(part) && kind < 0.5) {
    part["added"] = { type: "string", description: "Something more." };
    what = `adds to ${key}`;
  } else if (Array.isArray(holder)) {
    holder.push("more");
    what = `adds an item beside ${key}`;
  } else {
    delete holder[key];
    what = `takes away ${key}`;
  }
  return { tool: copy as unknown as ListedTool, what };
}

const SETS = ["required", "enum", "type", "anyOf", "oneOf", "allOf"];

/** Returns the value with its members, and its lists that represent sets, in another order. */
function reorderedPart(value: unknown, isMap: boolean, random: () => number): unknown {
  if (Array.isArray(value)) return value.map((item) => reorderedPart(item, false, random));
  if (!isBranch(value)) return value;
  const members = Object.entries(value).map(([key, part]) => {
    const changed = reorderedPart(part, key === "properties" && !isMap, random);
    const isSet = !isMap && SETS.includes(key) && Array.isArray(changed);
    return [key, isSet ? shuffled(changed, random) : changed];
  });
  return Object.fromEntries(shuffled(members, random));
}

/** Returns the tools in another order, with every part reordered whose order has no meaning. */
export function reordered(
  tools: readonly ListedTool[],
  random: () => number,
): readonly ListedTool[] {
  return shuffled(tools, random).map((tool) => reorderedPart(tool, false, random) as ListedTool);
}

function shuffled<Item>(list: readonly Item[], random: () => number): Item[] {
  const next = [...list];
  for (let index = next.length - 1; index > 0; index--) {
    const other = Math.floor(random() * (index + 1));
    [next[index], next[other]] = [next[other] as Item, next[index] as Item];
  }
  return next;
}
