/** Stand-ins for libplue in the tests of the tools side. */

import * as wire from "../../../src/adapters/native/frames.ts";
import { REQUEST } from "../../../src/adapters/native/frames.ts";
import { HostBridge, type HostBridgeOptions } from "../../../src/adapters/native/host_bridge.ts";
import type { NativeTools } from "../../../src/adapters/native/host_tools.ts";
import { ToolDispatcher, type ToolDispatcherOptions } from "../../../src/execute/mod.ts";
import type { ToolRegistry } from "../../../src/registry/mod.ts";
import type { Selection } from "../../../src/select/mod.ts";
import { FakeClock } from "../execute/support.ts";

const encoder = new TextEncoder();

/** One frame, written by the rules of `ffi/PROTOCOL.md`, without the code under test. */
export function frame(
  type: number,
  flags: number,
  id: number,
  payload: Uint8Array = new Uint8Array(0),
): Uint8Array {
  const bytes = new Uint8Array(16 + payload.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, 12 + payload.length, true);
  view.setUint8(4, type);
  view.setUint8(5, flags);
  view.setBigUint64(8, BigInt(id), true);
  bytes.set(payload, 16);
  return bytes;
}

/** A block of strings; `undefined` is NULL. */
export function strings(...texts: readonly (string | undefined)[]): Uint8Array {
  const parts = texts.map((text) => encoder.encode(text));
  const block = new Uint8Array(
    4 * texts.length + parts.reduce((sum, part) => sum + part.length, 0),
  );
  const view = new DataView(block.buffer);
  let at = 4 * texts.length;
  texts.forEach((text, index) => {
    const part = parts[index] ?? new Uint8Array(0);
    view.setUint32(4 * index, text === undefined ? 0xffff_ffff : part.length, true);
    block.set(part, at);
    at += part.length;
  });
  return block;
}

/** The payload of a register frame: the host's number of the tool, and its definition. */
export function registration(tool: number, definition: unknown): Uint8Array {
  const text = typeof definition === "string" ? definition : JSON.stringify(definition);
  return call(tool, text);
}

/** The payload of a yield frame. */
export function yielded(
  text: string,
  numbers: readonly [number, number] = [0, 0],
  isProgress = false,
): Uint8Array {
  const head = new Uint8Array(16);
  const view = new DataView(head.buffer);
  numbers.forEach((number, index) => {
    if (isProgress) view.setFloat64(8 * index, number, true);
    else view.setBigUint64(8 * index, BigInt(number), true);
  });
  return join(head, strings(text));
}

/** The payload of an execute frame: the id of its abort signal, and a block of strings. */
export function call(signal: number, ...texts: readonly (string | undefined)[]): Uint8Array {
  const id = new Uint8Array(8);
  new DataView(id.buffer).setBigUint64(0, BigInt(signal), true);
  return join(id, strings(...texts));
}

/** Several frames in a row. */
export function join(...frames: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(frames.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const bytes of frames) {
    all.set(bytes, at);
    at += bytes.length;
  }
  return all;
}

/** The frames of the tools side, as text. */
export interface Reply {
  readonly type: keyof typeof wire.REPLY;
  readonly id: number;
  readonly flags: number;
  /** The payload, parsed if it is JSON. */
  readonly value: unknown;
  /** The message of a failed call, which is before the JSON in the frame. */
  readonly message?: string;
}

const NAMES = new Map(
  Object.entries(wire.REPLY).map((
    [name, type],
  ) => [type as number, name as keyof typeof wire.REPLY]),
);

export function readReplies(bytes: Uint8Array): Reply[] {
  const replies: Reply[] = [];
  const read = wire.readFrames(bytes, ({ type, flags, id, payload }) => {
    const name = NAMES.get(type);
    if (name === undefined) throw new Error(`there is no reply ${type}`);
    if (name === "result" && (flags & wire.FLAG.callFailed) !== 0) {
      const size = new DataView(payload.buffer, payload.byteOffset).getUint32(0, true);
      const message = wire.readText(payload.subarray(4, 4 + size));
      const value = JSON.parse(wire.readText(payload.subarray(4 + size)));
      replies.push({ type: name, id, flags, value, message });
      return;
    }
    if (name === "invoke") {
      const [tool, call] = wire.readNumbers(payload, false);
      const [params = "", session, message] = wire.readStrings(payload.subarray(16), 3);
      const value = { tool, call, params: JSON.parse(params), session, message };
      replies.push({ type: name, id, flags, value });
      return;
    }
    const text = wire.readText(payload);
    const isText = ["failed", "pong", "cancel", "log"].includes(name);
    replies.push({ type: name, id, flags, value: isText ? text : JSON.parse(text) });
  });
  if (read !== bytes.length) throw new Error("half a frame was sent");
  return replies;
}

