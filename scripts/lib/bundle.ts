/**
 * Bundles an entry point as a site or a worker would, and measures the bundle.
 *
 * @module
 */

import { join } from "node:path";
import { ROOT } from "./paths.mjs";

/** A bundled entry point. Kilobytes are 1,000 bytes. */
export interface Bundle {
  readonly minifiedKb: number;
  readonly gzipKb: number;
  /** The packages in the bundle, and the modules that the runtime provides. */
  readonly packages: readonly string[];
  /** Minified bytes by source file, largest first. */
  readonly files: readonly (readonly [name: string, bytes: number])[];
}

/**
 * Bundles and minifies an entry point.
 *
 * @param file The entry, from the project's folder.
 * @param text The source of the entry, if there is no such file.
 */
export async function bundle(file: string, text?: string): Promise<Bundle> {
  const entry = join(ROOT, file);
  const result = await Bun.build({
    entrypoints: [entry],
    ...(text !== undefined && { files: { [entry]: text } }),
    root: ROOT,
    minify: true,
    target: "browser",
    conditions: ["workerd", "worker"],
    external: ["node:*", "cloudflare:*"],
    metafile: true,
  });
  const [output] = result.outputs;
  const { inputs = {}, outputs = {} } = result.metafile ?? {};
  const [meta] = Object.values(outputs);
  if (output === undefined || meta === undefined) {
    throw new AggregateError(result.logs, `Cannot bundle "${file}"`);
  }
  const files = Object.entries(meta.inputs)
    .map(([name, { bytesInOutput }]) => [name, bytesInOutput] as const)
    .sort(([, a], [, b]) => b - a);
  const packages = new Set([
    ...files.flatMap(([name]) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(name)?.[1] ?? []),
    ...files.flatMap(([name]) => inputs[name]?.imports ?? [])
      .map(({ path }) => path).filter((path) => /^(node|cloudflare):/.test(path)),
  ]);
  const code = new Uint8Array(await output.arrayBuffer());
  return {
    minifiedKb: code.byteLength / 1000,
    gzipKb: Bun.gzipSync(code, { level: 9 }).byteLength / 1000,
    packages: [...packages].sort(),
    files,
  };
}
