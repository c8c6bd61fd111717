/** A program for every hook of a host. The required outcomes are in `hook_cases.json`. */

import { SignJWT } from "jose";
import * as core from "../../src/core.ts";
import { ToolDispatcher } from "../../src/execute/mod.ts";
import {
  buildToolset,
  type ToolDefinition,
  ToolRegistry,
  type ToolRegistryOptions,
  typeboxEngine,
} from "../../mod.ts";
import * as plue from "../../src/adapters/hono/mod.ts";
import * as formats from "../../src/formats/mod.ts";
import { assertSync, fail, systemClock } from "../../src/tool/mod.ts";
import { createMcpEndpoint, importMcpServer, skillCatalog } from "../../src/adapters/mcp/mod.ts";
import { importOpenApi } from "../../src/adapters/openapi/mod.ts";
import {
  type CallStore,
  callTasks,
  type CallTasksOptions,
  memoryCallStore,
  sealedTickets,
  storedTickets,
} from "../../src/adapters/calls/mod.ts";
import {
  credentials,
  exchangeTokens,
  oauthCallback,
  oauthCredentials,
} from "../../src/adapters/credentials/mod.ts";
import { journal, type JournalSink } from "../../src/adapters/journal/mod.ts";
import { HostTools, readNativeConfig } from "../../src/adapters/native/host_tools.ts";
import {
  memoryStore,
  type PinStore,
  toolPins,
  type ToolPinsOptions,
} from "../../src/adapters/pins/mod.ts";
import { fetchFrom, modernRequest, URL_OF_MCP } from "../adapters/mcp/support.ts";
import data from "./hook_cases.json" with { type: "json" };

/** The kinds of misbehaviour of a hook, in the order of the outcomes. */
export const WAYS = ["throws", "rejects", "hangs", "answers nonsense"] as const;
export type Way = (typeof WAYS)[number];

/** A hook that misbehaves. Its type fits every hook. */
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

/** Uses a hook and returns the outcome in one word, or never settles. */
type HookCase = (hook: BadHook) => unknown;

/** The required outcome of each case: one for all kinds of misbehaviour, or one for each. */
export const OUTCOMES: Readonly<Record<string, string | readonly string[]>> = data.outcomes;

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

function layer(part: Partial<core.Layer>): core.Layer {
  return { name: "bad", stage: "run", ...part };
}

/** Returns a case for an observer. */
function observes(
  observer: (hook: BadHook) => core.CallObserver,
  tool: ToolDefinition = WAIT,
): HookCase {
  return (hook) =>
    call({ tool, dispatcher: { layers: [layer({ observe: () => observer(hook) })] } });
}

const SHORT: core.ToolDispatcherOptions = {
  timeoutMs: 1_000,
  approvalTimeoutMs: 1_000,
  graceMs: 0,
  closeTimeoutMs: 1_000,
};

interface CallSetup {
  readonly request?: object;
  readonly tool?: Partial<ToolDefinition> | core.Tool;
  readonly registry?: Partial<ToolRegistryOptions>;
  readonly dispatcher?: core.ToolDispatcherOptions;
  readonly context?: core.DispatchContext;
  readonly selection?: core.Selection;
}

/** Calls the tool `t`, and returns its content or the code of its failure. */
async function call({ tool, registry: options, request, ...setup }: CallSetup): Promise<string> {
  const registry = new ToolRegistry({ lifecycleTimeoutMs: 500, ...options });
  registry.registerTool(core.isTool(tool) ? tool : { ...WAIT, ...tool } as ToolDefinition);
  const toolset = registry.select(setup.selection ?? {});
  const dispatcher = new ToolDispatcher(toolset, { ...SHORT, ...setup.dispatcher });
  const result = await dispatcher.dispatch({ name: "t", ...request }, setup.context);
  registry.getAvailableTools();
  toolset.explain("t");
  await registry.dispose().catch(() => {});
  return result.ok ? String(result.content) : result.error.code;
}

