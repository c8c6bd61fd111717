/**
 * Every hook of a host, with a program that uses it and the required result for every behaviour of
 * the hook.
 *
 * @module
 */

import { SignJWT } from "jose";
import {
  type CallObserver,
  type CallTelemetry,
  type CallTickets,
  defineTool,
  type DispatchContext,
  isSuspended,
  isTool,
  type Layer,
  Registry,
  type SchemaEngine,
  type SelectableToolHost,
  type Selection,
  type Tool,
  type ToolDispatcherOptions,
  type ToolIndex,
  type ToolReader,
  type ToolSource,
  type TraceHeaders,
} from "../../src/core.ts";
import { ToolDispatcher } from "../../src/execute/mod.ts";
import {
  buildToolset,
  type ToolDefinition,
  ToolRegistry,
  type ToolRegistryOptions,
  typeboxEngine,
} from "../../mod.ts";
import {
  bearerAuth,
  composeToolHandler,
  createToolHandler,
  type HttpPart,
  jwtAuth,
  type JwtAuthOptions,
  limitFailedLogins,
  MemoryRateLimitStore,
  type PartHooks,
  queryPages,
  remoteKeys,
  serveFormats,
  serveListing,
  serveTurns,
  type ToolHandlerOptions,
} from "../../src/adapters/hono/mod.ts";
import * as formats from "../../src/formats/mod.ts";
import { atOnce, systemClock } from "../../src/tool/mod.ts";
import { createMcpEndpoint, importMcpServer } from "../../src/adapters/mcp/mod.ts";
import { importOpenApi } from "../../src/adapters/openapi/mod.ts";
import {
  type CallStore,
  callTasks,
  type CallTasksOptions,
  createTickets,
  memoryCallStore,
  storedTickets,
  type TicketSealer,
} from "../../src/adapters/calls/mod.ts";
import {
  memoryStore,
  type PinStore,
  toolPins,
  type ToolPinsOptions,
} from "../../src/adapters/pins/mod.ts";
import { fetchFrom, modernRequest, URL_OF_MCP } from "../adapters/mcp/support.ts";

/** The misbehaviour of a hook. */
export const WAYS = ["throws", "rejects", "hangs", "answers nonsense"] as const;
export type Way = (typeof WAYS)[number];

/** A hook that does something wrong. It fits wherever a function is wanted. */
// deno-lint-ignore no-explicit-any
export type BadHook = (...args: any[]) => any;

export const BAD_HOOKS: Readonly<Record<Way, BadHook>> = {
  throws() {
    throw new Error("The hook throws");
  },
  rejects: () => Promise.reject(new Error("The hook rejects")),
  hangs: () => new Promise(() => {}),
  "answers nonsense": () => 42,
};

/** A program that uses a hook, and its result. */
export interface HookCase {
  /** The answer; `never` where what decides is waited for. By way where the ways differ. */
  readonly right: string | Readonly<Record<Way, string>>;
  /** Uses the hook, and gives the answer in a word. */
  run(hook: BadHook): unknown;
}

/** The answers of a call whose hook decides, and is waited for until the call's time is over. */
function decides(failed: string, nonsense: string = failed): Readonly<Record<Way, string>> {
  return { throws: failed, rejects: failed, hangs: "timeout", "answers nonsense": nonsense };
}

/** The answers of a request whose hook decides, and is waited for. */
function lets(failed: string, nonsense: string = failed): Readonly<Record<Way, string>> {
  return { throws: failed, rejects: failed, hangs: "never", "answers nonsense": nonsense };
}

/** A tool that waits once, then answers `done`. */
const WAIT: ToolDefinition = {
  name: "t",
  description: "Waits once.",
  execute: () => new Promise((resolve) => setTimeout(() => resolve("done"), 1)),
};
const FAIL: ToolDefinition = {
  ...WAIT,
  execute() {
    throw new Error("As tools do");
  },
};

function layer(part: Partial<Layer>): Layer {
  return { name: "bad", stage: "run", ...part };
}

/** A case of an observer, whose calls give the answer. */
function observes(
  right: string,
  observer: (hook: BadHook) => CallObserver,
  tool: ToolDefinition = WAIT,
): HookCase {
  return {
    right,
    run: (hook) =>
      call({ tool, dispatcher: { layers: [layer({ observe: () => observer(hook) })] } }),
  };
}

const SHORT: ToolDispatcherOptions = {
  timeoutMs: 1_000,
  approvalTimeoutMs: 1_000,
  graceMs: 0,
  closeTimeoutMs: 1_000,
};

interface CallSetup {
  readonly request?: object;
  readonly tool?: Partial<ToolDefinition> | Tool;
  readonly registry?: Partial<ToolRegistryOptions>;
  readonly dispatcher?: ToolDispatcherOptions;
  readonly context?: DispatchContext;
  readonly selection?: Selection;
}

