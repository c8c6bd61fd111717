/**
 * Sends the same request over some connections, again and again, and counts. The client is raw
 * sockets: `fetch` would cost more than the servers that are measured.
 */

import { connect, type Socket } from "node:net";

/** The result of a load. */
export interface LoadResult {
  readonly perSecond: number;
  readonly p99Ms: number;
}

const CONNECTIONS = 16;

/**
 * Loads a server for a while.
 *
 * @param request The request, as bytes of HTTP/1.1.
 * @param wanted The expected rest of the status line: another answer is an error.
 * @param ms The duration, in milliseconds.
 */
export async function load(
  port: number,
  request: string,
  wanted: string,
  ms: number,
): Promise<LoadResult> {
  const durations: number[] = [];
  const began = performance.now();
  const until = began + ms;
  await Promise.all(
    Array.from({ length: CONNECTIONS }, () =>
      new Promise<void>((resolve, reject) => {
        const socket = connect(port, "127.0.0.1");
        const answers = new Answers(wanted);
        let sentAt = 0;
        const send = (): void => {
          sentAt = performance.now();
          if (sentAt >= until) {
            socket.destroy();
            resolve();
          } else socket.write(request);
        };
        socket.setNoDelay(true);
        socket.once("connect", send);
        socket.once("error", reject);
        socket.once("end", () => reject(new Error("The server closed the connection")));
        take(socket, (chunk) => {
          try {
            if (!answers.add(chunk)) return;
          } catch (error) {
            socket.destroy();
            return reject(error);
          }
          durations.push(performance.now() - sentAt);
          send();
        });
      })),
  );
  const elapsed = performance.now() - began;
  durations.sort((a, b) => a - b);
  return {
    perSecond: durations.length / (elapsed / 1000),
    p99Ms: durations[Math.floor(durations.length * 0.99)] ?? NaN,
  };
}

function take(socket: Socket, each: (chunk: Uint8Array) => void): void {
  socket.on("data", each);
}

/** Finds the ends of answers on one connection. One request is under way at a time. */
class Answers {
  readonly #wanted: string;
  readonly #decoder = new TextDecoder("latin1");
  #head = "";
  /** The missing bytes of the body; `undefined` while the head is read. */
  #left: number | undefined;
  #isChunked = false;
  #tail = "";

  constructor(wanted: string) {
    this.#wanted = wanted;
  }

  /** Adds received bytes. Returns true if the answer is complete. */
  add(chunk: Uint8Array): boolean {
    let bytes = chunk;
    if (this.#left === undefined) {
      this.#head += this.#decoder.decode(chunk);
      const end = this.#head.indexOf("\r\n\r\n");
      if (end === -1) return false;
      const head = this.#head.slice(0, end);
      if (!head.startsWith(`HTTP/1.1 ${this.#wanted}`)) throw new Error(`Not wanted: ${head}`);
      const lower = head.toLowerCase();
      const length = /content-length: (\d+)/.exec(lower)?.[1];
      this.#isChunked = lower.includes("transfer-encoding: chunked");
      this.#left = Number(length ?? 0);
      // One latin1 character is one byte.
      bytes = chunk.subarray(chunk.length - (this.#head.length - end - 4));
      this.#head = "";
    }
    if (this.#isChunked) {
      this.#tail = (this.#tail + this.#decoder.decode(bytes.subarray(-8))).slice(-8);
      if (!this.#tail.endsWith("0\r\n\r\n")) return false;
    } else {
      this.#left -= bytes.length;
      if (this.#left > 0) return false;
    }
    this.#left = undefined;
    this.#tail = "";
    return true;
  }
}
