/**
 * Runs transcripts: requests to a handler or to an MCP endpoint, and the expected responses, as data.
 * The requests of a transcript are sent one after the other.
 */

import { it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { type Tool, type ToolDefinition, ToolRegistry } from "@plue/tools";
import { callTasks, memoryCallStore, sealedTickets } from "@plue/tools/calls";
import { createToolBridge, fitBudget } from "@plue/tools/finding";
import * as formats from "@plue/tools/formats";
import {
  type AccessEntry,
  type Caller,
  createToolHandler,
  MemoryRateLimitStore,
  serveFormats,
  type ToolHandlerOptions,
} from "@plue/tools/hono";
import { createMcpEndpoint, type McpEndpointOptions } from "@plue/tools/mcp";
import { legacyRequest, messageIn, modernRequest } from "../mcp/support.ts";
import { toolOf } from "../../support/tool_of.ts";
import { allEvents } from "./sse.ts";
import { assertMatches, BASE, repeated, sampleRegistry } from "./support.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A request and the expected response, or a step between two requests. */
interface Exchange {
  /** The method and the path, or the whole URL. */
  readonly request?: string;
  /** A message to the MCP endpoint, of the newest revision or of an earlier one. */
  readonly era?: "modern" | "legacy";
  readonly method?: string;
  /** The name of a tool to call, and its arguments. By default, the era is the newest. */
  readonly call?: string;
  readonly arguments?: Fields;
  readonly params?: Fields;
  /** The capabilities that a client of the newest revision declares. */
  readonly declares?: Fields;
  /** The caller: the header `authorization`. */
  readonly by?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A string is sent unchanged, any other value as JSON. `{x*9}` represents 9 times `x`. */
  readonly body?: unknown;
  readonly status?: number;
  /** The expected members of the body. In strings, `…` represents any text. */
  readonly response?: unknown;
  /** The expected body, with no other members. */
  readonly exactly?: unknown;
  /** The expected text of a body that is not JSON. */
  readonly text?: string;
  /** The expected events of a stream. */
  readonly events?: readonly unknown[];
  /** The expected ids of the listed tools. */
  readonly ids?: readonly string[];
  /** Some or all tools of an explanation: what removed them, or `seen`. */
  readonly verdicts?: Readonly<Record<string, string>>;
  readonly allVerdicts?: Readonly<Record<string, string>>;
  /** The expected headers of the response; `null` for an absent header. */
  readonly sent?: Readonly<Record<string, string | null>>;
  /** Text that the response must not contain. */
  readonly lacks?: string;
  /** Names for values of the response: a JSON Pointer into the body, or `header` and a name. */
  readonly keep?: Readonly<Record<string, string>>;
  /** Waits until the response to the same request has these members. */
  readonly until?: Fields;
  /** Changes of the registry, and of the clock. */
  readonly register?: ToolData;
  readonly unregister?: string;
  readonly passMs?: number;
}

/** The fields of an exchange: a misspelt field would check nothing. */
const FIELDS: readonly string[] =
  ("request era method params call arguments declares by headers body status response exactly text " +
    "events ids verdicts allVerdicts sent lacks keep until register unregister passMs").split(" ");

/** A tool that returns a value, or throws an error with a message. */
interface ToolData extends Partial<ToolDefinition> {
  readonly name: string;
  readonly answers?: unknown;
  readonly throws?: string;
}

interface Transcript {
  readonly title: string;
  /** By default, the tools of `sampleRegistry`. */
  readonly tools?: string | readonly ToolData[];
  readonly options?: Fields;
  /** The callers, by their header `authorization`; a number is the status that rejects them. */
  readonly callers?: Readonly<Record<string, Caller | number>>;
  /** The capabilities that the client declares in each request that does not name others. */
  readonly declares?: Fields;
  readonly exchanges: readonly Exchange[];
  /** The errors that the handler logs. */
  readonly logged?: readonly string[];
  /** The expected access log: method, path, route, status, principal, tool and outcome. */
  readonly access?: readonly (readonly unknown[])[];
}

/** Tools by their names. */
export type NamedTools = Readonly<Record<string, () => readonly Tool[]>>;

const KEY = new Uint8Array(32).fill(1);

/** The settings that a transcript cannot express. */
export interface Setting {
  readonly named?: NamedTools;
  /** True for an MCP endpoint; otherwise it is a handler. */
  readonly isMcp?: boolean;
  /** Further options. */
  readonly more?: McpEndpointOptions;
}

/** The state that the requests of one transcript share. */
class Scene {
  readonly registry: ToolRegistry;
  readonly logged: string[] = [];
  readonly entries: AccessEntry[] = [];
  readonly #kept = new Map<string, unknown>();
  readonly #transcript: Transcript;
  readonly #app: (request: Request) => Response | Promise<Response>;
  readonly #isMcp: boolean;
  #now = 0;

  constructor(transcript: Transcript, { named = {}, isMcp = false, more = {} }: Setting) {
    const { tools } = transcript;
    this.#transcript = transcript;
    this.registry = tools === undefined ? sampleRegistry() : new ToolRegistry({
      tools: typeof tools === "string" ? [...toolsNamed(tools, named)] : tools.map(madeTool),
    });
    this.#isMcp = isMcp;
    const options = { ...this.#options(), ...more };
    this.#app = isMcp
      ? createMcpEndpoint(this.registry, options as McpEndpointOptions).fetch
      : createToolHandler(this.registry, options as ToolHandlerOptions).fetch;
  }

  #options(): ToolHandlerOptions {
    const { callers, options = {}, access } = this.#transcript;
    const { formats: served, bridge, tickets, tasks, rateLimit, deny, ...rest } = options;
    const store = memoryCallStore();
    return {
      ...rest,
      onError: (error) => void this.logged.push((error as Error).message),
      ...(access === undefined
        ? {}
        : { observe: { access: (entry) => void this.entries.push(entry) } }),
      ...(callers === undefined ? {} : { authorize: (request) => callerOf(request, callers) }),
      ...(served === undefined ? {} : {
        formats: serveFormats(formats, served === true ? {} : { ...served as object, fitBudget }),
      }),
      ...(bridge === undefined ? {} : {
        bridge: (toolset) => createToolBridge(toolset, bridge === true ? {} : bridge as object),
      }),
      ...(tickets === undefined ? {} : {
        dispatch: {
          tickets: sealedTickets({ keys: [KEY], ...(tickets === "once" ? { store } : {}) }),
          approve: "ask",
        },
      }),
      ...(tasks === undefined ? {} : { tasks: callTasks({ store, pollMs: 5 }) }),
      ...(rateLimit === undefined ? {} : {
        rateLimit: {
          ...rateLimit as { readonly limit: number; readonly windowMs: number },
          store: new MemoryRateLimitStore({ now: () => this.#now }),
        },
      }),
      ...(deny === undefined ? {} : {
        selection: { policies: [{ name: "deny", allow: (tool) => tool?.id !== deny }] },
      }),
    };
  }

  async run(exchange: Exchange, place: string): Promise<void> {
    const unknown = Object.keys(exchange).filter((name) => !FIELDS.includes(name));
    assertEquals(unknown, [], place);
    const { register, unregister, passMs = 0, until } = exchange;
    if (register !== undefined) this.registry.registerTool(madeTool(register));
    if (unregister !== undefined) this.registry.unregisterTool(unregister);
    this.#now += passMs;
    const { call, era = call && "modern", method = call && "tools/call" } = exchange;
    if (exchange.request === undefined && era === undefined) {
      const steps = { register: 0, unregister: 0, passMs: 0 };
      return assert(Object.keys(exchange).every((name) => name in steps), place);
    }
    const { declares } = this.#transcript;
    const expected = this.#filled({ declares, ...exchange, era, method } as Exchange);
    if (until === undefined) return await this.#check(expected, await this.#send(expected), place);
    for (;;) {
      const response = await this.#send(expected);
      const message = await response.clone().json();
      const body = era === undefined ? message : message.result;
      if (Object.entries(until).every(([name, value]) => body[name] === value)) {
        return await this.#check(expected, response, place);
      }
      await response.body?.cancel();
    }
  }

  /** Replaces names of stored values: `{name}` within a string, `{=name}` as the whole value. */
  #filled(exchange: Exchange): Exchange {
    const text = JSON.stringify(exchange).replace(
      /"\{=(\w+)\}"/g,
      (_, name) => JSON.stringify(this.#kept.get(name)),
    );
    return JSON.parse(text.replace(/\{(\w+)\}/g, (whole, name) => {
      const value = this.#kept.get(name);
      return value === undefined ? whole : JSON.stringify(String(value)).slice(1, -1);
    }));
  }

  async #send(exchange: Exchange): Promise<Response> {
    return await this.#app(exchange.era === undefined ? requestOf(exchange) : messageOf(exchange));
  }

  async #check(expected: Exchange, response: Response, place: string): Promise<void> {
    const { era, status = 200, response: members, exactly, events } = expected;
    if (events !== undefined) {
      const found = await allEvents(response);
      assertMatches(found, events, `${place}: events`);
      return this.#checkHeaders(expected, response, found, place);
    }
    const text = await response.clone().text();
    assertEquals(response.status, status, `${place}: ${text}`);
    const type = response.headers.get("content-type") ?? "";
    const body = era !== undefined
      ? await messageIn(response)
      : /[/+]json/.test(type) && text !== ""
      ? JSON.parse(text)
      : undefined;
    if (status >= 400 && type.includes("json") && !this.#isMcp) {
      assertEquals(type, "application/problem+json", place);
      assertEquals(body.status, status, place);
    }
    if ("response" in expected) assertMatches(body, members, place);
    if ("exactly" in expected) assertEquals(body, exactly, place);
    if (expected.text !== undefined) assertMatches(text, expected.text, place);
    if (expected.lacks !== undefined) assert(!text.includes(expected.lacks), text);
    checkTools(expected, body, place);
    this.#checkHeaders(expected, response, body, place);
  }

  /** Checks the headers, and stores values of the response. */
  #checkHeaders(
    { sent = {}, keep = {} }: Exchange,
    response: Response,
    body: unknown,
    place: string,
  ): void {
    if (response.body !== null) assertMatches(Object.fromEntries(response.headers), SAFE, place);
    for (const [name, value] of Object.entries(sent)) {
      assertMatches(response.headers.get(name), value, `${place}: ${name}`);
    }
    for (const [name, from] of Object.entries(keep)) {
      const [header = "", of] = from.split(" ");
      const value = of === undefined ? valueAt(body, header) : response.headers.get(of);
      this.#kept.set(name, value);
    }
  }
}

