/** Hides imported tools whose definition differs from the approved one. */

import { FINDING_RULES, type JsonRecord } from "../../formats/provider_kit.ts";
import type * as formats from "../../formats/mod.ts";
import type { HeldTool, PinnedImport } from "../../formats/mod.ts";
import * as check from "../../tool/mod.ts";
import {
  callHook,
  canonicalJson,
  clip,
  defined,
  describe,
  describeThrown,
  fail,
  isObject,
  makeTool,
  markPinned,
  Mutex,
  noop,
  once,
  systemClock,
  TIME_OVER,
  type Tool,
  within,
} from "../../tool/mod.ts";
import { definitionOf, differences, gravest } from "./definition.ts";
import { fileStore, memoryStore, type PinStore } from "./store.ts";

/** Options for {@linkcode toolPins}. */
export interface ToolPinsOptions {
  /**
   * The treatment of tools of an import for which the store has no pins. `trust` approves the tools
   * without findings in their texts and names. `hold` hides all tools.
   *
   * @default {"trust"}
   */
  readonly firstImport?: "trust" | "hold";
  /**
   * The time limit for loading from the store and saving to it, in milliseconds. After a timeout,
   * all tools of the import are hidden.
   *
   * @default {30_000}
   */
  readonly storeTimeoutMs?: number;
  /** Called for each hidden tool, once per definition. Its errors are ignored. */
  onHeld?(held: HeldTool): void;
}

interface Pin {
  readonly digest: string;
  readonly definition: JsonRecord;
}

type Approved = Map<string, Pin>;

interface Offer extends Pin {
  readonly tool: Tool;
  /** True if the texts or the name of the tool have findings. */
  readonly isSuspect: boolean;
}

/**
 * Creates pins: the digests and definitions of approved tools. Pass them to `importMcpServer`,
 * `importTools` or `importOpenApi` as `pins`. A tool that is new, changed, renamed or removed is
 * hidden until it is approved. One object can serve many imports, each with its own namespace.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { importTools } from "@plue/tools/formats";
 * import { toolPins } from "@plue/tools/pins";
 *
 * const inputSchema = { type: "object" };
 * const list = (description: string) => [{ name: "read", description, inputSchema }];
 * const options = { namespace: "files", pins: toolPins() };
 * await importTools("mcp", list("Reads a file."), options);
 * const later = await importTools("mcp", list("Sends a file."), options);
 * assert.deepEqual(later.held.map(({ id, grade }) => [id, grade]), [["files:read", "wording"]]);
 * const { tools } = await later.approve("files:read");
 * assert.equal(tools[0]?.description, "Sends a file.");
 * ```
 *
 * @param store The path of a file, which is created if it does not exist, or a store; by default
 * memory.
 * @throws {TypeError} If an argument is invalid.
 */
export function toolPins(
  store: PinStore | string = memoryStore(),
  options: ToolPinsOptions = {},
): formats.ImportPins {
  const read = check.readFields(ACTION, options, CHECKS, (field) => field);
  const { firstImport = "trust", storeTimeoutMs = 30_000, onHeld } = read;
  const opened = typeof store === "string" ? once(files, store, () => fileStore(store)) : store;
  if (typeof opened?.load !== "function" || typeof opened.save !== "function") {
    fail(ACTION, "the store must be the path of a file, or have load and save");
  }
  return new ToolPins(opened, { firstImport, storeTimeoutMs, onHeld });
}

/** The stores of files, by path. */
const files = new Map<string, PinStore>();
/** Uses of a store are serialized, so that none overwrites another's pins. */
const turns = new WeakMap<PinStore, Mutex>();

const ACTION = "make pins";

const CHECKS = {
  firstImport: check.oneOf(["trust", "hold"] as const),
  storeTimeoutMs: check.numberFrom(1, check.MAX_TIMEOUT_MS),
  onHeld: check.checkFunction as check.Check<(held: HeldTool) => void>,
};

interface CheckedOptions extends Required<Omit<ToolPinsOptions, "onHeld">> {
  readonly onHeld: ToolPinsOptions["onHeld"] | undefined;
}

interface Checked<Source extends string = string> {
  readonly imported: formats.ImportResult<Source>;
  readonly key: string;
  readonly offers: readonly Offer[];
}

class ToolPins implements formats.ImportPins {
  readonly #store: PinStore;
  readonly #options: CheckedOptions;
  /** The reports of each import's last check. */
  readonly #reported = new Map<string, ReadonlySet<string>>();
  /** The imports whose pins were stored. */
  readonly #stored = new Set<string>();

  constructor(store: PinStore, options: CheckedOptions) {
    this.#store = store;
    this.#options = options;
  }

