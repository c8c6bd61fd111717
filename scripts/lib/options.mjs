// Command-line options of the scripts.

import { parseArgs } from "node:util";
import { fail } from "./process.mjs";

/**
 * Reads options whose values are lists, split at commas. `--help` prints the usage and ends the
 * script; an invalid option prints an error and the usage, and ends it with code 2.
 *
 * @param usage The purpose of the script, its command line, and its options.
 * @param known The options with their allowed values: `[]` for any value, `true` for a flag.
 * @returns {{ options: Record<string, string[] | undefined>, rest: string[] }}
 */
export function readOptions(args, usage, known, allowPositionals = false) {
  const width = Math.max(...Object.keys(known).map((name) => name.length));
  const help = [
    `${usage}\n`,
    ...Object.entries(known).map(([name, values]) =>
      `  --${name.padEnd(width)}  ${values === true ? "" : values.join(", ") || "…"}`.trimEnd()
    ),
  ].join("\n");
  try {
    const { values: { help: isHelp, ...given }, positionals: rest } = parseArgs({
      args,
      allowPositionals,
      options: {
        ...Object.fromEntries(
          Object.entries(known)
            .map(([name, values]) => [name, { type: values === true ? "boolean" : "string" }]),
        ),
        help: { type: "boolean", short: "h" },
      },
    });
    if (isHelp) {
      console.log(help);
      process.exit(0);
    }
    const options = {};
    for (const [name, value] of Object.entries(given)) {
      options[name] = value === true ? [] : value.split(",");
      const wrong = options[name].find((one) =>
        known[name].length > 0 && !known[name].includes(one)
      );
      if (wrong !== undefined) {
        throw new TypeError(`Cannot read "--${name}": "${wrong}" must be one of those below`);
      }
    }
    return { options, rest };
  } catch (error) {
    fail(`${error.message}\n\n${help}`, 2);
  }
}
