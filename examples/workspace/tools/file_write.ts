/**
 * `file-write`: creates, overwrites or appends to a file, in a transaction.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { dirname } from "node:path";
import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext } from "../../../mod.ts";
import { resolveInside } from "../paths.ts";
import { answer, Refusal } from "../refusal.ts";
import { fileTransaction } from "../transactions.ts";
import { workspaceOf } from "../workspace.ts";

/** How much one call writes at most, in characters of `content`. */
const MAX_CONTENT_LENGTH = 1_000_000;

const Parameters = Type.Object({
  path: Type.String({ description: "The file, relative to the workspace.", minLength: 1 }),
  content: Type.String({ description: "What to write.", maxLength: MAX_CONTENT_LENGTH }),
  mode: Type.Optional(Type.Enum(["create", "overwrite", "append"], {
    description: "create fails if the file exists; overwrite replaces it, or creates it; append " +
      "adds at its end, or creates it.",
    default: "create",
  })),
  encoding: Type.Optional(
    Type.Enum(["utf8", "base64"], { description: "How content is written.", default: "utf8" }),
  ),
  createFolders: Type.Optional(
    Type.Boolean({ description: "Make the folders that are missing.", default: false }),
  ),
}, { additionalProperties: false });

const Returns = Type.Object({
  path: Type.String(),
  bytes: Type.Integer({ description: "How many bytes were written." }),
  created: Type.Boolean({ description: "The file was not there before." }),
});

/** The tool `file-write`. */
export const fileWrite: Tool = defineTool({
  name: "file-write",
  title: "Write a file",
  description: "Creates a file of the workspace, overwrites it or appends to it. A call that " +
    "fails changes nothing.",
  parameters: Parameters,
  returns: Returns,
  category: "filesystem",
  risk: "medium",
  tags: ["write", "file"],
  annotations: { destructiveHint: true },
  requiresTransaction: true,
  examples: [{
    description: "A new file in a new folder",
    input: { path: "notes/today.md", content: "# Today\n", createFolders: true },
  }],
  execute: (params, context) => answer(() => write(params, context)),
});

async function write(
  params: Static<typeof Parameters>,
  context: ToolContext,
): Promise<Static<typeof Returns>> {
  const { content, mode = "create", encoding = "utf8", createFolders = false } = params;
  const { root } = workspaceOf(context.services);
  const transaction = fileTransaction(context);
  const path = await resolveInside(root, params.path);
  const data = encoding === "base64" ? decodeBase64(content) : Buffer.from(content, "utf8");
  if (path.exists && mode === "create") {
    throw new Refusal(
      "invalid_arguments",
      `Cannot create "${path.shown}": it exists already; use mode "overwrite" or "append"`,
      { pointer: "/mode" },
    );
  }
  if (createFolders) await transaction.makeFolders(root, dirname(path.absolute), path.shown);
  else if (!path.exists) {
    // The transaction's message would not name the missing folder.
    const parent = await resolveInside(root, dirname(path.absolute));
    if (!parent.exists) {
      throw new Refusal(
        "invalid_arguments",
        `Cannot write "${path.shown}": its folder does not exist; set createFolders`,
        { pointer: "/createFolders" },
      );
    }
  }
  context.throwIfAborted();
  await transaction.write(path, data, mode === "append" ? "current" : "empty");
  return { path: path.relative, bytes: data.length, created: !path.exists };
}

function decodeBase64(text: string): Buffer {
  const data = Buffer.from(text, "base64");
  // Buffer skips characters that are not base64, and they would be missing from the file.
  if (data.toString("base64").replace(/=/g, "") !== text.replace(/[=\s]/g, "")) {
    throw new Refusal("invalid_arguments", "Cannot write the content: it is not base64", {
      pointer: "/content",
    });
  }
  return data;
}
