/**
 * How fast a client reads. The streams of the SDK take whatever they are given: a tool that goes on
 * while its reader does not would fill the memory.
 *
 * @module
 */

/** How many messages may go out between two reads, of those that nobody waits for. */
const MAX_AHEAD = 256;

/** One client's reading of the stream that answers it, if a stream does. */
export class Reading {
  #hasBegun = false;
  #isOver = false;
  #isWaiting = false;
  #ahead = 0;
  readonly #waiting = new Set<() => void>();

  /** Resolves when the client wants to read, at once if there is no stream. */
  async wanted(): Promise<void> {
    while (this.#hasBegun && !this.#isOver && !this.#isWaiting) {
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
    // The next one waits for the next read.
    this.#isWaiting = false;
  }

  /** Whether there is room for a message that cannot wait. */
  hasRoom(): boolean {
    return !this.#hasBegun || ++this.#ahead <= MAX_AHEAD;
  }

  /** The answer, looked at while it is read if it is a stream. */
  of(response: Response): Response {
    const type = response.headers.get("content-type") ?? "";
    if (response.body === null || !type.startsWith("text/event-stream")) return response;
    const reader = response.body.getReader();
    this.#hasBegun = true;
    const body = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        this.#ahead = 0;
        this.#isWaiting = true;
        this.#wake();
        try {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          this.#end();
          controller.close();
        } catch (error) {
          this.#end();
          throw error;
        }
      },
      cancel: (reason) => {
        this.#end();
        return reader.cancel(reason);
      },
    }, { highWaterMark: 0 });
    return new Response(body, response);
  }

  #end(): void {
    this.#isOver = true;
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
