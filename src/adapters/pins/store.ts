/** Stores of pins. */

import { systemClock } from "../../tool/mod.ts";

/** A store of one text. */
export interface PinStore {
  /** Returns the last saved text; `undefined` if there is none. Rejects if the text cannot be read. */
  load(): Promise<string | undefined>;
  /** Replaces the stored text atomically. */
  save(text: string): Promise<void>;
  /**
   * Runs a function that loads and saves while no other process does. A store without it must not be
   * shared by processes: one would overwrite the other's pins, and trust the lost import again.
   */
  exclusive?(work: () => Promise<void>): Promise<void>;
}

/** The age in milliseconds from which the lock of a file belongs to a process that has died. */
const STALE_MS = 10_000;
const RETRY_MS = 20;

/** Stores pins in memory. */
export function memoryStore(): PinStore {
  let kept: string | undefined;
  return { load: () => Promise.resolve(kept), save: (text) => Promise.resolve(void (kept = text)) };
}

/** Stores pins in a JSON file, on Node, Bun and Deno. The folder of the file must exist. */
export function fileStore(path: string): PinStore {
  return {
    async load() {
      const { readFile } = await files();
      try {
        return await readFile(path, "utf8");
      } catch (error) {
        if ((error as { readonly code?: unknown }).code === "ENOENT") return undefined;
        throw error;
      }
    },
    async save(text) {
      const { open, rename, rm } = await files();
      const next = `${path}.${crypto.randomUUID()}.tmp`;
      try {
        const file = await open(next, "wx", 0o600);
        try {
          await file.writeFile(text);
          await file.sync();
        } finally {
          await file.close();
        }
        // A rename is atomic: a reader sees the old file or the new file.
        await rename(next, path);
      } catch (error) {
        await rm(next, { force: true });
        throw error;
      }
    },
    async exclusive(work) {
      const { open, rm, stat } = await files();
      const lock = `${path}.lock`;
      for (;;) {
        try {
          await (await open(lock, "wx", 0o600)).close();
          break;
        } catch (error) {
          if ((error as { readonly code?: unknown }).code !== "EEXIST") throw error;
        }
        const { mtimeMs } = await stat(lock).catch(() => ({ mtimeMs: Infinity }));
        if (systemClock.timestamp() - mtimeMs > STALE_MS) await rm(lock, { force: true });
        else await new Promise<void>((retry) => systemClock.setTimeout(retry, RETRY_MS));
      }
      try {
        await work();
      } finally {
        await rm(lock, { force: true });
      }
    },
  };
}

/** Loads Node's file system module. A bundle for Workers must not contain the specifier. */
async function files(): Promise<typeof import("node:fs/promises")> {
  return await import(["node:fs", "promises"].join("/"));
}
