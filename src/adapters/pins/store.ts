/**
 * Where pins are kept.
 *
 * @module
 */

/** Keeps one text. */
export interface PinStore {
  /** The text that was saved last; `undefined` if none ever was. Rejects if it cannot be read. */
  load(): Promise<string | undefined>;
  /** Keeps a text in place of the one before, wholly or not at all. */
  save(text: string): Promise<void>;
}

/** Keeps pins as long as the process lives. */
export function memoryStore(): PinStore {
  let kept: string | undefined;
  return {
    load: () => Promise.resolve(kept),
    save: (text) => Promise.resolve(void (kept = text)),
  };
}

/** Keeps pins in a file of JSON, on Node, Bun and Deno. Its folder must be there. */
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
        // A reader sees the old file or the new one, never a part.
        await rename(next, path);
      } catch (error) {
        await rm(next, { force: true });
        throw error;
      }
    },
  };
}

/** Loads Node's files. A bundle for Workers must not have the specifier in it. */
async function files(): Promise<typeof import("node:fs/promises")> {
  return await import(["node:fs", "promises"].join("/"));
}
