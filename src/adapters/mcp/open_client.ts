/** Opens connections to MCP servers with the official SDK, which is loaded on first use. */

import type {
  Client,
  ClientOptions,
  FetchLike,
  JSONRPCMessage,
  JSONRPCRequest,
  JSONRPCResponse,
  JsonSchemaValidator,
  StreamableHTTPClientTransportOptions,
  Transport,
} from "@modelcontextprotocol/client";
import { abortable, attemptOr, clip, fail, noop, systemClock } from "../../tool/mod.ts";
import { causesOf, IS_DENO, messagesOf } from "../http/runtime.ts";
import { withoutSecrets } from "../http/redact.ts";
import { loadClient } from "./client_library.ts";
import { type ClientOpener, LOST_SESSION } from "./connection.ts";
import {
  boundedFetch,
  boundMessages,
  Pace,
  readLines,
  UnreadInput,
  UnsolicitedMessages,
} from "./server_bounds.ts";

/** A program that is an MCP server on its standard input and output. plue starts the program. */
export interface McpCommand {
  readonly command: string;
  readonly args?: readonly string[];
  /** Environment variables, in addition to the few that the SDK passes on. */
  readonly env?: { readonly [name: string]: string };
  /** The folder that the program runs in. By default, the current folder. */
  readonly cwd?: string;
  /** The destination of its standard error output. @default {"inherit"} */
  readonly stderr?: "inherit" | "ignore";
}

/** A server: a program, a URL, or a connected client of the official SDK. */
export type McpServerSource = McpCommand | URL | string | Client;

const INFO = { name: "plue", version: "0.1.0" };

const CONNECT_TIMEOUT_MS = 30_000;

interface ClientLimits {
  readonly maxBytes: number;
  readonly mayAsk: boolean;
  /** The count of messages of several connections; by default, each connection has its own. */
  readonly unsolicited?: UnsolicitedMessages;
}

const MAX_PAGES = 64;

export function clientOpener(
  source: McpServerSource,
  http: StreamableHTTPClientTransportOptions | undefined,
  limits: ClientLimits,
  onReopened = (): void => {},
): ClientOpener {
  if (isClient(source)) {
    const describe = (error: unknown): unknown => error;
    return { transport: "http", isOwn: false, describe, open: () => Promise.resolve(source) };
  }
  if (isUrl(source)) {
    return httpOpener(httpUrl(source), http, limits, onReopened);
  }
  if (typeof source === "object" && source !== null && typeof source.command === "string") {
    return commandOpener(source, limits);
  }
  throw new TypeError(
    "Cannot import an MCP server: the source must be a URL, a command such as " +
      '{ command: "npx", args: ["…"] }, or a connected client',
  );
}

function httpOpener(
  url: URL,
  options: StreamableHTTPClientTransportOptions = {},
  limits: ClientLimits,
  onReopened: () => void,
): ClientOpener {
  // The error of the runtime would contain the value.
  const headers = attemptOr(undefined, () => new Headers(options.requestInit?.headers)) ??
    fail("import an MCP server", "http.requestInit has an invalid header");
  const name = nameOfUrl(url, headers);
  // Shared by all connections: otherwise a server could reset the delay by closing one.
  const pace = new Pace();
  return {
    transport: "http",
    isOwn: true,
    secrets: name.secrets,
    describe: (error) => serverError(name, error),
    open: (signal) =>
      openWith(signal, limits, async (unsolicited, requests) => {
        const { StreamableHTTPClientTransport } = await loadClient();
        const timers = new Set<ReturnType<typeof setTimeout>>();
        const transport = new StreamableHTTPClientTransport(url, {
          // The server chooses the delay before its stream is reopened. The delay may be 0.
          reconnectionScheduler(reconnect, delay, attempt) {
            // Calls whose responses are due may each reopen their streams once a second.
            const minDelay = requests.size > 0 ? 1_000 : pace.next();
            const timer = setTimeout(() => {
              timers.delete(timer);
              reconnect();
            }, Math.max(Math.min(delay, LONGEST_RECONNECT_MS), minDelay));
            timers.add(timer);
            // After two attempts, the timer no longer keeps the process running.
            if (attempt > 1) Object(timer).unref?.();
            return () => clearTimeout(timer);
          },
          // With a provider, each attempt may ask a person to log in.
          ...(options.authProvider === undefined && { reconnectionOptions: RECONNECTION }),
          ...options,
          fetch: watchStream(boundedFetch(options.fetch, limits.maxBytes, unsolicited), onReopened),
        });
        const close = transport.close.bind(transport);
        // The SDK clears only the last of several timers.
        transport.close = () => {
          timers.forEach(clearTimeout);
          return close();
        };
        return transport;
      }),
  };
}

