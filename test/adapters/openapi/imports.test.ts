/** The cases of `imports.json`: documents, their imports, and the bodies of requests. */

import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { importOpenApi } from "../../../src/adapters/openapi/mod.ts";
import { isObject } from "../../../src/tool/mod.ts";
import { call } from "../../support/call_tool.ts";
import { fakeApi, petStore } from "./fake_api.ts";
import cases from "./imports.json" with { type: "json" };

interface ImportCase {
  readonly title: string;
  /** A document, or `pet store`. */
  readonly document: unknown;
  readonly options?: object;
  /** Values of the import by path; `null` for absent ones. */
  readonly expect: Readonly<Record<string, unknown>>;
  /** Substrings of the texts at the paths. */
  readonly includes?: Readonly<Record<string, string>>;
  /** Arguments of calls of the tool `op`, with the bodies of the requests. */
  readonly sends?: readonly (readonly [args: unknown, body: string | null])[];
}

/** The fields by which members of a list are found. */
const NAMES = ["name", "rule"];

/**
 * Returns the value at a path. In a list, a step is an index, `*` for all members, `field:value` for
 * the first member with that value, or the name of the first tool, or the rule of all entries. `keys`
 * returns the names of the members of an object.
 */
function at(value: unknown, [step, ...rest]: readonly string[]): unknown {
  if (step === undefined) return value ?? null;
  if (Array.isArray(value)) {
    if (step === "*") return value.map((member) => at(member, rest));
    if (/^\d+$/.test(step)) return at(value[Number(step)], rest);
    const [field = "", wanted] = step.includes(":") ? step.split(":") : [];
    if (wanted !== undefined) return at(value.find((one) => one[field] === wanted), rest);
    const found = value.filter((one) => NAMES.some((name) => one[name] === step));
    return found[0]?.name === step ? at(found[0], rest) : found.map((one) => at(one, rest));
  }
  if (!isObject(value)) return null;
  return step === "keys" && rest.length === 0 ? Object.keys(value) : at(value[step], rest);
}

describe("importOpenApi()", () => {
  for (const { title, document, options, expect, includes = {}, sends } of cases as ImportCase[]) {
    it(title, async () => {
      const { fetch, requests } = fakeApi();
      const sending = sends === undefined && !("/tools/0/execute" in expect)
        ? {}
        : { fetch, baseUrl: "https://api.example" };
      const source = document === "pet store" ? petStore() : document;
      const imported = importOpenApi(source, { ...options, ...sending });
      for (const [path, wanted] of Object.entries(expect)) {
        assertEquals([path, at(imported, path.slice(1).split("/"))], [path, wanted]);
      }
      for (const [path, text] of Object.entries(includes)) {
        assertStringIncludes(String(at(imported, path.slice(1).split("/"))), text);
      }
      for (const [args, body] of sends ?? []) {
        const result = await call(imported.tools, "op", args);
        assert(result.ok, result.ok ? "" : result.error.message);
        assertEquals(requests.at(-1)?.request.body ?? null, body);
      }
    });
  }
});