  check<Source extends string>(
    imported: formats.ImportResult<Source>,
    key: string,
  ): Promise<PinnedImport<Source>> {
    return this.#inTurn(async () => {
      const offers = await offersOf(imported);
      const checked = { imported, key, offers };
      try {
        // Known pins need no lock, so that they can be on a disk that is only read.
        const known = (await this.#load()).get(key);
        if (known === undefined && this.#stored.has(key)) {
          throw new Error(
            "they have disappeared; restore them, and restart. Without them, a start trusts the source",
          );
        }
        const isTrusting = this.#options.firstImport === "trust";
        return this.#judged(
          checked,
          known ?? await this.#change(key, (stored) => {
            const trusted = offers.filter(({ isSuspect }) => isTrusting && !isSuspect);
            return stored ?? new Map(trusted.map((offer) => [offer.tool.id, offer]));
          }),
        );
      } catch (error) {
        return this.#unverified(checked, describeThrown(error, 300));
      }
    });
  }

  #approve<Source extends string>(
    checked: Checked<Source>,
    held: readonly HeldTool[],
    wanted: readonly (string | HeldTool)[],
  ): Promise<PinnedImport<Source>> {
    return this.#inTurn(async () => {
      const approved = await this.#change(checked.key, (approved = new Map()) => {
        for (const one of wanted) {
          const id = typeof one === "string" ? one : one.id;
          const action = `approve ${describe(id)}`;
          const found = held.find((candidate) => candidate.id === id);
          if (found === undefined) fail(action, "the tool is not held back");
          if (typeof one !== "string" && one.digest !== found.digest) {
            fail(
              action,
              "the definition no longer has the given digest; review the new definition",
            );
          }
          const offer = checked.offers.find(({ tool }) => tool.id === id);
          if (offer === undefined) approved.delete(id);
          else approved.set(id, offer);
          if (found.formerId !== undefined) approved.delete(found.formerId);
        }
        return approved;
      });
      return this.#judged(checked, approved);
    });
  }

  #judged<Source extends string>(
    checked: Checked<Source>,
    approved: Approved,
  ): PinnedImport<Source> {
    const { key, offers } = checked;
    this.#stored.add(key);
    const isApproved = ({ tool, digest }: Offer): boolean =>
      approved.get(tool.id)?.digest === digest;
    const offered = new Set(offers.map(({ tool }) => tool.id));
    const vanished = [...approved].filter(([id]) => !offered.has(id));
    const byContent = new Map(vanished.map(([id, pin]) => [nameless(pin.definition), id]));
    const held = offers.filter((offer) => !isApproved(offer)).map((offer) => {
      const before = approved.get(offer.tool.id);
      const formerId = before === undefined ? byContent.get(nameless(offer.definition)) : undefined;
      return heldOffer(offer, before, formerId);
    });
    const gone = vanished.map(([id, { definition }]) =>
      holdBack(id, {
        ...{ kind: "vanished", grade: "narrowed", changes: [], before: definition, digest: "" },
        reason: "it has vanished since it was approved",
      })
    );
    const tools = offers.filter(isApproved).map(({ tool }) => tool);
    tools.forEach(markPinned);
    return this.#answer(checked, tools, [...held, ...gone]);
  }

  #unverified<Source extends string>(checked: Checked<Source>, why: string): PinnedImport<Source> {
    const { imported, offers } = checked;
    const message = `All tools are held back: the pins cannot be read or stored: ${why}`;
    const warnings = Object.freeze([...imported.warnings, { path: "", rule: "pins", message }]);
    const held = offers.map(({ tool, definition, digest }) =>
      holdBack(tool.id, {
        ...{ kind: "unverified", grade: "widened", changes: [], after: definition, digest },
        reason: `its pins cannot be read or stored: ${why}`,
      })
    );
    return this.#answer({ ...checked, imported: { ...imported, warnings } }, [], held);
  }

  #answer<Source extends string>(
    checked: Checked<Source>,
    tools: readonly Tool[],
    held: readonly HeldTool[],
  ): PinnedImport<Source> {
    const before = this.#reported.get(checked.key);
    const now = new Map(held.map((one) => [`${one.kind} ${one.digest} ${one.id}`, one]));
    this.#reported.set(checked.key, new Set(now.keys()));
    for (const [mark, one] of now) {
      if (before?.has(mark) !== true) callHook(() => this.#options.onHeld?.(one), noop);
    }
    return Object.freeze({
      ...checked.imported,
      tools: Object.freeze(tools),
      held: Object.freeze(held),
      approve: (...wanted: readonly (string | HeldTool)[]) => this.#approve(checked, held, wanted),
    });
  }

  async #load(): Promise<Map<string, Approved>> {
    const text = await this.#inTime(this.#store.load());
    return text === undefined ? new Map() : await parsePins(text);
  }

  /** Replaces the pins of one import by the result of `change`. */
  async #change(key: string, change: (stored?: Approved) => Approved): Promise<Approved> {
    let next: Approved | undefined;
    const work = async (): Promise<void> => {
      const all = await this.#load();
      const changed = change(all.get(key));
      await this.#inTime(this.#store.save(await writePins(all.set(key, changed))));
      next = changed;
    };
    await this.#inTime(Promise.resolve(this.#store.exclusive?.(work) ?? work()));
    return next ?? fail("store pins", "exclusive() of the store has not run its function");
  }

  async #inTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const { storeTimeoutMs } = this.#options;
    const value = await within(systemClock, storeTimeoutMs, answer);
    if (value !== TIME_OVER) return value;
    throw new Error(`The store did not answer within ${storeTimeoutMs} ms`);
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    return once(turns, this.#store, () => new Mutex()).run(work);
  }
}