/** The headers that forbid other sites to embed a body or to interpret it as another type. */
export const SAFE = {
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
};

type Explained = { readonly id: string; readonly available: boolean; readonly removedBy?: string };

function checkTools(
  { ids, verdicts, allVerdicts }: Exchange,
  body: { readonly tools: readonly Explained[] },
  place: string,
): void {
  if (ids !== undefined) assertEquals(body.tools.map(({ id }) => id), ids, place);
  if (verdicts === undefined && allVerdicts === undefined) return;
  const found = Object.fromEntries(
    body.tools.map(({ id, available, removedBy }) => [id, available ? "seen" : removedBy]),
  );
  if (verdicts !== undefined) assertMatches(found, verdicts, place);
  if (allVerdicts !== undefined) assertEquals(found, allVerdicts as typeof found, place);
}

function valueAt(body: unknown, pointer: string): unknown {
  let value = body;
  for (const step of pointer.split("/").slice(1)) value = (value as Record<string, unknown>)[step];
  return value;
}

function callerOf(
  { headers }: Request,
  callers: Readonly<Record<string, Caller | number>>,
): Caller | Response {
  const caller = callers[headers.get("authorization") ?? ""];
  return typeof caller === "number" ? new Response(null, { status: caller }) : caller as Caller;
}