/** Calls the tool `t`, and gives its content or the code of its failure. */
async function call({ tool, registry: options, request, ...setup }: CallSetup): Promise<string> {
  const registry = new ToolRegistry({ lifecycleTimeoutMs: 500, ...options });
  registry.registerTool(isTool(tool) ? tool : { ...WAIT, ...tool } as ToolDefinition);
  const toolset = registry.select(setup.selection ?? {});
  const dispatcher = new ToolDispatcher(toolset, { ...SHORT, ...setup.dispatcher });
  const result = await dispatcher.dispatch({ name: "t", ...request }, setup.context);
  registry.getAvailableTools();
  toolset.explain("t");
  await registry.dispose().catch(() => {});
  return result.ok ? String(result.content) : result.error.code;
}

/** Runs the tool `t` over HTTP, and gives the status. */
async function request(
  options: Partial<ToolHandlerOptions>,
  tool: ToolDefinition = WAIT,
  authorization = "Bearer correct-horse-battery",
  query = "",
): Promise<string> {
  const handler = createToolHandler(new ToolRegistry({ tools: [tool] }), {
    ...("authorize" in options ? {} : { openExecution: true }),
    ...options,
  });
  const response = await handler.fetch(
    new Request(`http://localhost/tools/t/execute${query}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization },
      body: "{}",
    }),
  );
  await response.text();
  return String(response.status);
}

const OWN_ROUTE: PartHooks = {
  routes: [{ method: "GET", path: "/t", answer: () => new Response("t") }],
};

/** Sends a request to a handler with one part, and gives the status. */
async function composed(
  part: PartHooks | HttpPart,
  method = "GET",
  path = "/t",
): Promise<string> {
  const { fetch } = composeToolHandler(new ToolRegistry({ tools: [WAIT] }), {
    openExecution: true,
    parts: [typeof part === "function" ? part : () => part],
  });
  const response = await fetch(new Request(`http://localhost${path}`, { method }));
  await response.text();
  return String(response.status);
}

const engine = typeboxEngine();

/** An engine with something wrong in it, for a tool that takes nothing. */
function callWith(broken: SchemaEngine): Promise<string> {
  const registry = new Registry({ engine: broken, tools: [WAIT] });
  return new ToolDispatcher(registry, SHORT).dispatch({ name: "t", arguments: { more: 1 } })
    .then((result) => result.ok ? String(result.content) : result.error.code);
}

/** Calls a tool that cannot be disposed of. */
function callUndisposable(registry: Partial<ToolRegistryOptions>): Promise<string> {
  const dispose = (): void => {
    throw new Error("As disposals do");
  };
  return call({ tool: { dispose }, registry });
}

/** Uses every operation of an index, and calls the tool. */
function callWithIndex(index: () => ToolIndex): Promise<string> {
  const registry = new ToolRegistry({ index, tools: [WAIT] });
  const search = (): void => {
    try {
      registry.searchTools("waits");
    } catch {
      // The caller receives errors of its own index.
    }
  };
  search();
  registry.updateTool({ ...WAIT, description: "Waits again." });
  search();
  return call({ registry: { index } });
}

const INDEX: ToolIndex = { add() {}, remove() {}, search: () => [] };

const OPENAPI = {
  openapi: "3.1.0",
  info: { title: "t", version: "1" },
  servers: [{ url: "https://api.example" }],
  paths: { "/t": { get: { operationId: "t", responses: { 200: { description: "ok" } } } } },
};

async function callOpenApi(options: Parameters<typeof importOpenApi>[1]): Promise<string> {
  const { tools } = await importOpenApi(OPENAPI, options);
  const registry = new ToolRegistry({ tools });
  const [tool] = registry.tools;
  const dispatcher = new ToolDispatcher(registry, SHORT);
  const result = await dispatcher.dispatch({ name: tool?.id ?? "t" });
  return result.ok ? "ok" : result.error.code;
}

const MCP_LIST = { tools: [{ name: "t", inputSchema: { type: "object" } }] };

/** A token whose signature no key has made. */
const TOKEN = "Bearer " + ["eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9", "eyJleHAiOjk5OTk5OTk5OTl9", "AA"]
  .join(".");

const JWT = { issuer: "https://issuer.example", audience: "plue" };

/** Runs the tool `t` for who has a good token. */
async function requestWithToken(options: Partial<JwtAuthOptions>): Promise<string> {
  const secret = "correct-horse-battery-staple-correct";
  const token = await new SignJWT({ sub: "ann" })
    .setProtectedHeader({ alg: "HS256" })
    .setIssuedAt()
    .setExpirationTime("1h")
    .setAudience("plue")
    .sign(new TextEncoder().encode(secret));
  const authorize = jwtAuth({ audience: "plue", secret, ...options });
  return await request({ authorize }, WAIT, `Bearer ${token}`);
}

/** By the name of the hook: the type that it is a member of, and the member. */
export const HOOK_CASES: Readonly<Record<string, HookCase>> = {
  // A call.
  "ToolDispatcherOptions.validators": {
    right: decides("denied"),
    run: (rule) => call({ dispatcher: { validators: [rule] } }),
  },
  "ToolDispatcherOptions.approve": {
    right: decides("denied"),
    run: (approve) => call({ tool: { requiresApproval: true }, dispatcher: { approve } }),
  },
  "DispatcherOptions.onError": {
    right: "threw",
    run: (onError) => call({ tool: FAIL, dispatcher: { onError } }),
  },
  "Layer.for": {
    right: "threw",
    run: (hook) => call({ dispatcher: { layers: [layer({ for: hook as () => never })] } }),
  },
  "Layer.for()": {
    right: decides("threw"),
    run: (hook) => call({ dispatcher: { layers: [layer({ for: () => hook as never })] } }),
  },
  "Layer.when": {
    right: "done",
    run: (when) =>
      call({
        dispatcher: {
          layers: [layer({ for: () => (call, next) => next(call), when: when as () => boolean })],
        },
      }),
  },
  "Layer.observe": {
    right: "done",
    run: (observe) =>
      call({ dispatcher: { layers: [layer({ observe: observe as () => object })] } }),
  },
  "Layer.unresolved": {
    right: "unknown_tool",
    run: (unresolved) =>
      call({ request: { name: "none" }, dispatcher: { layers: [layer({ unresolved })] } }),
  },
  "CallObserver.began": observes("done", (began) => ({ began })),
  "CallObserver.ended": observes("done", (ended) => ({ ended })),
  "CallObserver.failed": observes("threw", (failed) => ({ failed }), FAIL),
  "CallObserver.toolEnded": observes("timeout", (toolEnded) => ({ toolEnded }), {
    ...WAIT,
    timeoutMs: 1,
    execute: (_params, { signal }) =>
      new Promise((resolve) => signal.addEventListener("abort", () => setTimeout(resolve, 5))),
  }),
  "CallObserver.yielded": {
    right: { throws: "done", rejects: "done", hangs: "timeout", "answers nonsense": "done" },
    run: (yielded) =>
      call({
        tool: {
          async *execute() {
            yield 1;
            return "done";
          },
        },
        dispatcher: { layers: [layer({ observe: () => ({ yielded }) })] },
      }),
  },
  "ToolHooks.before": {
    right: decides("denied"),
    run: (before) => call({ dispatcher: { hooks: { before } } }),
  },
  "ToolDispatcherOptions.repair": {
    right: decides("invalid_arguments"),
    run: (repair) =>
      call({
        tool: { parameters: { type: "object", required: ["n"] } },
        dispatcher: { repair },
      }),
  },
  "ToolCall.decode": {
    right: "invalid_arguments",
    run: (decode) =>
      call({
        tool: { parameters: { type: "object", required: ["n"] } },
        request: { arguments: "{", decode },
        dispatcher: { repair: () => ({ arguments: { n: 1 } }) },
      }),
  },
  "CallTrace.began": {
    right: "done",
    run: (began) => call({ dispatcher: { telemetry: PLACING }, context: { trace: { began } } }),
  },
  "TraceHeaders.get": { right: "done", run: (get) => readingTrace({ get, keys: () => [] }) },
  "TraceHeaders.keys": { right: "done", run: (keys) => readingTrace({ get: () => null, keys }) },
  "ToolHooks.after": {
    right: "denied",
    run: (after) => call({ dispatcher: { hooks: { after } } }),
  },
  "TransactionManager.begin": {
    right: decides("transaction_failed"),
    run: (begin) => inTransaction({ begin }),
  },
  "TransactionManager.commit": {
    right: {
      throws: "transaction_failed",
      rejects: "transaction_failed",
      hangs: "transaction_failed",
      "answers nonsense": "done",
    },
    run: (commit) => inTransaction({ commit }),
  },
  "TransactionManager.rollback": {
    right: "threw",
    run: (rollback) => inTransaction({ rollback }, FAIL),
  },
  "DispatchContext.metadata": {
    right: "done",
    run: (metadata) => call({ tool: SENDING, context: { metadata } }),
  },
  "DispatchContext.progress": {
    right: "done",
    run: (progress) => call({ tool: SENDING, context: { progress } }),
  },
  "DispatchContext.output": {
    right: { throws: "done", rejects: "done", hangs: "timeout", "answers nonsense": "done" },
    run: (output) => call({ tool: SENDING, context: { output } }),
  },
  "DispatchContext.onQuestion": {
    right: decides("input_unavailable"),
    run: (onQuestion) => call({ tool: ASKING, context: { onQuestion } }),
  },
  "TicketSealer.seal": {
    right: "unavailable",
    run: (seal) => resumed({ sealer: { ...SEALER, seal } }),
  },
  "TicketSealer.open": {
    right: "unavailable",
    run: (open) => resumed({ sealer: { ...SEALER, open } }),
  },
  "TicketSealer.use": {
    right: {
      throws: "unavailable",
      rejects: "unavailable",
      hangs: "unavailable",
      "answers nonsense": "done",
    },
    run: (use) => resumed({ sealer: { ...SEALER, use } }),
  },
  "TicketSealer.use()": {
    // The first result of the call stays its result.
    right: "unavailable",
    run: (release) => {
      let asked = 0;
      return resumed({
        sealer: { ...SEALER, use: () => Promise.resolve(release) },
        tool: { isAvailable: () => asked++ === 0 },
      });
    },
  },
  "CallStore.create": {
    right: {
      throws: "unavailable",
      rejects: "unavailable",
      hangs: "unavailable",
      "answers nonsense": "done",
    },
    run: (create) => resumed({ store: { ...memoryCallStore(), create } }),
  },
  "CallStore.update": {
    right: "working",
    run: (update) => statusOfTask({ store: { ...memoryCallStore(), update } }),
  },
  "CallStore.list": {
    right: "its owner is told",
    run: (list) =>
      callTasks({ store: { ...memoryCallStore(), list } }).list()
        .then(() => "listed", () => "its owner is told"),
  },
  "CallTasksOptions.callContext": { right: "unavailable", run: takenUp },
  "CallTasksOptions.onError": {
    right: "working",
    run: (onError) =>
      statusOfTask({
        store: { ...memoryCallStore(), update: () => Promise.reject(new Error("Full")) },
        onError,
      }),
  },
  "CallStore.get": {
    right: {
      throws: "unavailable",
      rejects: "unavailable",
      hangs: "unavailable",
      "answers nonsense": "ticket_refused",
    },
    run: (get) => resumed({ tickets: storedTickets({ ...memoryCallStore(), get }) }),
  },
  "CallStore.delete": {
    right: "unavailable",
    run: (remove) => {
      let asked = 0;
      return resumed({
        store: { ...memoryCallStore(), delete: remove },
        // Available at the first call, but not when it resumes.
        tool: { isAvailable: () => asked++ === 0 },
      });
    },
  },
  "DispatchContext.signal": {
    right: "done",
    run: (signal) => call({ context: { signal } }),
  },
  "ToolDefinition.execute": {
    right: decides("threw", "42"),
    run: (execute) => call({ tool: { execute } }),
  },
  "ToolDefinition.validate": {
    right: { ...decides("threw"), "answers nonsense": "denied" },
    run: (validate) => call({ tool: { validate } }),
  },
  "ToolDefinition.isAvailable": {
    right: "unavailable",
    run: (isAvailable) => call({ tool: { isAvailable } }),
  },
  "ToolDefinition.description": {
    right: "Described for nobody.",
    run: (describe) =>
      describeWith((reader) => reader.locale === undefined ? "Described for nobody." : describe()),
  },
  "ToolDefinition.init": {
    right: { ...decides("unavailable", "done"), hangs: "unavailable" },
    run: (init) => call({ tool: { init } }),
  },
  "ToolDefinition.dispose": {
    right: "done",
    run: (dispose) => call({ tool: { dispose } }),
  },

  // The caller's result.
  "Selection.filters": {
    right: "unknown_tool",
    run: (filter) => call({ selection: { filters: [filter] } }),
  },
  "ToolPolicy.allow": {
    right: "unknown_tool",
    run: (allow) => call({ selection: { policies: [{ allow }] } }),
  },
  "ToolPolicy.requiresApproval": {
    right: "approval_required",
    run: (requiresApproval) =>
      call({ selection: { policies: [{ allow: () => true, requiresApproval }] } }),
  },
  "ToolPolicy.reason": {
    right: "unknown_tool",
    run: (reason) => call({ selection: { policies: [{ allow: () => false, reason }] } }),
  },

  "StandardSchema.~standard.validate": {
    right: decides("invalid_arguments"),
    run: (validate) =>
      call({
        tool: {
          parameters: {
            "~standard": {
              version: 1,
              vendor: "an owner",
              validate,
              jsonSchema: { input: () => ({ type: "object" }), output: () => ({}) },
            },
          },
        },
      }),
  },
  "StandardJsonSchemaConverter.input": {
    right: "its owner is told",
    run: (input) => defineWith({ input, output: () => ({}) }),
  },
  "StandardJsonSchemaConverter.output": {
    right: "its owner is told",
    run: (output) => defineWith({ input: () => ({ type: "object" }), output }),
  },

  // A registry of the host.
  "ToolSource.getTool": { right: "done", run: (getTool) => callOwn({ getTool }) },
  "ToolSource.isAvailable": {
    right: "unavailable",
    run: (isAvailable) => callOwn({ isAvailable }),
  },
  "ToolSource.onDescribeError": {
    right: "Described for nobody.",
    run: (onDescribeError) =>
      describeWith((reader) => {
        if (reader.locale === undefined) return "Described for nobody.";
        throw new Error("no such language");
      }, onDescribeError),
  },
  "ToolHost.acquire": {
    right: decides("unavailable", "threw"),
    run: (acquire) => callOwn({ acquire }),
  },
  "ToolHost.release": { right: "done", run: (release) => callOwn({ release }) },
  "SelectableToolHost.select": {
    right: {
      throws: "its owner is told",
      rejects: "its owner is told",
      hangs: "its owner is told",
      "answers nonsense": "threw",
    },
    run: (select) => callOwn({ select }),
  },

  // A registry.
  "RegistryOptions.onError": { right: "done", run: (onError) => callUndisposable({ onError }) },
  "ToolRegistryOptions.onError": {
    right: "done",
    run: (onError) => callUndisposable({ onError }),
  },
  "ToolRegistryOptions.index": { right: "done", run: (index) => callWithIndex(index) },
  "ToolIndex.add": { right: "done", run: (add) => callWithIndex(() => ({ ...INDEX, add })) },
  "ToolIndex.remove": {
    right: "done",
    run: (remove) => callWithIndex(() => ({ ...INDEX, remove })),
  },
  "ToolIndex.search": {
    right: "done",
    run: (search) => callWithIndex(() => ({ ...INDEX, search })),
  },
  ToolChangeListener: {
    right: "1",
    run(listener) {
      const registry = new ToolRegistry();
      registry.subscribe(listener);
      registry.registerTool(WAIT);
      return String(registry.count);
    },
  },
  "SchemaEngine.compile": {
    right: { ...decides("unavailable", "threw"), hangs: "unavailable" },
    run: (compile) => callWith({ ...engine, compile }),
  },
  "SchemaEngine.admit": {
    right: "refused",
    run: (admit) =>
      Promise.resolve().then(() => callWith({ ...engine, admit })).catch(() => "refused"),
  },
  "SchemaValidator.check": {
    right: {
      throws: "threw",
      rejects: "threw",
      hangs: "threw",
      "answers nonsense": "invalid_arguments",
    },
    run: (check) =>
      callWith({
        ...engine,
        compile: (schema, dialect) => ({ ...engine.compile(schema, dialect), check }),
      }),
  },
  "SchemaValidator.issues": {
    right: "threw",
    run: (issues) =>
      callWith({
        ...engine,
        compile: (schema, dialect) => ({
          ...engine.compile(schema, dialect),
          check: () => false,
          issues,
        }),
      }),
  },

  // HTTP.
  "ServerOptions.onError": { right: "500", run: (onError) => request({ onError }, FAIL) },
  "ServerOptions.authorize": { right: lets("500"), run: (authorize) => request({ authorize }) },
  "Route.answer": {
    right: lets("500"),
    run: (answer) => composed({ routes: [{ method: "GET", path: "/t", answer }] }),
  },
  "PublicRoute.answerPublic": {
    right: "500",
    run: (answerPublic) => composed({ routes: [{ method: "GET", path: "/t", answerPublic }] }),
  },
  "ServerHooks.headers": { right: "500", run: (headers) => composed({ ...OWN_ROUTE, headers }) },
  "ServerHooks.charge": {
    right: lets("500"),
    run: (charge) => composed({ ...OWN_ROUTE, charge }),
  },
  "ServerHooks.around": { right: lets("500"), run: (around) => composed({ ...OWN_ROUTE, around }) },
  "ServerHooks.preflight": {
    right: "500",
    run: (preflight) => composed({ preflight }, "OPTIONS"),
  },
  "QueryPagesOptions.bridge": {
    right: "500",
    run: (bridge) => {
      const listing = serveListing({ pageOf: queryPages({ bridge }) });
      return composed(listing, "GET", "/tools?bridge=1");
    },
  },
  "ToolHandlerOptions.bridge": {
    right: "500",
    run: (bridge) => request({ bridge }, WAIT, undefined, "?bridge=1"),
  },
  "ServeTurnsOptions.bridge": {
    right: "500",
    run: (bridge) =>
      composed(
        serveTurns(serveFormats(formats), { bridge }),
        "POST",
        "/dispatch/anthropic?bridge=1",
      ),
  },
  "McpEndpointOptions.tools": {
    right: "500",
    run: async (tools) => {
      const mcp = createMcpEndpoint(new ToolRegistry({ tools: [WAIT] }), { tools });
      return String((await mcp.fetch(new Request(URL_OF_MCP, { method: "POST" }))).status);
    },
  },
  "BearerAuthOptions.verify": {
    right: lets("500"),
    run: (verify) => request({ authorize: bearerAuth({ verify }) }),
  },
  "JwtAuthOptions.keys": {
    right: { ...lets("401"), rejects: "503" },
    run: (keys) => request({ authorize: jwtAuth({ ...JWT, keys }) }, WAIT, TOKEN),
  },
  "JwtAuthOptions.now": {
    right: { throws: "500", rejects: "500", hangs: "500", "answers nonsense": "401" },
    run: (now) => requestWithToken({ now }),
  },
  "JwtAuthOptions.toCaller": {
    right: lets("500"),
    run: (toCaller) => requestWithToken({ toCaller }),
  },
  "RemoteKeysOptions.fetch": {
    right: "503",
    run: (fetch) => request({ authorize: withKeys({ fetch, timeoutMs: 500 }) }, WAIT, TOKEN),
  },
  "RemoteKeysOptions.now": {
    right: { throws: "503", rejects: "503", hangs: "503", "answers nonsense": "401" },
    run: (now) =>
      request(
        { authorize: withKeys({ now, fetch: () => Promise.resolve(Response.json({ keys: [] })) }) },
        WAIT,
        TOKEN,
      ),
  },
  "FailedLoginsOptions.clientAddress": {
    right: "500",
    run: (clientAddress) =>
      request({
        authorize: limitFailedLogins(() => ({ principal: "ann" }), {
          limit: 1,
          windowMs: 1_000,
          clientAddress,
        }),
      }),
  },
  "RateLimitOptions.keyOf": {
    right: "500",
    run: (keyOf) => request({ rateLimit: { limit: 1, windowMs: 1_000, keyOf } }),
  },
  "RateLimitStore.take": {
    right: { throws: "500", rejects: "500", hangs: "503", "answers nonsense": "503" },
    run: (take) =>
      request({
        rateLimit: { limit: 1, windowMs: 1_000, storeTimeoutMs: 500, store: { take } },
      }),
  },
  "MemoryRateLimitStoreOptions.now": {
    right: { throws: "500", rejects: "500", hangs: "500", "answers nonsense": "200" },
    run: (now) =>
      request({
        rateLimit: { limit: 1, windowMs: 1_000, store: new MemoryRateLimitStore({ now }) },
      }),
  },
  "ObserveOptions.access": { right: "200", run: (access) => request({ observe: { access } }) },
  "ObserveOptions.now": {
    right: "200",
    run: (now) => request({ observe: { now, access() {} } }),
  },
  "CallTelemetry.begin": {
    right: "200",
    run: (begin) => request({ dispatch: { telemetry: { begin } } }),
  },
  "CallSpan.run": { right: "200", run: (run) => request(traced({ run })) },
  "CallSpan.end": { right: "200", run: (end) => request(traced({ end })) },

  // MCP.
  "McpEndpointOptions.extend": {
    // A slow answer becomes a stream.
    right: { ...lets("500", "404"), hangs: "200" },
    run: (extend) => listPrompts(extend),
  },

  // The imported tools.
  "ImportOptions.risk": { right: "its owner is told", run: (risk) => chosenBy({ risk }) },
  "ImportOptions.include": { right: told("none"), run: (include) => chosenBy({ include }) },
  "ImportOptions.exclude": { right: told("none"), run: (exclude) => chosenBy({ exclude }) },
  "ImportOptions.roles": { right: "its owner is told", run: (roles) => chosenBy({ roles }) },
  "ImportOptions.scopes": { right: "its owner is told", run: (scopes) => chosenBy({ scopes }) },
  "ToolPinsOptions.onHeld": {
    right: "new",
    run: (onHeld) => pinnedBy(memoryStore(), { firstImport: "hold", onHeld }),
  },
  "PinStore.load": { right: "unverified", run: (load) => pinnedBy({ ...memoryStore(), load }) },
  "PinStore.save": {
    right: {
      throws: "unverified",
      rejects: "unverified",
      hangs: "unverified",
      "answers nonsense": "let in",
    },
    run: (save) => pinnedBy({ ...memoryStore(), save }),
  },
  "ImportMcpServerOptions.risk": {
    right: "its owner is told",
    run: (risk) => importWith({ risk }).catch(() => "its owner is told"),
  },
  "ImportMcpServerOptions.onError": { right: "done", run: (onError) => importWith({ onError }) },
  "ImportOptions.execute": {
    right: decides("threw", "42"),
    run(execute) {
      const [tool] = formats.importTools("mcp", MCP_LIST, { execute }).tools;
      return tool === undefined ? "no tool" : call({ tool });
    },
  },
  "OpenApiImportOptions.authorize": {
    right: { throws: "threw", rejects: "threw", hangs: "timeout", "answers nonsense": "ok" },
    run: (authorize) =>
      callOpenApi({ authorize, fetch: () => Promise.resolve(Response.json("done")) }),
  },
  "OpenApiImportOptions.fetch": {
    right: decides("threw"),
    run: (fetch) => callOpenApi({ fetch }),
  },
};

/** The answers of a choice that is wanted at once, and of which its owner is told otherwise. */
function told(nonsense: string): Readonly<Record<Way, string>> {
  const owner = "its owner is told";
  return { throws: owner, rejects: owner, hangs: owner, "answers nonsense": nonsense };
}

/** The number of tools that are imported with a choice. */
function chosenBy(options: Readonly<Record<string, BadHook>>): string {
  try {
    return formats.importTools("mcp", MCP_LIST, options).tools.length === 0 ? "none" : "some";
  } catch {
    return "its owner is told";
  }
}

/** The state of a tool under pins. */
async function pinnedBy(store: PinStore, options: ToolPinsOptions = {}): Promise<string> {
  const pins = toolPins(store, { storeTimeoutMs: 500, ...options });
  const { tools, held } = await formats.importTools("mcp", MCP_LIST, { pins });
  return tools.length > 0 ? "let in" : held[0]?.kind ?? "lost";
}

function because(reason: string, names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, reason]));
}

