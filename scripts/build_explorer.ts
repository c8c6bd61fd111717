/**
 * Builds the page of the explorer into one module: `bun scripts/build_explorer.ts`. With `--check`
 * it writes nothing, and exits with 1 if the module differs from the build.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { listTargets } from "../src/formats/mod.ts";

const ROOT = join(import.meta.dirname, "..");
const PAGE = join(ROOT, "src/explorer/page");
const MODULE = join(ROOT, "src/explorer/built_page.ts");
/** The maximum size of the page after gzip, in bytes. */
const LIMIT = 120_000;

async function bundle(file: string): Promise<string> {
  const result = await Bun.build({
    entrypoints: [join(PAGE, file)],
    root: ROOT,
    minify: true,
    target: "browser",
    define: {
      "process.env.NODE_ENV": '"production"',
      TARGETS: JSON.stringify(listTargets().map(({ id, title }) => ({ id, title }))),
    },
  });
  const [output] = result.outputs;
  if (output === undefined) throw new AggregateError(result.logs, `Cannot bundle ${file}`);
  // A closing tag in the code would end the page's element.
  return (await output.text()).trim().replaceAll("</", "<\\/");
}

/** The digest of the only element of that name, in the form of a Content-Security-Policy. */
function digest(element: string): string {
  const text = html.split(`<${element}`)[1]?.split(`</${element}>`)[0] ?? "";
  const own = text.slice(text.indexOf(">") + 1);
  return `'sha256-${createHash("sha256").update(own).digest("base64")}'`;
}

const template = await Bun.file(join(PAGE, "index.html")).text();
const style = await bundle("style.css");
const script = await bundle("main.tsx");
const html = template.replace("/* STYLE */", () => style).replace("/* SCRIPT */", () => script);
const policy = [
  "default-src 'none'",
  `script-src ${digest("script")}`,
  `style-src ${digest("style")}`,
  "connect-src 'self'",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");
const etag = `"${createHash("sha256").update(html).update(policy).digest("hex").slice(0, 32)}"`;
const module = `/**
 * The page, as \`bun scripts/build_explorer.ts\` makes it of \`src/explorer/page\`. Preact, its signals
 * and eventsource-parser are in it, all under the MIT licence.
 *
 * @module
 */

// deno-fmt-ignore-file
export const html: string = ${JSON.stringify(html)};
export const policy: string = ${JSON.stringify(policy)};
export const etag: string = ${JSON.stringify(etag)};
`;
const size = Bun.gzipSync(new TextEncoder().encode(html), { level: 9 }).byteLength;
console.log(`The page has ${html.length} characters, ${(size / 1000).toFixed(1)} kB after gzip`);
if (size > LIMIT) {
  console.error(`Cannot build the explorer: it may have ${LIMIT / 1000} kB after gzip`);
  process.exit(1);
}
if (!process.argv.includes("--check")) await Bun.write(MODULE, module);
else if (module !== await Bun.file(MODULE).text()) {
  console.error("The page is out of date: run bun scripts/build_explorer.ts");
  process.exit(1);
}