function toolsNamed(name: string, named: NamedTools): readonly Tool[] {
  const make = named[name];
  assert(make !== undefined, `There are no tools "${name}"`);
  return make();
}

function madeTool({ name, answers = null, throws, ...fields }: ToolData): Tool {
  const execute = (): unknown => {
    if (throws !== undefined) throw new Error(throws);
    return answers;
  };
  return toolOf(name, execute, fields);
}

function requestOf({ request = "", by, headers = {}, body }: Exchange): Request {
  const [method = "", path = ""] = repeated(request).split(" ");
  return new Request(path.startsWith("http") ? path : BASE + path, {
    method,
    headers: {
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(by === undefined ? {} : { authorization: by }),
      ...JSON.parse(repeated(JSON.stringify(headers))),
    },
    ...(body === undefined
      ? {}
      : { body: repeated(typeof body === "string" ? body : JSON.stringify(body)) }),
  });
}

const OLDER = { "mcp-protocol-version": "2025-11-25" };

function messageOf(exchange: Exchange): Request {
  const { era, method = "", call, arguments: args = {}, declares, by, headers } = exchange;
  const params: Fields | undefined = call === undefined
    ? exchange.params
    : { name: call, arguments: JSON.parse(repeated(JSON.stringify(args))), ...exchange.params };
  const own = by === undefined ? {} : { authorization: by };
  if (era === "legacy") {
    const message = "body" in exchange ? exchange.body : { jsonrpc: "2.0", id: 1, method, params };
    return legacyRequest(repeated(JSON.stringify(message)), { ...own, ...headers ?? OLDER });
  }
  const meta = declares && {
    _meta: {
      "io.modelcontextprotocol/clientCapabilities": declares,
      ...params?.["_meta"] as object,
    },
  };
  const task = params?.["taskId"];
  const name = typeof task === "string" ? { "mcp-name": task } : {};
  return modernRequest(method, { ...params, ...meta }, { ...own, ...name, ...headers });
}

export function runTranscripts(transcripts: unknown, setting: Setting = {}): void {
  // JSON has no narrower types.
  for (const transcript of transcripts as readonly Transcript[]) {
    const { title, exchanges, logged, access } = transcript;
    it(title, async () => {
      const scene = new Scene(transcript, setting);
      for (const [index, exchange] of exchanges.entries()) {
        const what = exchange.request ?? exchange.method ?? exchange.call ?? "";
        await scene.run(exchange, `exchange ${index}, ${what}`.slice(0, 200));
      }
      if (logged !== undefined) assertMatches(scene.logged, logged, "the log");
      if (access !== undefined) {
        const rows = scene.entries.map(({ method, path, route, status, principal, calls }) => [
          ...[method, path, route ?? null, status, principal ?? null],
          ...calls.flatMap(({ toolId, outcome }) => [toolId, outcome]),
        ]);
        assertEquals(rows, access as unknown[][]);
      }
    });
  }
}