/** Functions in option types that are not hooks of a host, and the reasons. */
export const NO_HOOKS: Readonly<Record<string, string>> = {
  ...because("is made by viewOf", ["ViewedTool.lead", "ViewedTool.tell"]),
  ...because("is a function of a layer of plue", [
    "Layer.readText",
    "QuestionsLayer.of",
    "RepairLayer.of",
  ]),
  "FitBudgetOptions.count": "runs in fitBudget, and throws to the owner who calls that",
  "ServeFormatsOptions.fitBudget": "is fitBudget of plue, handed in so that others do not load it",
  "AjvEngineOptions.plugins": "runs while the engine is made, and throws to the owner who makes it",
  "ComposedHandlerOptions.parts":
    "runs in composeToolHandler, and throws to the owner who calls that",
  ...because("is a function of plue, handed in so that others do not load it", [
    "ExecutionOptions.startTask",
    "ExecutionOptions.streamCall",
    "ExecutionOptions.toolsetOf",
    "ListingOptions.pageOf",
  ]),
  ...because("tells the time, and must neither fail nor wait", [
    "Clock.now",
    "RegistryClock.timestamp",
    "RegistryClock.setTimeout",
    "RegistryClock.setTimeout()",
  ]),
  ...because("needs a NATS server; test/nats hands in hooks that fail", [
    "NatsOptions.onError",
    "CallTelemetry.place",
  ]),
  ...because("is one of ImportOptions", [
    "ImportMcpServerOptions.exclude",
    "ImportMcpServerOptions.include",
    "ImportMcpServerOptions.roles",
    "ImportMcpServerOptions.scopes",
  ]),
  ...because("is made by plue and handed on", [
    "ImportPins.check",
    "PinnedImport.approve",
    "CallTickets.suspend",
    "KeptKeys.claim",
    "KeptKeys.claim()",
    "CallTickets.resume",
    "Resumption.release",
    "ArgumentChoice.accepts",
    "CallDispatcher.dispatchAll",
    "ExportNames.encodingOf",
    "ExportNames.idOf",
    "ExportNames.nameOf",
    "RunToolsOptions.tools.available",
    "RunToolsOptions.tools.bridge.loadable",
    "FormatService.exportPage",
    "FormatService.routes",
    "ImportPins.check",
    "PinnedImport.approve",
  ]),
  ...because("is read by importTools, as that of ImportOptions", [
    "ImportMcpServerOptions.exclude",
    "ImportMcpServerOptions.include",
    "ImportMcpServerOptions.roles",
    "ImportMcpServerOptions.scopes",
  ]),
  ...because("is of the response that a fetch function gave", [
    "HttpResponse.body.getReader",
    "HttpResponse.body.getReader().cancel",
    "HttpResponse.body.getReader().read",
    "HttpResponse.headers.get",
  ]),
  ...because("is a ToolDefinition's", [
    "Tool.describe",
    "Tool.dispose",
    "Tool.execute",
    "Tool.init",
    "Tool.validate",
    "ToolTraits.isAvailable",
  ]),
  ...because("is of the package koffi", ["Koffi.load", "Koffi.load().func", "Koffi.load().func()"]),
};

