import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import * as formats from "../../../src/formats/mod.ts";
import { exportTools } from "../../../src/formats/mod.ts";
import { buildToolset } from "../../../src/select/mod.ts";
import { defineTool } from "../../../src/tool/mod.ts";
import { PROVIDERS } from "./cases.ts";

const tools = buildToolset([
  defineTool({ namespace: "math", name: "add", description: "Adds." }),
  defineTool({ name: "ping", description: "Answers." }),
]);
const ONE = { tool: "math:add" } as const;
const CHOICES: readonly formats.ToolChoice[] = ["auto", "none", "required", ONE];
const ROWS = PROVIDERS.flatMap(({ settings }) => settings);

describe("the settings of a request", () => {
  it("are written in the fields of each target, or reported", () => {
    for (const [targets, ...expected] of ROWS) {
      for (const target of targets) {
        const settings = [...CHOICES.map((toolChoice) => ({ toolChoice })), { parallel: false }];
        settings.forEach((options, index) => {
          const { request, warnings } = exportTools(tools, target, options);
          const lost = warnings.filter(({ rule }) => rule in options);
          const wanted = expected[index];
          if (typeof wanted === "string") {
            assertEquals(lost.map(({ rule }) => rule), [wanted], target);
          } else assertEquals<unknown>([request, lost], [wanted, []], target);
        });
      }
    }
  });

  it("are empty by default, and do not change the tools", () => {
    for (const { id } of formats.listTargets()) {
      const plain = exportTools(tools, id as formats.TargetName);
      assertEquals<unknown>(plain.request, {});
      const more = exportTools(tools, id as formats.TargetName, { parallel: true });
      assertEquals(more.names.encodings, plain.names.encodings);
    }
  });

  it("must have valid values, and name a tool that is sent", () => {
    const toolChoice = { tool: "math:subtract" };
    assertThrows(
      () => exportTools(tools, "anthropic", { toolChoice }),
      TypeError,
      'toolChoice names "math:subtract", which is not sent',
    );
    for (const wrong of ["any", { tool: 1 }, { tool: "ping", name: "x" }, null]) {
      assertThrows(
        () => exportTools(tools, "anthropic", { toolChoice: wrong as formats.ToolChoice }),
        TypeError,
        '"auto", "none", "required" or { tool: id }',
      );
    }
  });

  it("are empty without tools, because providers reject them", () => {
    for (const { id } of formats.listTargets()) {
      for (const toolChoice of ["none", "required"] as const) {
        const { request, warnings } = exportTools([], id, { toolChoice, parallel: false });
        const about = toolChoice === "required" ? ["toolChoice"] : [];
        assertEquals<unknown>([request, warnings.map(({ rule }) => rule)], [{}, about], id);
      }
    }
  });

  it("are supported by custom targets", () => {
    const acme = formats.defineTarget({ ...formats.targetOf("openai.chat"), id: "acme" });
    const { request } = exportTools(tools, acme, { toolChoice: "required" });
    assertEquals<unknown>(request, { tool_choice: "required" });
    const { choose: _choose, ...rest } = formats.targetOf("openai.chat");
    const without = formats.defineTarget({ ...rest, id: "without", title: "Without" });
    const { warnings } = exportTools(tools, without, { toolChoice: "required" });
    assertStringIncludes(warnings[0]?.message ?? "", "Without: a request has no field");
  });
});
