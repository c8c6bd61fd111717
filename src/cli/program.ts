/** The command `plue`: its subcommands, each loaded when it runs, their flags, and their help. */

import { Argument, Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { READER_FIELDS, valueKind, VOCABULARY, type VocabularyName } from "../select/mod.ts";
import { cleanText, describeThrown, helpUrl, RISK_LEVELS } from "../tool/mod.ts";
import { MCP_CLIENTS } from "./mcp_clients.ts";
import * as cli from "./terminal.ts";
import { EXIT, Terminal } from "./terminal.ts";

/** Runs the command. @param words The command line, without the program's name. */
export async function runCommand(words: readonly string[], io: cli.CommandIo): Promise<number> {
  let exitCode: number = EXIT.ok;
  const program = createProgram(io, (code) => void (exitCode = code ?? EXIT.ok));
  try {
    await program.parseAsync([...words], { from: "user" });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) {
      // Help and the version are not errors. The library commander has already printed errors.
      return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    }
    const terminal = new Terminal(io);
    if (io.signal.aborted) {
      terminal.note("Interrupted");
      return 130;
    }
    terminal.note(cleanText(describeThrown(error, 4_000), 4_000));
    return error instanceof cli.CommandError ? error.exitCode : EXIT.failed;
  }
}

export function createProgram(io: cli.CommandIo, end: (code: number | void) => void): Command {
  const program = new Command("plue")
    .description("One tool registry for AI agents: serve, find, call, export and check tools.")
    .version(cli.VERSION)
    .exitOverride()
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      getOutHelpWidth: () => io.stdout.columns ?? 100,
      getErrHelpWidth: () => io.stderr.columns ?? 100,
    })
    .addHelpText(
      "after",
      `
A source is a module that exports a registry or tools (tools.ts), an MCP server ("npx -y some-server",
https://example.com/mcp), an OpenAPI document or a list of tools in a provider's shape (a file or URL
that ends in .json or .yaml), or a plue service (http://127.0.0.1:8787). A name in front says what it
is (module: mcp: openapi: tools: plue:) and which namespace its tools get: files=mcp:my-server.

Exit codes:
${cli.exitCodesHelp()}

What each code means, and what to do: ${helpUrl("codes")}`,
    );

  /** Adds a subcommand with `--json`, whose function gets its arguments, its flags and a terminal. */
  const add = (
    usage: string,
    description: string,
    load: () => Promise<(...args: never[]) => Promise<number | void> | void>,
    ...examples: readonly string[]
  ): Command =>
    program.command(usage).description(description)
      .addOption(new Option("--json", "print JSON"))
      .addHelpText("after", examplesHelp(examples))
      .action(async (...args) => {
        const operands = args.slice(0, -1);
        const { json } = operands.at(-1) as { readonly json?: boolean };
        const run = await load();
        end(await run(...[...operands, new Terminal(io, json)] as never[]));
      });

  withSelection(withSources(add(
    "serve [source...]",
    "Serve tools over HTTP and MCP, and follow the files that they are in",
    async () => (await import("./serve/serve.ts")).serve,
    "plue serve tools.ts",
    "plue serve tools.ts https://api.example.com/openapi.json --port 9000 --max-risk high",
    "plue serve tools.ts --stdio",
    "plue serve tools.ts --nats nats://127.0.0.1:4222",
    "plue serve -c plue.json",
  ))).option("-c, --config <file>", "serve the sources, callers and settings of a plue.json")
    .option("-p, --port <port>", "the port to listen on, 0 for any free one (PORT, or 8787)")
    .option("--host <host>", "the address to listen on (HOST, or 127.0.0.1)")
    .option("--state <folder>", "store suspended calls, tasks and idempotency keys in a folder")
    .option("--store <url>", "store them in sqlite:<path>, postgres://… or redis://… (PLUE_STORE)")
    .option("--journal <file>", "record every call in a journal, which plue journal reads")
    .option("--skills <folder>", "show MCP clients the skills of a folder, each with a SKILL.md")
    .option(
      "--rules <file>",
      "decide on calls by the rules in a JSON file; callers answer questions",
    )
    .option(
      "--code",
      "add run_code, which runs a program that calls the tools; MCP clients see only it and the search",
    )
    .option("--bridge", "show MCP clients three tools that find, describe and call the others")
    .option(
      "--nats <url>",
      "offer the tools over NATS; without a source, serve the tools of workers",
    )
    .option("--stdio", "serve MCP on standard input and output, for desktop clients")
    .option("--open", "open the page in a browser")
    .option("--no-watch", "do not reload the tools when their files change")
    .addHelpText(
      "after",
      `
Tools of medium risk or less are served unless --max-risk (PLUE_MAX_RISK) says otherwise. PLUE_TOKEN
is what callers must present as a bearer token; without it, only this machine is served.

--nats (PLUE_NATS) needs PLUE_NATS_SECRET, which all processes share. A user and a password are in the
URL, or a file of credentials is in PLUE_NATS_CREDS.`,
    );

  withSelection(withSources(add(
    "list [source...]",
    "List the tools that a caller sees",
    async () => (await import("./show.ts")).list,
    "plue list tools.ts",
    'plue list "npx -y @modelcontextprotocol/server-everything"',
    "plue list --from tools.ts --role impl --max-risk low --json",
  )));

  withSelection(withSources(add(
    "show <tool>",
    "Show one tool and its flags",
    async () => (await import("./show.ts")).show,
    "plue show file-read --from tools.ts",
  )));

  withSelection(withSources(add(
    "explain <tool>",
    "Explain why a caller sees a tool, or does not",
    async () => (await import("./show.ts")).explain,
    "plue explain terminal-execute --from tools.ts --max-risk low --no-terminal",
    `plue explain pay --from tools.ts --arguments '{"euros": 80}'`,
  ))).option("--arguments <json>", "show the verdict of each rule on a call with these arguments");

  withSelection(withSources(add(
    "search <words...>",
    "Find the tools that fit a question, best first",
    async () => (await import("./show.ts")).search,
    'plue search --from tools.ts "read a file"',
  ))).option("--limit <count>", "the number of tools to show", wholeNumber);

  withSelection(withSources(add(
    "eval <file>",
    "Compare the tools that search finds for recorded turns with the expected ones",
    async () => (await import("./eval.ts")).evaluate,
    "plue eval turns.jsonl --from tools.ts",
    "plue eval turns.jsonl --from tools.ts --limit 5 --min-recall 95 --json",
  ))).option("--limit <count>", "the number of tools per search (10)", wholeNumber)
    .option("--min-recall <percent>", "fail if fewer turns find an expected tool", wholeNumber)
    .option("-t, --to <target>", "the target whose tokens are counted", "openai");

  withSelection(withSources(add(
    "call <tool> [arguments...]",
    "Call a tool. Its arguments follow its id: flags from its schema, or JSON",
    async () => (await import("./call.ts")).call,
    "plue call --from tools.ts file-read --path README.md",
    "plue call --from http://127.0.0.1:8787 search --opts.depth 2 --tags a --tags b",
    `plue call --from tools.ts search --json '{"opts": {"depth": 2}}'`,
    "plue call --from tools.ts search @arguments.json --query @question.txt",
    "plue call --from tools.ts search --help",
  ))).passThroughOptions().option("-y, --yes", "approve the call if its tool requires approval")
    .option("--timeout <ms>", "the time limit of the call, in milliseconds", wholeNumber);

  withSelection(withSources(add(
    "code [program]",
    "Run a program in JavaScript that calls the tools, and print the value that it returns",
    async () => (await import("./code.ts")).code,
    "plue code report.js --from tools.ts",
    "plue code --types --from tools.ts > tools.d.ts",
  ))).option("-y, --yes", "approve the calls of tools that require approval")
    .option("--types", "print the declarations of the tools instead, for TypeScript")
    .option("--timeout <ms>", "the time limit of the program, in milliseconds", wholeNumber);

  withSelection(withSources(add(
    "export [source...]",
    "Print the tools in a provider's shape",
    async () => (await import("./export.ts")).exportTo,
    "plue export tools.ts --to openai.responses",
    "plue export tools.ts --to gemini --losses",
    "plue export openapi.yaml --to anthropic > tools.json",
  ))).requiredOption("-t, --to <target>", "the target, such as openai.strict, anthropic or gemini")
    .option("--losses", "show instead what the target cannot express");

  withSources(add(
    "import <source>",
    "Show the imported tools of a document or a server, or write them to a file",
    async () => (await import("./export.ts")).importFrom,
    "plue import https://api.example.com/openapi.json",
    "plue import anthropic_tools.json --out tools.ts",
  )).option("-o, --out <file>", "write definitions into a .ts, .js or .json file")
    .option("--force", "overwrite an existing file");

  withSelection(withSources(add(
    "check [source...]",
    "Find problems for models and providers, and count tokens",
    async () => (await import("./export.ts")).check,
    "plue check tools.ts",
    "plue check plue.json --connect",
    "plue check tools.ts --to openai.strict --to gemini --strict",
  ))).addOption(repeated("-t, --to <target>", "a target to check, instead of the four defaults"))
    .option("--strict", "fail on warnings, too")
    .option("--connect", "open the sources of a plue.json, and look for its names of tools there");

  withSources(add(
    "pins [tool...]",
    "Show the tools that the file of --pins hides, with their changes, and approve them",
    async () => (await import("./pins.ts")).reviewPins,
    'plue pins --pins pins.json --from "npx -y some-server"',
    "plue pins mcp:read_file --yes --pins pins.json --from https://example.com/mcp",
  )).option("-y, --yes", "approve the tools without a question");

  add(
    "mcp",
    "Add plue to the configuration file of an MCP client, or remove it",
    async () => (await import("./mcp.ts")).mcp,
    "plue mcp add claude tools.mjs",
    "plue mcp add vscode tools.mjs --project --dry-run",
    'plue mcp add zed "npx -y some-server" --name some --env KEY=value --max-risk high',
    "plue mcp add cursor --url http://127.0.0.1:8787/mcp",
    "plue mcp remove claude",
  ).addArgument(new Argument("<action>", "what to do").choices(["add", "remove"]))
    .addArgument(new Argument("<client>", "the client").choices(MCP_CLIENTS))
    .addArgument(new Argument("[source...]", "the sources that the client starts plue with"))
    .option("--name <name>", "the name of the entry", "plue")
    .option("--url <url>", "a service that runs, instead of sources")
    .addOption(repeated("--header <name: value>", "a header for the service, such as a token"))
    .addOption(repeated("--env <name=value>", "an environment variable for the sources"))
    .option("-c, --config <file>", "a plue.json, instead of sources")
    .option("--max-risk <risk>", "the highest risk of the tools")
    .option("--role <role>", "the role of the client")
    .option("--bridge", "show the client three tools that find and call the others")
    .option("--project", "write the file of the project in this folder, not the file of the user")
    .option("--dry-run", "print the changed entry, and change nothing")
    .option("--force", "replace another entry with this name");

  add(
    "init",
    "Write a first module or a first plue.json, and add it to an MCP client",
    async () => (await import("./init.ts")).init,
    "plue init",
    "plue init module count-words --client claude",
    'plue init gateway "files=npx -y @modelcontextprotocol/server-filesystem ." --client none',
  ).addArgument(new Argument("[kind]", "what to write").choices(["module", "gateway"]))
    .addArgument(new Argument("[what]", "the name of the first tool, or the first source"))
    .addOption(new Option("--client <client>", "the client").choices(["none", ...MCP_CLIENTS]))
    .option("-o, --out <file>", "the file, instead of tools.mjs or plue.json");

  add(
    "doctor",
    "Check the installed parts with a call through each",
    async () => (await import("./doctor.ts")).doctor,
    "plue doctor",
    "plue doctor --nats nats://127.0.0.1:4222",
    "plue doctor --store postgres://127.0.0.1/plue",
  ).option("--nats <url>", "check NATS and the workers instead (PLUE_NATS)")
    .option("--store <url>", "check the store instead (PLUE_STORE)");

  add(
    "store",
    "Create the tables of a store",
    async () => (await import("./store.ts")).store,
    "plue store init --store postgres://admin@127.0.0.1/plue",
  ).addArgument(new Argument("<action>", "what to do").choices(["init"]))
    .option("--store <url>", "sqlite:<path>, postgres://… or redis://… (PLUE_STORE)");

  add(
    "tasks",
    "Show the tasks of a store that wait, run or are dead, or let a dead one run again",
    async () => (await import("./tasks.ts")).tasks,
    "plue tasks --store postgres://127.0.0.1/plue",
    "plue tasks run-again 0e66dc8b1f2YzH0Yxv9mZb3Qk4s7Tt1aQ --store sqlite:calls.db",
  ).addArgument(
    new Argument("[action]", "what to do").choices(["list", "run-again"]).default("list"),
  ).addArgument(new Argument("[id]", "the dead task that runs again"))
    .option("--store <url>", "sqlite:<path>, postgres://… or redis://… (PLUE_STORE)");

  add(
    "journal",
    "Show the records of a journal, verify them, or count the calls of each tool",
    async () => (await import("./journal.ts")).journal,
    "plue journal tail calls.jsonl --follow",
    "plue journal verify calls.jsonl",
    "plue journal show c-17 calls.jsonl",
    "plue journal stats calls.jsonl",
  ).addArgument(
    new Argument("<action>", "what to do").choices(["tail", "verify", "show", "stats"]),
  ).addArgument(new Argument("<file...>", "the file; for show, the id of a call before it"))
    .usage("[options] <action> [call] <file>")
    .option("--limit <count>", "the number of records that tail shows (20)", wholeNumber)
    .option("--follow", "continue to show new records until Ctrl-C")
    .option("--head <number:hash>", "a record that must be in the journal, of an earlier verify")
    .addHelpText("after", "\nverify reads the key of the journal from PLUE_JOURNAL_KEY.");

  add(
    "nats",
    "Create the streams and buckets that tools over NATS need, or a new key of a worker or caller",
    async () => (await import("./nats_admin.ts")).nats,
    "plue nats init --nats nats://admin:password@127.0.0.1:4222 --replicas 3",
    "plue nats keys",
  ).addArgument(new Argument("<action>", "what to do").choices(["init", "keys"]))
    .option("--nats <url>", "the servers (PLUE_NATS)")
    .option("--replicas <count>", "the number of servers that store each, 1 to 5", wholeNumber)
    .option("--max-bytes <bytes>", "the bytes that the server reserves for each", wholeNumber);

  // The doctor runs this on the other runtimes.
  program.command("probe [library]", { hidden: true })
    .action(async (library: string | undefined) => {
      const { probe } = await import("./doctor.ts");
      end(await probe(library, new Terminal(io)));
    });

  add(
    "native",
    "Print the flags to compile and link with libplue, or its path",
    async () => (await import("./doctor.ts")).native,
    "cc host.c -o host $(plue native --cflags --libs)",
    "plue native --libs --static",
  ).option("--cflags", "the flags for the compiler")
    .option("--libs", "the flags for the linker")
    .option("--static", "link it statically");

  program.command("completion <shell>").description("Print a completion script: bash, zsh or fish")
    .addHelpText(
      "after",
      examplesHelp([
        "source <(plue completion bash)      # in ~/.bashrc",
        "source <(plue completion zsh)       # in ~/.zshrc, after compinit",
        "plue completion fish | source       # in ~/.config/fish/config.fish",
      ]),
    )
    .action(async (shell: string) => {
      const { completionScript } = await import("./completion.ts");
      new Terminal(io).print(completionScript(shell));
    });

  // The scripts of the shells call this.
  program.command("complete <shell> <line>", { hidden: true })
    .action(async (shell: string, line: string) => {
      const { complete } = await import("./completion.ts");
      const found = await complete(program, shell, line, io);
      if (found.length > 0) new Terminal(io).print(found.join("\n"));
    });

  return program;
}