/** A tool's description for a reader, which may fail. */
function describeWith(
  description: (reader: ToolReader) => string,
  onDescribeError?: BadHook,
): string {
  const registry = new ToolRegistry({ tools: [{ ...WAIT, description }] });
  const source: ToolSource = {
    tools: registry.tools,
    revision: 0,
    getTool: (id) => registry.getTool(id),
    isAvailable: (tool) => registry.isAvailable(tool),
    ...(onDescribeError && { onDescribeError }),
  };
  const [tool] = buildToolset(source, { context: { locale: "de" } });
  return tool?.description ?? "no tool";
}

function defineWith(jsonSchema: { readonly input: BadHook; readonly output: BadHook }): string {
  const schema = {
    "~standard": {
      version: 1,
      vendor: "an owner",
      validate: (value: unknown) => ({ value }),
      jsonSchema,
    },
  };
  try {
    return defineTool({ ...WAIT, parameters: schema, returns: schema }).id;
  } catch {
    return "its owner is told";
  }
}

/** Calls the tool `t` of a registry that is not plue's, and has something wrong in it. */
async function callOwn(
  broken: Partial<
    Record<"getTool" | "isAvailable" | "acquire" | "release" | "select", BadHook>
  >,
): Promise<string> {
  const registry = new ToolRegistry({ tools: [{ ...WAIT, isAvailable: () => true }] });
  const host: SelectableToolHost = {
    engine,
    tools: registry.tools,
    revision: 0,
    getTool: (id) => registry.getTool(id),
    isAvailable: (tool) => registry.isAvailable(tool),
    acquire: (tool) => registry.acquire(tool),
    release: (runtime) => registry.release(runtime),
    select: (selection) => buildToolset(host, selection),
    ...broken,
  };
  try {
    const result = await new ToolDispatcher(host, SHORT).dispatch({ name: "t" });
    return result.ok ? String(result.content) : result.error.code;
  } catch {
    return "its owner is told";
  }
}

