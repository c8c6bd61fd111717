// `npm run build`: bundles the library and the command `plue` into dist/ for npm, and writes the
// text for models. JSR receives the unchanged sources. Usage: node scripts/build.mjs [folder]

import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { bundleLibrary } from "./lib/library.mjs";
import { licencesOf } from "./lib/licences.mjs";
import { ROOT } from "./lib/paths.mjs";

/** The guides whose whole text is in the package. The others are only in the list. */
const GUIDES = [
  ...["first-tool", "defining", "selecting", "calling", "layers", "imports"],
  ...["providers", "frameworks", "http", "mcp"],
].map((name) => `docs/${name}.md`);

const read = (file) => readFileSync(join(ROOT, file), "utf8");

/** Returns the text for models: a list of all guides with their addresses, then some of them. */
function textForModels() {
  const { version, repository } = JSON.parse(read("package.json"));
  const [, path] = /github\.com\/(.*)\.git$/.exec(repository.url);
  const lines = readdirSync(join(ROOT, "docs"), { recursive: true }).sort()
    .map((name) => `docs/${name.replaceAll("\\", "/")}`)
    .filter((file) => file.endsWith(".md") && !file.startsWith("docs/decisions/"))
    .map((file) => {
      const url = `https://raw.githubusercontent.com/${path}/v${version}/${file}`;
      return `- [${/^# (.*)$/m.exec(read(file))?.[1] ?? file}](${url})`;
    });
  const texts = GUIDES.map((file) => `<!-- ${file} -->\n\n${read(file)}`);
  return `# plue ${version}\n\n> ${/^# plue\n\n([^]*?)\n\n/.exec(read("README.md"))[1]}\n\n` +
    `## Guides\n\n${lines.join("\n")}\n\n${texts.join("\n")}`;
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
writeFileSync(join(outDir, "llms.txt"), textForModels());
