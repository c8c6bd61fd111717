// `npm run build`: bundles the library and the command `plue` into dist/ for npm, and writes the
// texts of the guides. JSR receives the unchanged sources. Usage: node scripts/build.mjs [folder]

import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { bundleLibrary } from "./lib/library.mjs";
import { licencesOf } from "./lib/licences.mjs";
import { rawAddress, ROOT } from "./lib/paths.mjs";

/** The guides to write programs with the library. The text of the command has all guides. */
const OF_LIBRARY = [
  ...["first-tool", "defining", "selecting", "calling", "layers", "imports", "providers"],
  ...["frameworks", "http", "mcp", "rules", "calls", "troubleshooting", "security"],
].map((name) => `docs/${name}.md`);

const read = (file) => readFileSync(join(ROOT, file), "utf8");
const OTHERS = readdirSync(join(ROOT, "docs"), { recursive: true }).sort()
  .map((name) => `docs/${name.replaceAll("\\", "/")}`)
  .filter((file) => /^docs\/(?!decisions\/).*\.md$/.test(file) && !OF_LIBRARY.includes(file));

const listOf = (guides) =>
  guides.map((file) => `- [${/^# (.*)$/m.exec(read(file))[1]}](${rawAddress(file)})\n`).join("");

/** Returns a guide without the spaces that align the columns of tables. */
function compact(file) {
  const text = read(file).replaceAll(/^\|.*/gm, (row) => row.replaceAll(/(?<=[ -]{3})[ -]+/g, ""));
  return `<!-- ${file} -->\n\n${text}`;
}

/** Returns guides as one text for people and models, after a list of the addresses of all guides. */
function textOf(guides, elsewhere) {
  const { version } = JSON.parse(read("package.json"));
  const summary = /^# plue\n\n([^]*?)\n\n/.exec(read("README.md"))[1];
  return `# plue ${version}\n\n> ${summary}\n\n## Guides\n\n${listOf(guides)}\n${elsewhere}` +
    guides.map(compact).join("\n");
}

const outDir = resolve(process.argv[2] ?? join(ROOT, "dist"));
rmSync(outDir, { recursive: true, force: true });
mkdirSync(outDir, { recursive: true });
const { library, command } = await bundleLibrary(outDir);
for (const [folder, modules] of [[outDir, library], [join(outDir, "cli"), command]]) {
  const files = modules.map((id) => relative(ROOT, id));
  const text = licencesOf("The files of this folder contain these packages.", files, ROOT);
  writeFileSync(join(folder, "LICENSES.txt"), text);
}
const schema = "plue.schema.json";
copyFileSync(join(ROOT, "src/cli/gateway", schema), join(outDir, "cli", schema));
const elsewhere = `\`dist/llms.txt\` of \`@plue/cli\` also has these:\n\n${listOf(OTHERS)}\n`;
writeFileSync(join(outDir, "llms.txt"), textOf(OF_LIBRARY, elsewhere));
writeFileSync(join(outDir, "cli", "llms.txt"), textOf([...OF_LIBRARY, ...OTHERS], ""));
