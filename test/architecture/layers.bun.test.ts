import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { bundle } from "../../scripts/lib/bundle.ts";
import { filesBelow, textOf } from "./source_tree.ts";

const FOLDER = "src/execute/layers";
const FILES = filesBelow(FOLDER, (path) => path.endsWith(".ts"))
  .filter((file) => !file.endsWith("/mod.ts"));

/** The function that a file exports: `hostContext` of `host_context.ts`. */
const functionOf = (file: string): string =>
  file.slice(FOLDER.length + 1, -".ts".length)
    .replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** The files of layers in the bundle of a program that uses these names. */
async function layersIn(names: readonly string[]): Promise<readonly string[]> {
  const text = `
    import { Dispatcher } from "./src/core.ts";
    import { ${names.join(", ")} } from "./${FOLDER}/mod.ts";
    globalThis.use = [Dispatcher, ${names.join(", ")}];
  `;
  const { files } = await bundle("layers_entry.ts", text);
  return files.filter(([name, bytes]) => bytes > 0 && FILES.includes(name)).map(([name]) => name);
}

describe("the layers", () => {
  it("are in files of at most 150 lines, and each file exports its layer", () => {
    assertEquals(FILES.filter((file) => textOf(file).split("\n").length > 151), []);
    const table = textOf(`${FOLDER}/mod.ts`);
    assertEquals(FILES.filter((file) => !table.includes(functionOf(file))), []);
  });

  it("are not in the bundle of a program that uses none", async () => {
    assertEquals(await layersIn([]), []);
  });

  for (const file of FILES) {
    it(`are in the bundle of a program that uses ${functionOf(file)} only as that one`, async () => {
      assertEquals(await layersIn([functionOf(file)]), [file]);
    });
  }

  it("are all in the bundle of a program that uses the ToolDispatcher", async () => {
    const text =
      'import { ToolDispatcher } from "./src/execute/mod.ts"; globalThis.use = ToolDispatcher;';
    const { files } = await bundle("layers_entry.ts", text);
    const names = new Set(files.filter(([, bytes]) => bytes > 0).map(([name]) => name));
    assert(FILES.every((file) => names.has(file)));
  });
});
