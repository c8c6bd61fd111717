// Command-line options of the scripts.

/**
 * Reads `--name value` and `--name=value`; the rest is positional. `--help` prints the usage and
 * ends the script; an invalid option prints an error and the usage, and ends it with code 2.
 *
 * @param usage What the script is for, its command line, and its options.
 * @param known The options, and the values that each takes.
 * @returns `{ options, rest }`; an option's value is a list, split at commas.
 */
export function readOptions(args, usage, known) {
  const width = Math.max(...Object.keys(known).map((name) => name.length));
  const help = `${usage}\n\n${
    Object.entries(known)
      .map(([name, values]) => `  --${name.padEnd(width)}  ${values.join(", ")}`)
      .join("\n")
  }`;
  const refuse = (message) => {
    console.error(`${message}\n\n${help}`);
    process.exit(2);
  };
  const options = {};
  const rest = [];
  for (let at = 0; at < args.length; at++) {
    if (args[at] === "--help" || args[at] === "-h") {
      console.log(help);
      process.exit(0);
    }
    const [, name, attached] = /^--([^=]+)(?:=(.*))?$/.exec(args[at]) ?? [];
    if (name === undefined) {
      rest.push(args[at]);
      continue;
    }
    if (!Object.hasOwn(known, name)) refuse(`Cannot read "--${name}": there is no such option`);
    const values = (attached ?? args[++at])?.split(",");
    if (values === undefined) refuse(`Cannot read "--${name}": it needs a value`);
    const wrong = values.find((value) => !known[name].includes(value));
    if (wrong !== undefined) {
      refuse(`Cannot read "--${name}": "${wrong}" must be one of those below`);
    }
    options[name] = values;
  }
  return { options, rest };
}