const LONGEST_RECONNECT_MS = 60_000;
/** The SDK's own delays, without a maximum number of attempts. */
const RECONNECTION = {
  initialReconnectionDelay: 1_000,
  maxReconnectionDelay: 30_000,
  reconnectionDelayGrowFactor: 1.5,
  maxRetries: Infinity,
};

/** Returns a `fetch` that reports the responses to further requests for the stream for notifications. */
function watchStream(base: FetchLike, onReopened: () => void): FetchLike {
  /** The signal of the transport. The streams of requests have other signals. */
  let own: AbortSignal | null | undefined;
  return async (url, init) => {
    const isAgain = init?.method === "GET" && own !== undefined && init.signal === own;
    if (init?.method === "GET") own ??= init.signal;
    const response = await base(url, init);
    if (isAgain && response.status !== 401) onReopened();
    const headers = new Headers(init?.headers);
    // Without its session, nothing can be resumed. With status 405, the client subscribes again, or
    // ends the call.
    const isOver = headers.has("last-event-id") && LOST_SESSION.includes(response.status) &&
      (init?.signal !== own || !headers.has("mcp-session-id"));
    return isOver ? new Response(null, { status: 405 }) : response;
  };
}

/** The time after the end of a program in which its last output is read. */
const OUTPUT_MS = 1_000;

/** Private members of the SDK's transport. */
interface StartedProgram {
  readonly _readBuffer: object;
  processReadBuffer(): void;
  readonly _process?: Program;
}

interface Program {
  readonly stdin: { write(line: string, onWritten: () => void): void };
  readonly stdout: {
    on(event: "data", listener: () => void): void;
    pause(): void;
    resume(): void;
    destroy(): void;
  };
  readonly pid: number;
  readonly exitCode: number | null;
  readonly signalCode: string | null;
  kill(signal: string): boolean;
  once(event: "exit", listener: (code: number | null, signal: string | null) => void): void;
  once(event: "close" | "error", listener: () => void): void;
}

const running = new Set<{ opener: ClientOpener; program: Program; ended: Promise<void> }>();

/** Ends the programs that would outlive this process. */
function killAll(): void {
  for (const { program } of running) program.kill("SIGKILL");
}

