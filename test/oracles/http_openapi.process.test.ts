/** The handler's document, judged by two validators, and its answers, judged by the document. */

import SwaggerParser from "@apidevtools/swagger-parser";
import { Validator } from "@seriousme/openapi-schema-validator";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, it } from "bun:test";
import { createToolHandler, serveFormats } from "../../src/adapters/hono/mod.ts";
import * as formats from "../../src/formats/mod.ts";
import { ToolRegistry } from "../../mod.ts";
import { ALL } from "./tools.ts";

type Json = { [key: string]: unknown };

const registry = new ToolRegistry({ tools: ALL });
registry.registerTool({
  name: "double",
  description: "Doubles a number.",
  risk: "safe",
  parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
  returns: { type: "number" },
  execute: (input) => (input as { n: number }).n * 2,
});
const app = createToolHandler(registry, {
  formats: serveFormats(formats, { openapi: { servers: ["http://localhost"] } }),
  authorize: () => ({ role: "control", scopes: [] }),
});
const document: Json = await (await app.request("http://localhost/openapi.json")).json();

async function faults(candidate: Json): Promise<unknown> {
  const { valid, errors } = await new Validator().validate(structuredClone(candidate));
  return valid ? undefined : errors;
}

describe("the document of the handler", () => {
  it("is accepted by @seriousme/openapi-schema-validator, which rejects invalid ones", async () => {
    assertEquals(await faults(document), undefined);
    assert(await faults({ ...document, paths: 5 }) !== undefined);
  });

  it("is accepted by swagger-parser, which rejects invalid ones", async () => {
    await SwaggerParser.validate(structuredClone(document) as never);
    await assertRejects(() => SwaggerParser.validate({ ...document, paths: 5 } as never));
  });

  it("describes the handler's responses, results and problems", async () => {
    const resolved = await SwaggerParser.dereference(structuredClone(document) as never) as Json;
    const at = (...keys: readonly string[]): unknown =>
      keys.reduce<unknown>((value, key) => (value as Json)[key], resolved);
    const execute = "/tools/double/execute";
    const ajv = new Ajv2020({ strict: false });
    const takes = (schema: unknown, value: unknown): boolean =>
      ajv.validate(schema as Json, value) as boolean;
    const run = async (body: unknown): Promise<unknown> =>
      await (await app.request(`http://localhost${execute}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      })).json();

    const operation = ["paths", execute, "post"];
    const json = ["content", "application/json", "schema"];
    const request = at(...operation, "requestBody", ...json);
    const response = at(...operation, "responses", "200", ...json);
    const problem = at("components", "schemas", "Problem");
    const page = at("components", "schemas", "Page");

    const body = { arguments: { n: 21 }, callId: "c" };
    assertEquals(takes(request, body), true);
    assertEquals(takes(response, await run(body)), true);
    assertEquals(takes(problem, await run(body)), false);

    assertEquals(takes(request, { n: 21 }), false);
    assertEquals(takes(problem, await run({ n: 21 })), true);
    assertEquals(takes(request, { arguments: { n: "21" } }), false);
    assertEquals(takes(problem, await run({ arguments: { n: "21" } })), true);

    const listed: unknown = await (await app.request("http://localhost/tools"))
      .json();
    assertEquals(takes(page, listed), true, JSON.stringify(ajv.errors));
  });
});
