/**
 * Bundles an entry point as a site or a worker would, and measures the bundle.
 *
 * @module
 */

import { join, relative, sep } from "node:path";
import { ROOT } from "./paths.mjs";

/** A bundled entry point. Kilobytes are 1,000 bytes. */
export interface Bundle {
  readonly minifiedKb: number;
  readonly gzipKb: number;
  /** The packages in it, and the modules that it leaves to the runtime. */
  readonly packages: readonly string[];
  /** Minified bytes by source file, largest first. */
  readonly files: readonly (readonly [name: string, bytes: number])[];
  readonly text: string;
}

/**
 * Bundles and minifies an entry point.
 *
 * @param file The entry, from the project's folder.
 * @param without Files and folders, from the project's folder, to replace: their exports exist, and
 * do nothing. Shows the size of a feature.
 * @param text What the entry consists of, where there is no such file.
 */
export async function bundle(
  file: string,
  without: readonly string[] = [],
  text?: string,
): Promise<Bundle> {
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
    plugins: without.length === 0 ? [] : [{
      name: "leave-out",
      setup(build) {
        build.onLoad({ filter: /\.(ts|mjs|js)$/ }, async ({ path }) => {
          const name = relative(ROOT, path).replaceAll(sep, "/");
          const text = await Bun.file(path).text();
          const loader = name.endsWith(".ts") ? "ts" : "js";
          const isOut = without.some((start) => name.startsWith(start));
          return { contents: isOut ? nothingOf(text) : text, loader };
        });
      },
    }],
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
  const code = Buffer.from(await output.arrayBuffer());
  return {
    minifiedKb: code.byteLength / 1000,
    gzipKb: Bun.gzipSync(code, { level: 9 }).byteLength / 1000,
    packages: [...packages].sort(),
    files,
    text: code.toString(),
  };
}

const DECLARATION = /^export (?:default )?(?:async )?(?:function\*?|class|const|let) ([\w$]+)/gm;
const LIST = /^export \{([^}]*)\};?$/gm;

/** A module with the same exports, which do nothing. Tables of contents stay unchanged. */
function nothingOf(text: string): string {
  const names = [
    ...[...text.matchAll(DECLARATION)].map(([, name]) => name),
    ...[...text.matchAll(LIST)].flatMap(([, list = ""]) =>
      list.split(",").map((item) => item.trim().split(" as ").at(-1) ?? "").filter(Boolean)
    ),
  ];
  return names.length === 0 ? text : names.map((name) => `export const ${name} = 0;`).join("\n");
}
