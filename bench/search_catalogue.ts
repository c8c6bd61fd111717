/**
 * A generated catalogue of any size, for measuring speed. Its texts are simple and of usual length.
 */

import { makeTool, type Tool } from "../src/tool/mod.ts";

const VERBS = "create delete get list update search send archive export import".split(" ");
const THINGS =
  "invoice customer order ticket meeting document folder branch release deployment server database table message channel campaign contact contract report dashboard metric alert job pipeline secret certificate domain image video playlist"
    .split(" ");
const PLACES = "billing crm support calendar storage source cloud chat marketing media".split(" ");

/** Returns `count` tools, which are the same each time. */
export function makeCatalogue(count: number): Tool[] {
  return Array.from({ length: count }, (_, index) => {
    const verb = pick(VERBS, index);
    const thing = pick(THINGS, Math.floor(index / VERBS.length));
    const place = pick(PLACES, Math.floor(index / 7));
    const other = pick(THINGS, index * 7 + 3);
    const part = pick(THINGS, index * 11 + 5);
    return makeTool({
      name: `${verb}_${thing}_${index}`,
      namespace: place,
      title: `${verb} a ${thing}`,
      description: `Use this tool to ${verb} a ${thing} in the ${place} system. It needs the ` +
        `identifier of the ${other} that the ${thing} belongs to, and answers with the ${thing}, ` +
        `its ${part} and the time of its last change. Ask the user before you ${verb} more than one.`,
      category: place,
      tags: [verb, thing],
      parameters: {
        type: "object",
        properties: {
          [`${thing}Id`]: { type: "string", description: `Identifier of the ${thing}` },
          [`${other}_id`]: { type: "string", description: `The ${other} it belongs to` },
          mode: {
            type: "string",
            enum: ["full", "summary", part],
            description: "How much to give",
          },
          options: {
            type: "object",
            properties: {
              dryRun: { type: "boolean", description: "Only say what would be done" },
              [`max${index % 50}`]: { type: "integer", description: `Limit number ${index % 50}` },
            },
          },
        },
      },
    });
  });
}

function pick(words: readonly string[], index: number): string {
  return words[index % words.length] ?? "";
}

/** Queries for the catalogue: names, sentences, synonyms, typing errors, prefixes. */
export const CATALOGUE_QUERIES: readonly string[] = [
  "create_invoice",
  "delete the customer in the crm",
  "show all meetings in my calendar",
  "remove a folder from storage",
  "listDeployments",
  "serch for contracts",
  "certifcate expiry",
  "send a message to the support channel",
  "what changed in the last release",
  "dashb",
  "update campaign budget and then export the report of the campaign",
  "get",
];
