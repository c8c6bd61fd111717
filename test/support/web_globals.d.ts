// The only globals that the core may use: WinterTC's minimum common API, which every runtime
// supports. tsconfig.core.json compiles the core against this list, so that a use of `process`,
// `Bun`, `Deno` or `document` does not compile.

interface AbortSignalEventListener {
  (event: unknown): void;
}
declare class AbortSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(
    type: "abort",
    listener: AbortSignalEventListener,
    options?: { once?: boolean },
  ): void;
  removeEventListener(type: "abort", listener: AbortSignalEventListener): void;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  static abort(reason?: unknown): AbortSignal;
}
declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}
declare class DOMException extends Error {
  constructor(message?: string, name?: string);
}
declare function setTimeout(callback: () => void, ms?: number): unknown;
declare function clearTimeout(handle: unknown): void;
declare function queueMicrotask(callback: () => void): void;
declare const performance: { now(): number };
declare const crypto: {
  randomUUID(): string;
  getRandomValues(into: Uint8Array): Uint8Array;
  readonly subtle: { digest(algorithm: "SHA-256", data: Uint8Array): Promise<ArrayBuffer> };
};
declare function atob(data: string): string;
declare function btoa(binary: string): string;
declare class TextEncoder {
  encode(text?: string): Uint8Array;
  encodeInto(text: string, into: Uint8Array): { read: number; written: number };
}
declare class TextDecoder {
  decode(bytes?: Uint8Array): string;
}
declare class URL {
  static canParse(url: string): boolean;
  constructor(url: string, base?: string);
  readonly href: string;
  readonly origin: string;
  readonly protocol: string;
  readonly username: string;
  readonly password: string;
  readonly search: string;
  readonly hash: string;
}