/** Asks an endpoint for prompts, and gives the status. */
async function listPrompts(extend: BadHook): Promise<string> {
  const mcp = createMcpEndpoint(new ToolRegistry(), { extend, heartbeatMs: 50 });
  return String((await mcp.fetch(modernRequest("prompts/list"))).status);
}

/** Imports from a server in this process, which lists a tool later that cannot be registered. */
async function importWith(
  { risk, onError }: { readonly risk?: BadHook; readonly onError?: BadHook },
): Promise<string> {
  const far = new ToolRegistry({ tools: [WAIT] });
  const registry = new ToolRegistry();
  const told = Promise.withResolvers<void>();
  await using _server = await importMcpServer(URL_OF_MCP, {
    namespace: "far",
    registry,
    http: { fetch: fetchFrom(createMcpEndpoint(far, { openExecution: true })) },
    ...(risk && { risk }),
    onError(error) {
      told.resolve();
      return onError?.(error);
    },
  });
  registry.registerTool({ ...WAIT, name: "far:u" });
  far.registerTool({ ...WAIT, name: "u" });
  await told.promise;
  const result = await new ToolDispatcher(registry).dispatch({ name: "far:t" });
  return result.ok ? String(result.content) : result.error.code;
}

const ASKING: Partial<ToolDefinition> = {
  async execute(_params, { ask }) {
    await ask("key", { message: "Well?" });
    return "done";
  },
};

