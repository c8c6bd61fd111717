// `npm run docs`: the site of the guides and of every exported name, in build/site. Fails on a link
// that leads nowhere, and on a page that would load something from another host.
// Usage: node scripts/build_docs.mjs

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { writeFileSync } from "node:fs";
import { basename, dirname, extname, join, posix, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { ROOT } from "./lib/paths.mjs";
import { capture, refuse } from "./lib/process.mjs";
import { setupPackages } from "./setup.mjs";

const SITE = join(ROOT, "scripts", "site");
const PAGES = join(ROOT, "build", "site-pages");
const OUT = join(ROOT, "build", "site");
const readJson = (file) => JSON.parse(readFileSync(join(ROOT, file), "utf8"));
const REPOSITORY = readJson("package.json").repository.url.replace(/^git\+|\.git$/g, "");

/** The pages, each with where it is on the site. */
function pages() {
  const found = ["", "docs/", "docs/decisions/", "ffi/", "bench/", "examples/", "examples/chain/"]
    .concat("examples/edge/", "examples/workspace/")
    .flatMap((folder) => readdirSync(join(ROOT, folder)).map((name) => folder + name))
    .filter((page) => page.endsWith(".md"));
  return new Map(found.map((page) => [page, page.replace(/README\.md$/, "index.md")]));
}

/** Returns a page with links to other pages of the site, to its pictures, or to the repository. */
function withLinks(text, page, places) {
  const place = places.get(page);
  const lead = (link) => {
    if (/^([a-z]+:|#)/.test(link)) return link;
    const [path, heading] = link.split("#");
    let target = posix.join(posix.dirname(page), path).replace(/\/$/, "");
    if (!places.has(target) && places.has(`${target}/README.md`)) target += "/README.md";
    const hash = heading === undefined ? "" : `#${heading}`;
    if (places.has(target)) return step(place, places.get(target)) + hash;
    if (![".webp", ".svg"].includes(extname(target))) {
      return `${REPOSITORY}/blob/main/${target}${hash}`;
    }
    // A picture in a page is in the same folder, and a link to one is in `public`.
    for (const folder of [PAGES, join(PAGES, "public")]) {
      cpSync(join(ROOT, target), join(folder, target));
    }
    return step(place, target);
  };
  // Code has no links.
  return text.split(/(^```.*?^```)/ms).map((part, at) =>
    at % 2 === 1 ? part : part
      .replaceAll(/\]\(([^)\s]+)\)/g, (_, link) => `](${lead(link)})`)
      .replaceAll(/\bsrc="([^"]+)"/g, (_, link) => `src="${lead(link)}"`)
  ).join("");
}

function step(from, to) {
  const path = posix.relative(posix.dirname(from), to);
  return path.startsWith(".") ? path : `./${path}`;
}

/** Returns the import specifier of a TypeDoc module: `src/core`, `mod`. */
const ENTRIES = new Map(
  Object.entries(readJson("deno.json").exports).map(([entry, file]) => [
    file.replace(/^\.\/|\.ts$/g, ""),
    posix.join(readJson("package.json").name, entry),
  ]),
);

