/** Stores of pins. */

/** A store of one text. */
export interface PinStore {
  /** Returns the last saved text; `undefined` if there is none. Rejects if the text cannot be read. */
  load(): Promise<string | undefined>;
  /** Replaces the stored text atomically. */
  save(text: string): Promise<void>;
}

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
  };
}

/** Loads Node's file system module. A bundle for Workers must not contain the specifier. */
async function files(): Promise<typeof import("node:fs/promises")> {
  return await import(["node:fs", "promises"].join("/"));
}