/** Gives what it is given, so that everybody can make tickets. */
const SEALER: TicketSealer = {
  seal: (content) => Promise.resolve(new TextDecoder().decode(content)),
  open: (ticket) => Promise.resolve(new TextEncoder().encode(ticket)),
};

/** Calls a tool that asks, and answers it. */
async function resumed(
  { sealer = SEALER, store, tickets, tool = {} }: {
    readonly sealer?: TicketSealer;
    readonly store?: CallStore;
    readonly tickets?: CallTickets;
    readonly tool?: Partial<ToolDefinition>;
  },
): Promise<string> {
  const registry = new ToolRegistry({ tools: [{ ...WAIT, ...ASKING, ...tool }] });
  const dispatcher = new ToolDispatcher(registry, {
    ...SHORT,
    tickets: tickets ?? createTickets(sealer, store === undefined ? {} : { store }),
  });
  const waiting = await dispatcher.dispatch({ name: "t" });
  if (!isSuspended(waiting)) return waiting.ok ? "done" : waiting.error.code;
  const result = await dispatcher.resume(waiting.ticket, { key: { action: "accept" } });
  return result.ok ? String(result.content) : result.error.code;
}

/** The status of a task whose call has ended. */
async function statusOfTask(options: CallTasksOptions): Promise<string> {
  const ended = Promise.withResolvers<void>();
  const registry = new ToolRegistry({ tools: [{ ...WAIT, execute: () => ended.resolve() }] });
  const tasks = callTasks({ leaseMs: 3_000, ...options });
  const task = await tasks.start(new ToolDispatcher(registry, SHORT), { name: "t" });
  await ended.promise;
  await new Promise((resolve) => setTimeout(resolve, 1));
  return "id" in task ? (await tasks.get(task.id))?.status ?? "gone" : task.error.code;
}