/** Waits until all pending promise reactions have run. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await null;
}

/** The tools of a registry, without further settings. */
export function toolsOfRegistry(
  registry: ToolRegistry,
  options: { readonly selection?: Selection; readonly dispatch?: ToolDispatcherOptions } = {},
): NativeTools {
  // With this clock, calls that a test leaves open arm no timer that keeps Node alive for a minute.
  const dispatcher = new ToolDispatcher(registry, { clock: new FakeClock(), ...options.dispatch });
  return { registry, dispatcher, selection: options.selection };
}

/** The frame of a host's configuration. */
interface ConfigureRequest {
  readonly id?: number;
  readonly version?: number;
  readonly module?: string;
}

/** The frame of a host's call. */
interface ExecuteRequest {
  readonly metadata?: boolean;
  readonly session?: string;
  readonly message?: string;
  /** The id of the abort signal; 0 is none. */
  readonly signal?: number;
}

/** A host that sends frames to a bridge, and records the frames of the bridge. */
export class FakeHost {
  readonly replies: Reply[] = [];
  readonly bridge: HostBridge;
  /** The number of writes of the bridge. */
  sent = 0;
  /** The functions that run when the bridge's clock ticks. */
  readonly ticks: Set<() => void> = new Set();
  time = 0;

  constructor(options: Partial<HostBridgeOptions> & Pick<HostBridgeOptions, "load">) {
    this.bridge = new HostBridge({
      send: (frames) => {
        this.sent++;
        this.replies.push(...readReplies(frames));
      },
      runtime: "fake 1.0",
      tick: (run) => {
        this.ticks.add(run);
        return () => this.ticks.delete(run);
      },
      now: () => this.time,
      ...options,
    });
  }

  async configure(
    config?: unknown,
    { id = 1, version = 2, module }: ConfigureRequest = {},
  ): Promise<void> {
    const json = config === undefined || typeof config === "string"
      ? config
      : JSON.stringify(config);
    this.bridge.receive(frame(REQUEST.configure, version, id, strings(module, json)));
    await settle();
  }

  async execute(
    id: number,
    tool: string,
    params?: unknown,
    { metadata = false, session, message, signal = 0 }: ExecuteRequest = {},
  ): Promise<void> {
    const json = params === undefined || typeof params === "string"
      ? params
      : JSON.stringify(params);
    const payload = call(signal, tool, json, session, message);
    this.bridge.receive(frame(REQUEST.execute, metadata ? 1 : 0, id, payload));
    await settle();
  }

  async register(id: number, tool: number, definition: unknown, flags = 1): Promise<void> {
    this.bridge.receive(frame(REQUEST.register, flags, id, registration(tool, definition)));
    await settle();
  }

  async yield(invocation: number, kind: number, payload: Uint8Array): Promise<void> {
    this.bridge.receive(frame(REQUEST.yield, kind, invocation, payload));
    await settle();
  }

  async abort(id: number, reason: string): Promise<void> {
    this.bridge.receive(frame(REQUEST.abort, 0, id, encoder.encode(reason)));
    await settle();
  }

  async abortSignal(signal: number, reason: string): Promise<void> {
    this.bridge.receive(frame(REQUEST.abort, 1, signal, encoder.encode(reason)));
    await settle();
  }

  /** The replies of one type, oldest first. */
  of(type: Reply["type"]): Reply[] {
    return this.replies.filter((reply) => reply.type === type);
  }

  /** The names in the newest list. */
  names(): string[] {
    return Object.keys(this.of("tools").at(-1)?.value ?? {});
  }

  /** How a call ended. */
  result(id: number): unknown {
    return this.of("result").find((reply) => reply.id === id)?.value;
  }

  failure(id: number): { readonly error: string; readonly message: string } {
    return this.result(id) as { error: string; message: string };
  }
}