function commandOpener(source: McpCommand, limits: ClientLimits): ClientOpener {
  const { command, args = [], env = {}, cwd, stderr = "inherit" } = source;
  // The arguments and the environment may be secrets, so messages contain the command only.
  const name: ServerName = {
    words: `"${clip(command, 200)}"`,
    secrets: [...args, ...Object.values(env)],
  };
  let ended: ProgramEnd | undefined;
  let timeout = CONNECT_TIMEOUT_MS;
  const opener: ClientOpener = {
    transport: "stdio",
    isOwn: true,
    describe: (error) => serverError(name, error, ended),
    async close() {
      const own = [...running].filter((one) => one.opener === opener);
      await Promise.all(own.map(({ ended }) => ended));
    },
    async open(signal) {
      const start = systemClock.now();
      const opening = openWith(signal, limits, async (unsolicited, requests) => {
        const { deserializeMessage, serializeMessage } = await loadClient();
        const { getDefaultEnvironment, StdioClientTransport } = await loadStdio();
        // The SDK makes a copy, which has the same bounds, to find out the revision of the server.
        class ProgramTransport extends StdioClientTransport {
          #unread = 0;

          constructor(parameters: ConstructorParameters<typeof StdioClientTransport>[0]) {
            super(parameters);
            const { _readBuffer: buffer } = this as unknown as StartedProgram;
            const parse: typeof deserializeMessage = (line) => {
              // No client counts the messages to a copy.
              if (this !== transport) unsolicited.add();
              return deserializeMessage(line);
            };
            Object.assign(buffer, readLines(limits.maxBytes, unsolicited, requests, parse));
          }

          override async start(): Promise<void> {
            signal.throwIfAborted();
            const starting = super.start();
            const started = this as unknown as StartedProgram;
            const { _process: program } = started;
            if (program !== undefined) keepRunning(opener, program);
            await starting;
            const pace = (): void => {
              if (!unsolicited.isPaused) return program?.stdout.resume();
              program?.stdout.pause();
              void unsolicited.waitForPause().then(() => {
                started.processReadBuffer();
                pace();
              });
            };
            program?.stdout.on("data", pace);
            if (this !== transport) return;
            program?.once("exit", (code, signalName) => {
              ended = { code, signal: signalName };
              // The transport closes when the output ends, which a child of the program may hold open.
              const stop = systemClock.setTimeout(() => program.stdout.destroy(), OUTPUT_MS);
              program.once("close", stop);
            });
          }

          /** The SDK's own method sets no limit, and resolves only when all lines are written. */
          override async send(message: JSONRPCMessage): Promise<void> {
            const { _process: program } = this as unknown as StartedProgram;
            if (program === undefined) return await super.send(message);
            const line = serializeMessage(message);
            const isCall = "method" in message && message.method === "tools/call";
            if (isCall && this.#unread > limits.maxBytes) throw new UnreadInput();
            this.#unread += line.length;
            await new Promise<void>((resolve) => program.stdin.write(line, resolve));
            this.#unread -= line.length;
          }
        }
        // The SDK makes a copy only of a class with this method.
        const _dispose: unknown = Reflect.get(StdioClientTransport.prototype, "_dispose");
        Object.assign(ProgramTransport.prototype, { _dispose });
        const transport: InstanceType<typeof StdioClientTransport> = new ProgramTransport({
          command,
          args: [...args],
          env: { ...getDefaultEnvironment(), ...env },
          stderr,
          ...(cwd === undefined ? {} : { cwd }),
          maxBufferSize: limits.maxBytes,
        });
        ended = undefined;
        return transport;
      }, timeout);
      try {
        const client = await opening;
        timeout = CONNECT_TIMEOUT_MS;
        return client;
      } catch (error) {
        // The program may download itself at its first start.
        if (systemClock.now() - start >= timeout) timeout = Math.min(2 * timeout, 240_000);
        throw error;
      }
    },
  };
  return opener;
}

function keepRunning(opener: ClientOpener, program: Program): void {
  const ended = new Promise<void>((resolve) => {
    program.once("exit", () => resolve());
    program.once("error", resolve);
  });
  // Deno's own method sends only the first signal.
  if (IS_DENO) {
    program.kill = (signal) =>
      program.exitCode === null && program.signalCode === null &&
      globalThis.process.kill(program.pid, signal);
  }
  const one = { opener, program, ended };
  running.add(one);
  void ended.then(() => running.delete(one));
  globalThis.process.off("exit", killAll).on("exit", killAll);
}

async function openWith(
  signal: AbortSignal,
  limits: ClientLimits,
  makeTransport: (
    unsolicited: UnsolicitedMessages,
    requests: ReadonlyMap<unknown, AbortController>,
  ) => Promise<Transport>,
  timeout: number = CONNECT_TIMEOUT_MS,
): Promise<Client> {
  const { unsolicited = new UnsolicitedMessages() } = limits;
  const requests: Map<unknown, AbortController> = new Map();
  let transport: Transport | undefined;
  const connecting = (async () => {
    transport = await makeTransport(unsolicited, requests);
    signal.throwIfAborted();
    boundMessages(transport, unsolicited, requests);
    const client = await newClient(limits);
    signal.throwIfAborted();
    await client.connect(transport, { signal, timeout });
    return client;
  })();
  try {
    return await abortable(connecting, signal);
  } catch (error) {
    // Not awaited: a program may take seconds to end. Errors are ignored: it may have ended.
    transport?.close().catch(() => {});
    throw error;
  }
}

async function newClient({ maxBytes, mayAsk }: ClientLimits): Promise<Client> {
  const { Client } = await loadClient();
  class BoundedClient extends Client {
    #isListing = false;
    #listed = 0;
    // The import of a list cannot be interrupted.
    readonly #maxList = maxBytes / 4;

    /** Counts the pages of a list together. The types fit the overloads of the SDK. */
    override async request(...args: never[]): Promise<never> {
      const [{ method, params }] = args as readonly unknown[] as readonly [JSONRPCRequest];
      const isList = method === "tools/list" || method === "skills/list";
      if (isList && params?.["cursor"] === undefined) this.#listed = 0;
      this.#isListing ||= isList;
      try {
        return await Reflect.apply(super.request, this, args) as never;
      } finally {
        if (isList) this.#isListing = false;
      }
    }

    /**
     * The SDK handles progress one microtask after reading it. It handles a response synchronously
     * and removes the progress handler. So progress that arrives with the response would be lost:
     * the response is delayed.
     */
    protected override _onresponse(response: JSONRPCResponse): void {
      void Promise.resolve().then(() => super._onresponse(this.#boundedPage(response)));
    }

    /** Returns the response, or an error if the list becomes too large with this page. */
    #boundedPage(response: JSONRPCResponse): JSONRPCResponse {
      if (!this.#isListing || !("result" in response)) return response;
      const { tools, skills } = response.result;
      if (tools === undefined && skills === undefined) return response;
      // A server may add the other list.
      this.#listed += JSON.stringify([tools, skills]).length;
      if (this.#listed <= this.#maxList) return response;
      const list = skills === undefined ? "tools" : "skills";
      const message =
        `its list of ${list} has more than ${this.#maxList} characters, which is the limit`;
      return { jsonrpc: "2.0", id: response.id, error: { code: -32_000, message } };
    }
  }
  // The SDK prints the raw names of the tools that it removes here. The import rejects them itself.
  Object.assign(BoundedClient.prototype, { _excludeInvalidXMcpHeaderTools: noop });
  if (!mayAsk) return new BoundedClient(INFO, OPTIONS);
  const client = new BoundedClient(INFO, {
    ...OPTIONS,
    capabilities: { elicitation: { form: {}, url: {} } },
  });
  // Cancels questions of earlier revisions, because these do not name their call. In later
  // revisions, the result of a call contains the questions.
  client.setRequestHandler("elicitation/create", () => ({ action: "cancel" }));
  return client;
}

const OPTIONS: ClientOptions = {
  versionNegotiation: { mode: "auto" },
  listMaxPages: MAX_PAGES,
  // The dispatcher checks results, with the same engine on every runtime.
  jsonSchemaValidator: {
    getValidator: <T>(): JsonSchemaValidator<T> => (value) => ({
      valid: true,
      data: value as T,
      errorMessage: undefined,
    }),
  },
};

/**
 * Loads the transport that starts programs. Bundlers must not see the specifier: they would put
 * Node's modules into a bundle for Workers.
 */
async function loadStdio(): Promise<typeof import("@modelcontextprotocol/client/stdio")> {
  return await import(["@modelcontextprotocol", "client", "stdio"].join("/"));
}

export function isUrl(source: McpServerSource): source is URL | string {
  return source instanceof URL || typeof source === "string";
}

function isClient(source: McpServerSource): source is Client {
  return typeof (source as Partial<Client> | null | undefined)?.callTool === "function";
}

function httpUrl(source: URL | string): URL {
  if (URL.canParse(source)) {
    const url = new URL(source);
    if (url.protocol === "http:" || url.protocol === "https:") return url;
  }
  throw new TypeError(
    'Cannot import an MCP server: the URL must begin with "http://" or "https://"',
  );
}

/** The name of a server in messages, and the secrets that must not be in messages. */
interface ServerName {
  /** `at https://…`, or a program in quotes. */
  readonly words: string;
  readonly secrets: readonly string[];
}

interface ProgramEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

const PUBLIC_HEADER = /^(accept|content-type|user-agent)/i;
/** Parts of a path that are as long as this may be keys. */
const LONG_STEP = /[^/]{20,}/g;

/** The name of a server at an address: without credentials, query, and long parts of its path. */
function nameOfUrl(url: URL, headers: Iterable<readonly [string, string]>): ServerName {
  const { origin, pathname, searchParams, href, search, username, password } = url;
  const params = [...searchParams.values()];
  const values = [...headers].filter(([header]) => !PUBLIC_HEADER.test(header))
    .flatMap(([, value]) => [value, ...value.split(/\s+/)]);
  const steps = pathname.match(LONG_STEP) ?? [];
  return {
    words: `at ${origin}${pathname.replace(LONG_STEP, "…")}`,
    secrets: [href, search, username, password, ...steps, ...params, ...values],
  };
}

function serverError({ words, secrets }: ServerName, error: unknown, ended?: ProgramEnd): Error {
  const statuses = causesOf(error).map((cause) => (cause as { readonly status?: unknown }).status);
  const status = statuses.find((status) => typeof status === "number");
  const why = status !== undefined ? `the server sent HTTP status ${status}` : ended === undefined
    // Truncated last: a secret that is cut in two would not be found.
    ? clip(String(withoutSecrets(messagesOf(error, Infinity), secrets)), 600)
      .replace(/[\p{Cc}\p{Cf}]+/gu, " ")
    : ended.signal === null
    ? `the program ended with exit code ${ended.code}`
    : `the program was ended by ${ended.signal}`;
  // The cause is omitted, because it may contain headers, the address, or data of the server.
  const message = `Cannot import the MCP server ${words}: ${why}`;
  return Object.assign(new Error(message), status === undefined ? {} : { status });
}