/** How a task ends that is taken up, and whose tool wants a context. */
async function takenUp(callContext: CallTasksOptions["callContext"] & object): Promise<string> {
  const store = memoryCallStore();
  const idempotent = {
    ...{ ...WAIT, idempotent: true },
    context: { type: "object", required: ["tenant"] },
  } as const;
  const hang = { ...idempotent, execute: () => new Promise(() => {}) };
  const dispatcher = (tool: ToolDefinition): ToolDispatcher =>
    new ToolDispatcher(new ToolRegistry({ tools: [tool] }), SHORT);
  const early = {
    ...systemClock,
    timestamp: () => Date.now() - 60_000,
    setTimeout: () => () => {},
  };
  const dead = callTasks({ store, clock: early });
  const task = await dead.start(dispatcher(hang), { name: "t" }, { context: { tenant: "acme" } });
  if (!("id" in task)) return task.error.code;
  const tasks = callTasks({ store, leaseMs: 500, callContext });
  await tasks.recover(dispatcher(idempotent));
  for await (const { status, result } of tasks.follow(task.id)) {
    if (status === "completed") return "completed";
    if (result?.ok === false) return result.error.code;
  }
  return "gone";
}

const SENDING: Partial<ToolDefinition> = {
  async *execute(_params, { metadata, progress }) {
    metadata("told");
    progress(1, 2);
    yield "part";
    return await Promise.resolve("done");
  },
};

