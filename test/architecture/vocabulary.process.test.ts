import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import {
  CRITERIA,
  CRITERION_NAMES,
  isContextFlag,
  READER_FIELDS,
  VOCABULARY,
} from "../../src/select/mod.ts";
import { textOf } from "./source_tree.ts";

/** The rows of the guide's table of criteria, without their padding. */
function rowsOfGuide(): readonly string[] {
  const [, table = ""] = textOf("docs/selecting.md").split(/\n(?=\| query )/);
  const [rows = ""] = table.split("\n\n");
  return rows.split("\n").slice(2).map((row) => row.replaceAll(/ +/g, " "));
}

describe("the guide of selections", () => {
  it("names each criterion on each surface as the tables do", () => {
    const name = (text: string | undefined) => text === undefined ? "" : `\`${text}\` `;
    const rows = Object.entries(VOCABULARY).map(([query, { flag, text }]) => {
      const criterion = CRITERION_NAMES.find((one) => one === query);
      const selection = criterion && !isContextFlag(criterion) ? criterion : undefined;
      const context = criterion ? CRITERIA[criterion].context : query;
      return `| ${name(query)}| ${name(selection)}| ${name(context)}| ${name(flag)}| ${text} |`;
    });
    assertEquals(rowsOfGuide(), rows);
  });

  it("has the rows in the order in which tools are checked", () => {
    assertEquals(Object.keys(VOCABULARY), [...CRITERION_NAMES, ...READER_FIELDS]);
  });
});
