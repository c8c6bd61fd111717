// Command-line options of the scripts.

/**
 * Reads `--name value` and `--name=value` for the names given; the rest is positional.
 *
 * @returns `{ options, rest }`; an option's value is a list, split at commas.
 */
export function readOptions(args, names) {
  const options = {};
  const rest = [];
  for (let at = 0; at < args.length; at++) {
    const match = /^--([a-z-]+)(?:=(.*))?$/.exec(args[at]);
    if (match === null) {
      rest.push(args[at]);
      continue;
    }
    const [, name, attached] = match;
    const value = attached ?? args[++at];
    if (!names.includes(name) || value === undefined) {
      console.error(
        `Cannot read the option ${args[at]}: known are ` +
          names.map((known) => `--${known} a,b`).join(", "),
      );
      process.exit(2);
    }
    options[name] = value.split(",");
  }
  return { options, rest };
}
