// `npm run docs`: the site of the guides, by VitePress, and of every exported name, by `deno doc`,
// in build/site. Fails if the target of a link is missing, or if a page would load a file from
// another host. Usage: node scripts/build_docs.mjs [--check]

import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { isPicture, replaceLinks, repository, ROOT } from "./lib/paths.mjs";
import { capture, fail } from "./lib/process.mjs";
import { setupPackages } from "./setup.mjs";

const SITE = join(ROOT, "scripts", "site");
const PAGES = join(ROOT, "build", "site-pages");
const OUT = join(ROOT, "build", "site");
/** For a check, code has no colors, and scripts are neither minified nor searched for unused parts. */
const isCheck = process.argv.includes("--check");
const BUILD = isCheck && { minify: false, target: "esnext", rollupOptions: { treeshake: false } };
const readJson = (file) => JSON.parse(readFileSync(join(ROOT, file), "utf8"));

/** The pages, with their paths on the site. */
function pages() {
  const guides = readdirSync(join(ROOT, "docs"), { recursive: true }).map((name) => `docs/${name}`);
  const found = ["", "ffi/", "bench/", "examples/", "examples/chain/", "examples/edge/"]
    .concat("examples/workspace/")
    .flatMap((folder) => readdirSync(join(ROOT, folder)).map((name) => folder + name))
    .concat(guides).filter((page) => page.endsWith(".md"));
  const sitePath = (page) =>
    page === "README.md" ? "overview.md" : page.replace(/README\.md$/, "index.md");
  return new Map([
    ["scripts/site/index.md", "index.md"],
    ...found.map((page) => [page, sitePath(page)]),
  ]);
}

/** Returns a page with links to other pages of the site, to its pictures, or to the repository. */
function withLinks(text, page, sitePaths) {
  const sitePath = sitePaths.get(page);
  return replaceLinks(text, (link) => {
    const [path, heading] = link.split("#");
    let target = posix.join(posix.dirname(page), path).replace(/\/$/, "");
    if (!sitePaths.has(target) && sitePaths.has(`${target}/README.md`)) target += "/README.md";
    const hash = heading === undefined ? "" : `#${heading}`;
    if (sitePaths.has(target)) return relativeLink(sitePath, sitePaths.get(target)) + hash;
    if (!isPicture(target)) return `${repository().address}/blob/main/${target}${hash}`;
    // Pictures of pages are in the pages' folder, and linked pictures are in `public`.
    for (const folder of [PAGES, join(PAGES, "public")]) {
      cpSync(join(ROOT, target), join(folder, target));
    }
    return relativeLink(sitePath, target);
  });
}

function relativeLink(from, to) {
  const path = posix.relative(posix.dirname(from), to);
  return path.startsWith(".") ? path : `./${path}`;
}

/** The pages of all exported names, in a folder of the site. */
async function writeReference() {
  const entries = Object.values(readJson("deno.json").exports);
  const args = "doc --html --name=plue --node-modules-dir=manual".split(" ");
  const out = `--output=${join(OUT, "api")}`;
  const { code, output } = await capture("deno", [...args, out, ...entries]);
  if (code !== 0) fail(`Cannot build the site: deno doc failed:\n${output}`);
}

/** VitePress did not write these pages, so its client cannot open them. */
const API = { text: "Exported names", link: "/api/", target: "_self" };

/** The names of the guides, grouped as in the tables of the README, and the reference. */
function sidebar() {
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  const groups = readme.split(/^### /m).slice(1).map((part) => ({
    text: part.split("\n")[0],
    items: [...part.matchAll(/^\| \[([^\]]+)\]\((docs\/[\w/-]+)\.md\)/gm)]
      .map(([, text, page]) => ({ text, link: `/${page}` })),
  }));
  return [
    ...groups.filter(({ items }) => items.length > 0),
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
    API,
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
    vite: { build: { ...BUILD, chunkSizeWarningLimit: 4_000 } },
    head: [["link", { rel: "icon", href: "/icon.svg" }]],
    themeConfig: {
      logo: "/logo.svg",
      siteTitle: false,
      socialLinks: [{ icon: "github", link: repository().address }],
      search: { provider: "local" },
      nav: [
        { text: "First tool", link: "/docs/first-tool" },
        { text: "Guides", link: "/overview#guides" },
        { text: "Troubleshooting", link: "/docs/troubleshooting" },
        API,
      ],
      sidebar: sidebar(),
      outline: [2, 3],
    },
  };
  writeFileSync(
    join(PAGES, ".vitepress", "config.mjs"),
    // Text may look like Vue's own brackets. VitePress renders pages three times: code is cached.
    `export default { ...${JSON.stringify(config)}, markdown: { html: true, config: (md) => {
      for (const rule of ["text", "code_inline"]) {
        const write = md.renderer.rules[rule] ?? ((tokens, at) => md.utils.escapeHtml(tokens[at].content));
        md.renderer.rules[rule] = (...args) => write(...args).replaceAll("{{", "&#123;&#123;");
      }
      const { highlight } = md.options, known = {};
      const plain = (code) => "<pre v-pre><code>" + md.utils.escapeHtml(code) + "</code></pre>";
      md.options.highlight = ${isCheck} ? plain : (...args) => known[JSON.stringify(args)] ??= highlight(...args);
    } } };`,
  );
  cpSync(join(SITE, "theme"), join(PAGES, ".vitepress", "theme"), { recursive: true });
  for (const picture of ["logo.svg", "icon.svg"]) {
    cpSync(join(SITE, picture), join(PAGES, "public", picture));
  }
  await build(PAGES);
}

const FOREIGN =
  /<(?:script|img|iframe|source)\b[^>]*\bsrc="(?:https?:)?\/\/|<link\b[^>]*\bhref="(?:https?:)?\/\/|url\(["']?(?:https?:)?\/\/|@import/;

/** The built pages that load a file from another host. */
function foreignPages() {
  return readdirSync(OUT, { recursive: true }).filter((name) => /\.(html|css)$/.test(name))
    .filter((name) => FOREIGN.test(readFileSync(join(OUT, name), "utf8")));
}

const missing = await setupPackages("scripts/site");
if (missing !== undefined) fail(`Cannot build the site: ${missing}`);
rmSync(PAGES, { recursive: true, force: true });
rmSync(OUT, { recursive: true, force: true });
const sitePaths = pages();
for (const [page, sitePath] of sitePaths) {
  mkdirSync(dirname(join(PAGES, sitePath)), { recursive: true });
  const text = withLinks(readFileSync(join(ROOT, page), "utf8"), page, sitePaths);
  writeFileSync(join(PAGES, sitePath), text);
}
// VitePress rejects dead links between pages. The tests of the documentation check the headings.
await buildSite();
await writeReference();
const foreign = foreignPages();
if (foreign.length > 0) {
  fail(`Cannot build the site: these pages load from other hosts: ${foreign.join(", ")}`);
}
console.log(`Built ${relative(ROOT, OUT)}`);