/** One Markdown page for each entry of the package, from the docstrings. */
async function writeReference() {
  const { code, output } = await capture(process.execPath, [
    join(SITE, "node_modules", "typedoc", "bin", "typedoc"),
    ...["--options", join(SITE, "typedoc.json"), "--out", join(PAGES, "api")],
    ...[...ENTRIES.keys()].map((module) => `${module}.ts`),
  ]);
  if (code !== 0) refuse(`Cannot build the site: typedoc failed:\n${output}`);
  // Many headings of a page are called "Parameters", and links mean a property of that name.
  const api = join(PAGES, "api");
  for (const name of readdirSync(api, { recursive: true }).filter((name) => name.endsWith(".md"))) {
    const seen = new Set();
    const text = readFileSync(join(api, name), "utf8").replaceAll(
      // The page of a module, and its line in the list of all, have the name of the entry.
      /^(# |- \[)([\w/]+)(?=\]|$)/gm,
      (whole, mark, module) => ENTRIES.has(module) ? mark + ENTRIES.get(module) : whole,
    ).replaceAll(
      /^(#+ .*?)(?: \{#([^}\s]+)\})?$/gm,
      (_, heading, id) => {
        const anchor = id === undefined || seen.has(id) ? `heading-${seen.size}` : id;
        seen.add(anchor);
        return `${heading} {#${anchor}}`;
      },
      // Constructors have headings without a name of their own.
    ).replaceAll(/#constructor(-\d+)?\)/g, ")");
    writeFileSync(join(api, name), text);
  }
}

/** The names of the guides, as the README's table has them, and the reference. */
function sidebar() {
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  const guides = [...readme.matchAll(/^\| \[([^\]]+)\]\((docs\/[\w-]+)\.md\)/gm)]
    .map(([, text, page]) => ({ text, link: `/${page}` }));
  const api = [...ENTRIES].map(([module, text]) => ({ text, link: `/api/${module}` }));
  return [
    { text: "Guides", items: guides },
    {
      text: "More",
      items: [
        { text: "Targets", link: "/docs/formats" },
        { text: "Specifications", link: "/docs/specification" },
        { text: "Architecture", link: "/ARCHITECTURE" },
        { text: "Decisions", link: "/docs/decisions/" },
        { text: "Contributing", link: "/CONTRIBUTING" },
        { text: "Changes", link: "/CHANGELOG" },
        { text: "Native hosts", link: "/ffi/" },
      ],
    },
    { text: "Exported names", collapsed: true, items: api },
  ];
}

async function buildSite() {
  const { build } = await import(
    pathToFileURL(join(SITE, "node_modules/vitepress/dist/node/index.js")).href
  );
  mkdirSync(join(PAGES, ".vitepress"), { recursive: true });
  const config = {
    title: "plue",
    description: readJson("package.json").description,
    outDir: OUT,
    vite: { build: { chunkSizeWarningLimit: 4_000 } },
    // Browsers ask for an icon of their own accord where a page names none.
    head: [["link", { rel: "icon", href: "data:," }]],
    themeConfig: {
      search: { provider: "local" },
      nav: [
        { text: "First tool", link: "/docs/first-tool" },
        { text: "Exported names", link: "/api/" },
      ],
      sidebar: sidebar(),
      outline: [2, 3],
    },
  };
  writeFileSync(
    join(PAGES, ".vitepress", "config.mjs"),
    // Text in the docs may look like Vue's own brackets.
    `export default { ...${JSON.stringify(config)}, markdown: { html: true, config: (md) => {
      for (const rule of ["text", "code_inline"]) {
        const write = md.renderer.rules[rule] ?? ((tokens, at) => md.utils.escapeHtml(tokens[at].content));
        md.renderer.rules[rule] = (...args) => write(...args).replaceAll("{{", "&#123;&#123;");
      }
    } } };`,
  );
  await build(PAGES);
}

/** Returns the problems of the built pages. */
function problems() {
  const files = readdirSync(OUT, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const found = [];
  const ids = new Map(
    files.filter((file) => file.endsWith(".html")).map((file) => {
      const found = readFileSync(file, "utf8").matchAll(/\bid="([^"]+)"/g);
      return [file, new Set([...found].map(([, id]) => id))];
    }),
  );
  for (const file of files) {
    const name = relative(OUT, file);
    if (![".html", ".css"].includes(extname(file))) continue;
    const text = readFileSync(file, "utf8");
    const loads =
      /<(?:script|img|iframe|source)\b[^>]*\bsrc="(?:https?:)?\/\/|<link\b[^>]*\bhref="(?:https?:)?\/\/|url\(["']?(?:https?:)?\/\/|@import/;
    const [loaded] = loads.exec(text) ?? [];
    if (loaded !== undefined) found.push(`${name} loads from another host: ${loaded}`);
    for (
      const [, link] of text.matchAll(/<(?:a|img|link|script)\b[^>]*?\b(?:href|src)="([^"]*)"/g)
    ) {
      if (/^[a-z]+:/.test(link)) continue;
      const url = new URL(link, `http://site/${name}`);
      const path = decodeURIComponent(url.pathname);
      const target = join(OUT, path.endsWith("/") ? `${path}index.html` : path);
      if (!existsSync(target)) found.push(`${name} links to ${link}, which does not exist`);
      else if (
        url.hash !== "" && basename(name) !== "404.html" &&
        !ids.get(target)?.has(decodeURIComponent(url.hash.slice(1)))
      ) {
        found.push(`${name} links to ${link}, and there is no such heading`);
      }
    }
  }
  return [...new Set(found)];
}

const missing = await setupPackages("scripts/site");
if (missing !== undefined) refuse(`Cannot build the site: ${missing}`);
rmSync(PAGES, { recursive: true, force: true });
rmSync(OUT, { recursive: true, force: true });
const places = pages();
for (const [page, place] of places) {
  mkdirSync(dirname(join(PAGES, place)), { recursive: true });
  writeFileSync(
    join(PAGES, place),
    withLinks(readFileSync(join(ROOT, page), "utf8"), page, places),
  );
}
await writeReference();
await buildSite();
const found = problems();
if (found.length > 0) {
  refuse(`The site has ${found.length} problems:\n${found.slice(0, 40).join("\n")}`);
}
console.log(`Built ${relative(ROOT, OUT)}`);