function repeated(flags: string, description: string): Option {
  return new Option(flags, description)
    .argParser((value: string, before: readonly string[] = []) => [...before, value]);
}

function withSources(command: Command): Command {
  return command
    .addOption(repeated("-f, --from <source>", "the source of the tools (PLUE_TOOLS)"))
    .addOption(repeated("--header <name: value>", "a header for the source, such as a token"))
    .addOption(new Option("--base-url <url>", "the address of the API of an OpenAPI document"))
    .addOption(
      new Option("--pins <file>", "hide tools that changed since plue pins approved them"),
    );
}

function withSelection(command: Command): Command {
  for (const [key, { flag, text }] of Object.entries(VOCABULARY)) {
    const name = key as VocabularyName;
    const { shape, check } = valueKind(name);
    const option = shape === "list" ? repeated(flag, text) : new Option(flag, text);
    const isReader = (READER_FIELDS as readonly string[]).includes(name);
    option.helpGroup(isReader ? "Reader of the descriptions:" : "Selection:");
    if (name === "maxRisk") option.description += ` (${RISK_LEVELS.join(", ")})`;
    if (shape === "text") {
      option.argParser((value: string) => {
        try {
          return check("use it", value, "it");
        } catch (error) {
          throw new InvalidArgumentError(
            (error as Error).message.replace("Cannot use it: it", "It"),
          );
        }
      });
    }
    command.addOption(option);
  }
  return command;
}

function examplesHelp(examples: readonly string[]): string {
  return `\nExamples:\n${examples.map((line) => `  $ ${line}`).join("\n")}`;
}

function wholeNumber(text: string): number {
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number above 0.");
}