/** Runs the tool `t` over HTTP, and returns the status. */
async function request(
  options: Partial<plue.ToolHandlerOptions>,
  tool: ToolDefinition = WAIT,
  authorization = "Bearer correct-horse-battery",
  query = "",
): Promise<string> {
  const handler = plue.createToolHandler(new ToolRegistry({ tools: [tool] }), {
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

/** Records a call in a sink with a broken function, and closes the journal. */
async function journaled(hook: Partial<JournalSink>): Promise<string> {
  const sink: JournalSink = { append: () => Promise.resolve(), async *pages() {}, ...hook };
  const kept = journal({ sink, onFailure: "drop-and-count", flushMs: 0 });
  const answer = await call({ dispatcher: { layers: [kept] } });
  void kept.close().catch(() => {});
  return answer;
}

const OWN_ROUTE: plue.PartHooks = {
  routes: [{ method: "GET", path: "/t", answer: () => new Response("t") }],
};

/** Sends a request to a handler with one part, and returns the status. */
async function composed(
  part: plue.PartHooks | plue.HttpPart,
  method = "GET",
  path = "/t",
): Promise<string> {
  const { fetch } = plue.composeToolHandler(new ToolRegistry({ tools: [WAIT] }), {
    openExecution: true,
    parts: [typeof part === "function" ? part : () => part],
  });
  const response = await fetch(new Request(`http://localhost${path}`, { method }));
  await response.text();
  return String(response.status);
}

const engine = typeboxEngine();

/** An engine that is broken, with a tool that takes no arguments. */
function callWith(broken: core.SchemaEngine): Promise<string> {
  const registry = new core.Registry({ engine: broken, tools: [WAIT] });
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
function callWithIndex(index: () => core.ToolIndex): Promise<string> {
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

const INDEX: core.ToolIndex = { add() {}, remove() {}, search: () => [] };

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

/** Runs the tool `t` for a caller with a valid token. */
async function requestWithToken(options: Partial<plue.JwtAuthOptions>): Promise<string> {
  const secret = "correct-horse-battery-staple-correct";
  const token = await new SignJWT({ sub: "ann" }).setProtectedHeader({ alg: "HS256" }).setIssuedAt()
    .setExpirationTime("1h")
    .setAudience("plue")
    .sign(new TextEncoder().encode(secret));
  const authorize = plue.jwtAuth({ audience: "plue", secret, ...options });
  return await request({ authorize }, WAIT, `Bearer ${token}`);
}

/** The cases by the name of the hook: its type and its member. */
export const HOOK_CASES: Readonly<Record<string, HookCase>> = {
  // A call.
  "ToolDispatcherOptions.validators": (rule) => call({ dispatcher: { validators: [rule] } }),
  "ToolDispatcherOptions.approve": (approve) =>
    call({ tool: { requiresApproval: true }, dispatcher: { approve } }),
  "DispatcherOptions.onError": (onError) => call({ tool: FAIL, dispatcher: { onError } }),
  "Layer.for": (hook) => call({ dispatcher: { layers: [layer({ for: hook as () => never })] } }),
  "Layer.for()": (hook) => call({ dispatcher: { layers: [layer({ for: () => hook as never })] } }),
  "Layer.when": (when) =>
    call({
      dispatcher: {
        layers: [layer({ for: () => (call, next) => next(call), when: when as () => boolean })],
      },
    }),
  "Layer.observe": (observe) =>
    call({ dispatcher: { layers: [layer({ observe: observe as () => object })] } }),
  "Layer.unresolved": (unresolved) =>
    call({ request: { name: "none" }, dispatcher: { layers: [layer({ unresolved })] } }),
  "CallObserver.began": observes((began) => ({ began })),
  "CallObserver.toolStarted": observes((toolStarted) => ({ toolStarted })),
  "CallObserver.ended": observes((ended) => ({ ended })),
  "CallObserver.failed": observes((failed) => ({ failed }), FAIL),
  "CallObserver.toolEnded": observes((toolEnded) => ({ toolEnded }), {
    ...WAIT,
    timeoutMs: 1,
    execute: (_params, { signal }) =>
      new Promise((resolve) => signal.addEventListener("abort", () => setTimeout(resolve, 5))),
  }),
  "CallObserver.yielded": (yielded) =>
    call({
      tool: {
        async *execute() {
          yield 1;
          return "done";
        },
      },
      dispatcher: { layers: [layer({ observe: () => ({ yielded }) })] },
    }),
  "JournalSink.open": (open) => journaled({ open }),
  "JournalSink.append": (append) => journaled({ append }),
  "JournalSink.close": (close) => journaled({ close }),
  "JournalSink.pages": (pages) => journaled({ pages }),
  "ToolHooks.before": (before) => call({ dispatcher: { hooks: { before } } }),
  "ToolDispatcherOptions.repair": (repair) =>
    call({ tool: { parameters: { type: "object", required: ["n"] } }, dispatcher: { repair } }),
  "ToolCall.decode": (decode) =>
    call({
      tool: { parameters: { type: "object", required: ["n"] } },
      request: { arguments: "{", decode },
      dispatcher: { repair: () => ({ arguments: { n: 1 } }) },
    }),
  "CallTrace.began": (began) =>
    call({ dispatcher: { telemetry: PLACING }, context: { trace: { began } } }),
  "TraceHeaders.get": (get) => readingTrace({ get, keys: () => [] }),
  "TraceHeaders.keys": (keys) => readingTrace({ get: () => null, keys }),
  "ToolHooks.after": (after) => call({ dispatcher: { hooks: { after } } }),
  "TransactionManager.begin": (begin) => inTransaction({ begin }),
  "TransactionManager.commit": (commit) => inTransaction({ commit }),
  "TransactionManager.rollback": (rollback) => inTransaction({ rollback }, FAIL),
  "DispatchContext.metadata": (metadata) => call({ tool: SENDING, context: { metadata } }),
  "DispatchContext.progress": (progress) => call({ tool: SENDING, context: { progress } }),
  "DispatchContext.output": (output) => call({ tool: SENDING, context: { output } }),
  "DispatchContext.onQuestion": (onQuestion) => call({ tool: ASKING, context: { onQuestion } }),
  "CallStore.create": (create) => resumed({ store: { ...memoryCallStore(), create } }),
  "CallStore.update": (update) => statusOfTask({ store: { ...memoryCallStore(), update } }),
  "CallStore.list": (list) =>
    callTasks({ store: { ...memoryCallStore(), list } }).list()
      .then(() => "listed", () => "throws"),
  "CallStore.due": (due) =>
    callTasks({ store: { ...memoryCallStore(), due } }).recover(
      new ToolDispatcher(new ToolRegistry()),
    )
      .then(() => "recovered", () => "throws"),
  "CallStore.now": async (now) => {
    const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [WAIT] }), SHORT);
    const tasks = callTasks({ store: { ...memoryCallStore(), now } });
    const task = await tasks.start(dispatcher, { name: "t" });
    return "id" in task ? "started" : task.error.code;
  },
  "CallTasksOptions.callContext": takenUp,
  "CallTasksOptions.onError": (onError) =>
    statusOfTask({
      store: { ...memoryCallStore(), update: () => Promise.reject(new Error("Full")) },
      onError,
    }),
  "CallStore.get": (get) => resumed({ tickets: storedTickets({ ...memoryCallStore(), get }) }),
  "CallStore.delete": (remove) => {
    let count = 0;
    return resumed({
      store: { ...memoryCallStore(), delete: remove },
      // Available at the first call, but not when it resumes.
      tool: { isAvailable: () => count++ === 0 },
    });
  },
  "DispatchContext.signal": (signal) => call({ context: { signal } }),
  "ToolDefinition.execute": (execute) => call({ tool: { execute } }),
  "ToolDefinition.validate": (validate) => call({ tool: { validate } }),
  "ToolDefinition.isAvailable": (isAvailable) => call({ tool: { isAvailable } }),
  "ToolDefinition.description": (describe) =>
    describeWith((reader) => reader.locale === undefined ? "Described for nobody." : describe()),
  // The time limit of `init` ends the call, even if the machine's timers are late.
  "ToolDefinition.init": (init) => call({ tool: { init }, dispatcher: { timeoutMs: 60_000 } }),
  "ToolDefinition.dispose": (dispose) => call({ tool: { dispose } }),

  // The caller's result.
  "Selection.filters": (filter) => call({ selection: { filters: [filter] } }),
  "ToolPolicy.allow": (allow) => call({ selection: { policies: [{ allow }] } }),
  "ToolPolicy.requiresApproval": (requiresApproval) =>
    call({ selection: { policies: [{ allow: () => true, requiresApproval }] } }),
  "ToolPolicy.reason": (reason) =>
    call({ selection: { policies: [{ allow: () => false, reason }] } }),

  "StandardSchema.~standard.validate": (validate) =>
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
  "StandardJsonSchemaConverter.input": (input) => defineWith({ input, output: () => ({}) }),
  "StandardJsonSchemaConverter.output": (output) =>
    defineWith({ input: () => ({ type: "object" }), output }),

  // A registry of the host.
  "ToolSource.getTool": (getTool) => callOwn({ getTool }),
  "ToolSource.isAvailable": (isAvailable) => callOwn({ isAvailable }),
  "ToolSource.onDescribeError": (onDescribeError) =>
    describeWith((reader) => {
      if (reader.locale === undefined) return "Described for nobody.";
      throw new Error("no such language");
    }, onDescribeError),
  "ToolHost.acquire": (acquire) => callOwn({ acquire }),
  "ToolHost.release": (release) => callOwn({ release }),
  "SelectableToolHost.select": (select) => callOwn({ select }),

  "RegistryOptions.onError": (onError) => callUndisposable({ onError }),
  "ToolRegistryOptions.onError": (onError) => callUndisposable({ onError }),
  "ToolRegistryOptions.index": (index) => callWithIndex(index),
  "ToolIndex.add": (add) => callWithIndex(() => ({ ...INDEX, add })),
  "ToolIndex.remove": (remove) => callWithIndex(() => ({ ...INDEX, remove })),
  "ToolIndex.search": (search) => callWithIndex(() => ({ ...INDEX, search })),
  ToolChangeListener: (listener) => {
    const registry = new ToolRegistry();
    registry.subscribe(listener);
    registry.registerTool(WAIT);
    return String(registry.count);
  },
  "SchemaEngine.compile": (compile) => callWith({ ...engine, compile }),
  "SchemaEngine.admit": (admit) =>
    Promise.resolve().then(() => callWith({ ...engine, admit })).catch(() => "refused"),
  "SchemaValidator.check": (check) =>
    callWith({
      ...engine,
      compile: (schema, dialect) => ({ ...engine.compile(schema, dialect), check }),
    }),
  "SchemaValidator.issues": (issues) =>
    callWith({
      ...engine,
      compile: (schema, dialect) => ({
        ...engine.compile(schema, dialect),
        check: () => false,
        issues,
      }),
    }),

  // HTTP.
  "ServerOptions.onError": (onError) => request({ onError }, FAIL),
  "ServerOptions.authorize": (authorize) => request({ authorize }),
  "Route.answer": (answer) => composed({ routes: [{ method: "GET", path: "/t", answer }] }),
  "PublicRoute.answerPublic": (answerPublic) =>
    composed({ routes: [{ method: "GET", path: "/t", answerPublic }] }),
  "PartHooks.headers": (headers) => composed({ ...OWN_ROUTE, headers }),
  "PartHooks.charge": (charge) => composed({ ...OWN_ROUTE, charge }),
  "PartHooks.around": (around) => composed({ ...OWN_ROUTE, around }),
  "PartHooks.preflight": (preflight) => composed({ preflight }, "OPTIONS"),
  "QueryPagesOptions.bridge": (bridge) => {
    const listing = plue.serveListing({ pageOf: plue.queryPages({ bridge }) });
    return composed(listing, "GET", "/tools?bridge=1");
  },
  "ToolHandlerOptions.tools": (tools) => request({ tools }),
  "ToolHandlerOptions.bridge": (bridge) => request({ bridge }, WAIT, undefined, "?bridge=1"),
  "JournalReader.records": async (records) => {
    const handler = plue.createToolHandler(new ToolRegistry(), {
      openExplain: true,
      journal: { records },
    });
    return String((await handler.request("http://localhost/journal")).status);
  },
  "McpEndpointOptions.tools": async (tools) => {
    const mcp = createMcpEndpoint(new ToolRegistry({ tools: [WAIT] }), { tools });
    return String((await mcp.fetch(new Request(URL_OF_MCP, { method: "POST" }))).status);
  },
  "ToolsModule.bridge"(bridge) {
    const registry = new ToolRegistry({ tools: [WAIT] });
    const tools = { registry, dispatcher: new ToolDispatcher(registry), bridge };
    const config = readNativeConfig('{"bridge":true}');
    try {
      return `${new HostTools(tools, config, () => {}, () => () => {}, () => 0).newList()}`;
    } catch (error) {
      return (error as Error).name;
    }
  },
  "SkillCatalogOptions.onWarning": async (onWarning) =>
    `${(await skillCatalog({ "x/SKILL.md": "" }, { onWarning })).skills.length} skills`,
  "BearerAuthOptions.verify": (verify) => request({ authorize: plue.bearerAuth({ verify }) }),
  "JwtAuthOptions.now": (now) => requestWithToken({ now }),
  "JwtAuthOptions.toCaller": (toCaller) => requestWithToken({ toCaller }),
  "FailedLoginsOptions.clientAddress": (clientAddress) =>
    request({
      authorize: plue.limitFailedLogins(() => ({ principal: "ann" }), {
        limit: 1,
        windowMs: 1_000,
        clientAddress,
      }),
    }),
  "RateLimitOptions.keyOf": (keyOf) => request({ rateLimit: { limit: 1, windowMs: 1_000, keyOf } }),
  "RateLimitStore.take": (take) =>
    request({ rateLimit: { limit: 1, windowMs: 1_000, storeTimeoutMs: 500, store: { take } } }),
  "MemoryRateLimitStoreOptions.now": (now) =>
    request({
      rateLimit: { limit: 1, windowMs: 1_000, store: new plue.MemoryRateLimitStore({ now }) },
    }),
  "ObserveOptions.access": (access) => request({ observe: { access } }),
  "CallTelemetry.begin": (begin) => request({ dispatch: { telemetry: { begin } } }),
  "CallSpan.run": (run) => request(traced({ run })),
  "CallSpan.end": (end) => request(traced({ end })),

  "McpEndpointOptions.extend": (extend) => listPrompts(extend),

  // The imported tools.
  "ImportOptions.risk": (risk) => chosenBy({ risk }),
  "ImportOptions.include": (include) => chosenBy({ include }),
  "ImportOptions.exclude": (exclude) => chosenBy({ exclude }),
  "ImportOptions.roles": (roles) => chosenBy({ roles }),
  "ImportOptions.scopes": (scopes) => chosenBy({ scopes }),
  "ToolPinsOptions.onHeld": (onHeld) => pinnedBy(memoryStore(), { firstImport: "hold", onHeld }),
  "PinStore.load": (load) => pinnedBy({ ...memoryStore(), load }),
  "PinStore.exclusive": (exclusive) => pinnedBy({ ...memoryStore(), exclusive }),
  "PinStore.save": (save) => pinnedBy({ ...memoryStore(), save }),
  "ImportMcpServerOptions.risk": (risk) => importWith({ risk }).catch(() => "throws"),
  "ImportMcpServerOptions.onError": (onError) => importWith({ onError }),
  "ImportMcpServerOptions.onState": (onState) => importWith({ onState }),
  "ImportOptions.execute": (execute) => {
    const [tool] = formats.importTools("mcp", MCP_LIST, { execute }).tools;
    return tool === undefined ? "no tool" : call({ tool });
  },
  "OpenApiImportOptions.authorize": (authorize) =>
    callOpenApi({ authorize, fetch: () => Promise.resolve(Response.json("done")) }),
  "OpenApiImportOptions.fetch": (fetch) => callOpenApi({ fetch }),
  "TokenExchangeOptions.subjectToken": (subjectToken) => {
    const hub = { tokenEndpoint: "http://127.0.0.1:9/token", clientId: "plue" };
    const source = exchangeTokens({ providers: { hub }, subjectToken: subjectToken as never });
    const tool = { credentials: { hub: {} } };
    return call({ tool, dispatcher: { credentials: credentials(source) } });
  },
  "OAuthCallbackOptions.authorize": (authorize) => openCallback({ authorize }),
  "OAuthCallbackOptions.onError": (onError) =>
    openCallback({ authorize: () => fail("identify", "no"), onError }),
};

/** Returns the status of the callback for a state that is valid. */
async function openCallback(options: Record<string, unknown>): Promise<string> {
  const keys = [new Uint8Array(32)];
  const hub = { clientId: "plue", tokenEndpoint: "http://127.0.0.1:9/token" };
  const source = oauthCredentials({
    ...{ keys, store: memoryCallStore(), redirectUri: "http://127.0.0.1:9/callback" },
    providers: { hub: { ...hub, authorizationEndpoint: "http://127.0.0.1:9/authorize" } },
  });
  const { signal } = new AbortController();
  const request = { principal: "ann", tenant: undefined, scopes: [], signal };
  const needed = await source.get("hub", { ...request, context: undefined, services: {} });
  const { searchParams } = new URL((needed as { readonly url: string }).url);
  const callback = oauthCallback(source, options as never);
  const state = searchParams.get("state") ?? "";
  const url = `http://127.0.0.1:9/callback?code=1&state=${state}`;
  return String((await callback(new Request(url))).status);
}

/** Returns the number of tools that an import with these options selects. */
function chosenBy(options: Readonly<Record<string, BadHook>>): string {
  try {
    return formats.importTools("mcp", MCP_LIST, options).tools.length === 0 ? "none" : "some";
  } catch {
    return "throws";
  }
}

/** The state of a tool under pins. */
async function pinnedBy(store: PinStore, options: ToolPinsOptions = {}): Promise<string> {
  const pins = toolPins(store, { storeTimeoutMs: 500, ...options });
  const { tools, held } = await formats.importTools("mcp", MCP_LIST, { pins });
  return tools.length > 0 ? "let in" : held[0]?.kind ?? "lost";
}

/** Functions in option types that are not hooks of a host, by the reason. */
export const NO_HOOKS: readonly string[] = Object.values(data.notHooks).flat();

/** A tool's description for a reader, which may fail. */
function describeWith(
  description: (reader: core.ToolReader) => string,
  onDescribeError?: BadHook,
): string {
  const registry = new ToolRegistry({ tools: [{ ...WAIT, description }] });
  const source: core.ToolSource = {
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
    return core.defineTool({ ...WAIT, parameters: schema, returns: schema }).id;
  } catch {
    return "throws";
  }
}

/** Calls the tool `t` of a registry with a broken method, which is not plue's. */
async function callOwn(
  broken: Partial<Record<"getTool" | "isAvailable" | "acquire" | "release" | "select", BadHook>>,
): Promise<string> {
  const registry = new ToolRegistry({ tools: [{ ...WAIT, isAvailable: () => true }] });
  const host: core.SelectableToolHost = {
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
    return "throws";
  }
}

/** Requests the prompts of an endpoint, and returns the status. */
async function listPrompts(extend: BadHook): Promise<string> {
  const mcp = createMcpEndpoint(new ToolRegistry(), { extend, heartbeatMs: 50 });
  return String((await mcp.fetch(modernRequest("prompts/list"))).status);
}

/** Imports from a server in this process, which lists a tool later that cannot be registered. */
async function importWith(
  { risk, onError, onState }: Partial<Record<"risk" | "onError" | "onState", BadHook>>,
): Promise<string> {
  const far = new ToolRegistry({ tools: [WAIT] });
  const registry = new ToolRegistry();
  const reported = Promise.withResolvers<void>();
  await using _server = await importMcpServer(URL_OF_MCP, {
    namespace: "far",
    registry,
    http: { fetch: fetchFrom(createMcpEndpoint(far, { openExecution: true })) },
    ...(risk && { risk }),
    ...(onState && { onState }),
    onError(error) {
      reported.resolve();
      return onError?.(error);
    },
  });
  registry.registerTool({ ...WAIT, name: "far:u" });
  far.registerTool({ ...WAIT, name: "u" });
  await reported.promise;
  const result = await new ToolDispatcher(registry).dispatch({ name: "far:t" });
  return result.ok ? String(result.content) : result.error.code;
}

const ASKING: Partial<ToolDefinition> = {
  async execute(_params, { ask }) {
    await ask("key", { message: "Well?" });
    return "done";
  },
};

/** Calls a tool that asks a question, and answers the question. */
async function resumed(
  { store = memoryCallStore(), tickets, tool = {} }: {
    readonly store?: CallStore;
    readonly tickets?: core.CallTickets;
    readonly tool?: Partial<ToolDefinition>;
  },
): Promise<string> {
  const registry = new ToolRegistry({ tools: [{ ...WAIT, ...ASKING, ...tool }] });
  const dispatcher = new ToolDispatcher(registry, {
    ...SHORT,
    tickets: tickets ?? sealedTickets({ keys: [new Uint8Array(32)], store }),
  });
  const waiting = await dispatcher.dispatch({ name: "t" });
  if (!core.isSuspended(waiting)) return waiting.ok ? "done" : waiting.error.code;
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

/** The end of a continued task whose tool requires a context. */
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

/** Telemetry that returns a position for each call. */
const PLACING: core.CallTelemetry = {
  begin: () => ({
    place: { traceId: "1".repeat(32), spanId: "1".repeat(16), sampled: true },
    run: (work) => work(),
    end() {},
  }),
};

/** Calls with headers that telemetry reads. */
function readingTrace(headers: core.TraceHeaders): Promise<string> {
  const telemetry: core.CallTelemetry = {
    begin(call) {
      const { headers } = call;
      // As openTelemetry does.
      void [assertSync(headers?.get("traceparent")), ...assertSync(headers?.keys()) ?? []];
      return PLACING.begin(call);
    },
  };
  return call({ dispatcher: { telemetry }, context: { trace: { headers } } });
}

function traced(
  broken: { readonly run?: BadHook; readonly end?: BadHook },
): Partial<plue.ToolHandlerOptions> {
  const span = { place: undefined, run: <R>(work: () => R): R => work(), end() {}, ...broken };
  return { dispatch: { telemetry: { begin: () => span } } };
}