function inTransaction(
  broken: Partial<Record<"begin" | "commit" | "rollback", BadHook>>,
  tool: ToolDefinition = WAIT,
): Promise<string> {
  return call({
    tool: { ...tool, requiresTransaction: true },
    dispatcher: {
      transactions: { begin: () => ({ id: "1" }), commit() {}, rollback() {}, ...broken },
    },
  });
}

/** Telemetry that gives each call a place. */
const PLACING: CallTelemetry = {
  begin: () => ({
    place: { traceId: "1".repeat(32), spanId: "1".repeat(16), sampled: true },
    run: (work) => work(),
    end() {},
  }),
};

/** Calls with headers that telemetry reads. */
function readingTrace(headers: TraceHeaders): Promise<string> {
  const telemetry: CallTelemetry = {
    begin(call) {
      const { headers } = call;
      // As openTelemetry does.
      void [atOnce(headers?.get("traceparent")), ...atOnce(headers?.keys()) ?? []];
      return PLACING.begin(call);
    },
  };
  return call({ dispatcher: { telemetry }, context: { trace: { headers } } });
}

function traced(
  broken: { readonly run?: BadHook; readonly end?: BadHook },
): Partial<ToolHandlerOptions> {
  const span = { place: undefined, run: <R>(work: () => R): R => work(), end() {}, ...broken };
  return { dispatch: { telemetry: { begin: () => span } } };
}

function withKeys(
  options: Parameters<typeof remoteKeys>[1],
): ToolHandlerOptions["authorize"] & object {
  return jwtAuth({ ...JWT, keys: remoteKeys("https://issuer.example/keys", options) });
}