function offersOf(imported: formats.ImportResult): Promise<Offer[]> {
  const suspects = new Set(
    imported.warnings.filter(({ rule }) => FINDING_RULES.has(rule)).map(({ tool }) => tool),
  );
  return Promise.all(imported.tools.map(async (tool) => {
    const definition = definitionOf(tool);
    const digest = await digestOf(definition);
    return { tool, definition, digest, isSuspect: suspects.has(tool.id) };
  }));
}

function heldOffer(
  { tool, definition, digest, isSuspect }: Offer,
  before: Pin | undefined,
  formerId: string | undefined,
): HeldTool {
  const changes = before === undefined ? [] : differences(before.definition, definition);
  const grades: formats.PinGrade[] = changes.map((change) => change.grade);
  if (before === undefined) grades.push("widened");
  if (isSuspect) grades.push("risk_raised");
  const grade = gravest(grades);
  const [kind, reason] = before !== undefined
    ? ["changed", `it has changed since it was approved (${grade}${placesOf(changes)})`] as const
    : formerId !== undefined
    ? ["renamed", `it is "${clip(formerId)}" under another name, which is not approved`] as const
    : ["new", `it is new, and not approved (${grade})`] as const;
  return holdBack(tool.id, {
    ...{ kind, grade, changes, after: definition, digest, reason },
    ...defined({ formerId, before: before?.definition }),
  });
}

function placesOf(changes: readonly formats.PinChange[]): string {
  const [first] = changes;
  if (first === undefined) return "";
  const more = changes.length > 1 ? ` and ${changes.length - 1} more` : "";
  return ` at ${clip(first.path, 100)}${more}`;
}

function holdBack(id: string, held: Omit<HeldTool, "id" | "tool">): HeldTool {
  const reason = `the pins hold it back: ${held.reason}`;
  const tool = makeTool({
    name: id,
    description: "Held back until it is approved.",
    risk: "critical",
    isAvailable: false,
    unavailableReason: reason,
    meta: { provider: { name: (held.after ?? held.before)?.["name"] } },
  });
  return Object.freeze({ ...held, id, reason, changes: Object.freeze(held.changes), tool });
}

function nameless(definition: JsonRecord): string {
  return canonicalJson({ ...definition, name: "" });
}

const encoder = new TextEncoder();

async function digestOf(value: unknown): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", encoder.encode(canonicalJson(value)));
  const hex = Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0"));
  return `sha256:${hex.join("")}`;
}

function listDigest(approved: Approved): Promise<string> {
  return digestOf(Object.fromEntries([...approved].map(([id, { digest }]) => [id, digest])));
}

const VERSION = 1;

async function writePins(all: ReadonlyMap<string, Approved>): Promise<string> {
  const imports = await Promise.all([...all].map(async ([key, approved]) => {
    const tools = [...approved].sort(([a], [b]) => a < b ? -1 : 1)
      .map(([id, { digest, definition }]) => [id, { digest, definition }]);
    return [key, { list: await listDigest(approved), tools: Object.fromEntries(tools) }] as const;
  }));
  return `${JSON.stringify({ version: VERSION, imports: Object.fromEntries(imports) }, null, 2)}\n`;
}

/** @throws {Error} If the text does not come from {@linkcode writePins}, or was edited. */
async function parsePins(text: string): Promise<Map<string, Approved>> {
  const wrong = (what: string): never => {
    throw new SyntaxError(`The file does not contain pins: ${what}`);
  };
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch {
    return wrong("they are not JSON");
  }
  if (!isObject(root) || root["version"] !== VERSION || !isObject(root["imports"])) {
    return wrong(`they must have "version" ${VERSION} and "imports"`);
  }
  const all = new Map<string, Approved>();
  for (const [key, value] of Object.entries(root["imports"])) {
    if (!isObject(value) || !isObject(value["tools"])) {
      return wrong(`"${clip(key)}" must have "tools"`);
    }
    const approved: Approved = new Map();
    for (const [id, pin] of Object.entries(value["tools"])) {
      const { digest, definition } = isObject(pin) ? pin : {};
      if (typeof digest !== "string" || !isObject(definition)) {
        return wrong(`"${clip(id)}" must have a digest and a definition`);
      }
      approved.set(id, { digest, definition });
    }
    if (await listDigest(approved) !== value["list"]) {
      return wrong(`the digest of "${clip(key)}" does not match its tools`);
    }
    all.set(key, approved);
  }
  return all;
}
