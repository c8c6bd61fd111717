/** Workers and a caller of one registry, isolated from other tests by their subjects. */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import * as plue from "@plue/tools";
import type { ToolDefinition } from "@plue/tools";
import {
  remoteTools,
  type RemoteToolsOptions,
  serveTools,
  type ServeToolsOptions,
} from "@plue/tools/nats";
import { Link } from "../../src/adapters/nats/link.ts";
import { Seal } from "../../src/adapters/nats/seal.ts";
import { SECRET, type ServerOptions, TestServer, useServer, withServer } from "./server.ts";

type Definition = plue.Tool | ToolDefinition;
type Connection = Awaited<ReturnType<TestServer["connect"]>>;

/** A link with the secret of the tests, and the errors that it logs. */
export function linkOf(
  connection: Connection,
  name = "test",
): Link & { readonly errors: unknown[] } {
  const errors: unknown[] = [];
  const link = new Link(connection, {
    ...{ name, seal: new Seal("test", SECRET) },
    log: (error) => void errors.push(error),
  });
  return Object.assign(link, { errors });
}

/** Resolves when the connection is lost, or is open again. */
export async function became(
  connection: Connection,
  state: "disconnect" | "reconnect",
): Promise<void> {
  for await (const { type } of connection.status()) if (type === state) return;
}

/** An event that a test waits for. */
export function event<T = void>(): { readonly came: Promise<T>; come(value: T): void } {
  let come: (value: T) => void = () => {};
  const came = new Promise<T>((resolve) => come = resolve);
  return { came, come };
}

/** A tool whose calls wait until the test lets them continue. */
export function slowTool(definition: ToolDefinition, result?: string) {
  const [began, goOn] = [event(), event()];
  let runs = 0;
  const tool: ToolDefinition = {
    ...definition,
    async execute() {
      runs++;
      began.come();
      await goOn.came;
      return result;
    },
  };
  return { began, goOn, tool, runs: () => runs };
}

/** A tool whose calls run until they are aborted. */
export function endlessTool(definition: ToolDefinition) {
  const [began, aborted] = [event(), event<unknown>()];
  let runs = 0;
  const tool: ToolDefinition = {
    ...definition,
    execute(_, { signal }) {
      runs++;
      began.come();
      return new Promise((_resolve, reject) =>
        signal.addEventListener("abort", () => {
          aborted.come(signal.reason);
          reject(signal.reason);
        })
      );
    },
  };
  return { began, aborted, tool, runs: () => runs };
}

let names = 0;

/** Workers and a caller with separate subjects. */
export class World implements AsyncDisposable {
  readonly name: string = `test_${++names}`;
  readonly #server: TestServer;
  readonly errors: unknown[] = [];
  readonly #ends: (() => Promise<void>)[] = [];

  constructor(server: TestServer) {
    this.#server = server;
  }

  async serve(tools: readonly Definition[], options: Partial<ServeToolsOptions> = {}) {
    const connection = await this.#server.connect();
    const registry = new plue.ToolRegistry({ tools });
    const served = await serveTools(registry, connection, {
      ...{ secret: SECRET, name: this.name, onError: (error) => this.errors.push(error) },
      ...options,
    });
    this.#ends.push(() => served.close());
    const kill = async (): Promise<void> => {
      await connection.close();
      // Until the server detects the closed connection, it accepts messages without a receiver.
      const other = await this.#server.connect();
      for (let isThere = true; isThere;) {
        isThere = await other.request(`plue.v1.ctl.${served.worker}.x`, "", { timeout: 50 })
          .then(() => true, ({ name }) => name === "TimeoutError");
      }
    };
    return Object.assign(served, { kill, registry, connection });
  }

  async call(options: Partial<RemoteToolsOptions> = {}) {
    const connection = await this.#server.connect();
    const registry = new plue.ToolRegistry();
    const remote = await remoteTools(connection, {
      registry,
      ...{ secret: SECRET, name: this.name, onError: (error) => this.errors.push(error) },
      ...options,
    });
    this.#ends.push(() => remote.close());
    return { dispatcher: new plue.ToolDispatcher(registry), registry, remote, connection };
  }

  /** Serves a slow tool, and calls the tool until a call has begun. */
  async begin(
    { tool, began }: Pick<ReturnType<typeof slowTool>, "tool" | "began">,
    context: plue.DispatchContext = {},
    options: Partial<ServeToolsOptions> = {},
  ) {
    const worker = await this.serve([tool], options);
    const caller = await this.call();
    const running = caller.dispatcher.dispatch({ name: tool.name }, context);
    await began.came;
    return { ...caller, worker, running };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#ends.map((end) => end()));
  }
}

/** Starts a server for a `describe`, and declares tests with a world on it. */
export function useWorlds() {
  const server = useServer();
  return {
    server,
    withWorld: (title: string, test: (world: World) => Promise<void>): void =>
      withServer(title, async () => {
        await using world = new World(server);
        await test(world);
      }),
  };
}

/** Declares a test with a world on a server of its own. */
export function withOwnServer(
  title: string,
  test: (world: World, own: TestServer) => Promise<void>,
  options?: ServerOptions,
): void {
  withServer(title, async () => {
    await using own = await TestServer.start(options);
    await using world = new World(own);
    await test(world, own);
  });
}

/** Returns a connection of its own that receives the messages of a subject. */
export async function spyOn(
  server: TestServer,
  ...subscribed: Parameters<Connection["subscribe"]>
): Promise<Connection> {
  const spy = await server.connect();
  spy.subscribe(...subscribed);
  await spy.flush();
  return spy;
}

export function assertContent(result: plue.ToolResult, content: unknown): void {
  assertEquals(result.ok ? result.content : result.error, content);
}

/** Checks the code of a failure, a part of its message, and whether its tool ran. */
export function assertFailed(
  result: plue.ToolResult,
  code: plue.FailureCode,
  message = "",
  ran?: string,
): asserts result is plue.ToolFailure {
  assert(!result.ok, JSON.stringify(result));
  assertEquals(result.error.code, code);
  assertStringIncludes(result.error.message, message);
  if (ran !== undefined) assertEquals(result.error.ran, ran);
}
