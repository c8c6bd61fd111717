/** A file of settings in JSON or YAML, with the line and the column of each value for messages. */

import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type YAMLMap,
} from "yaml";
import { pointerSteps } from "../../schema/mod.ts";
import { describeThrown } from "../../tool/mod.ts";
import { type CommandError, usageError } from "../terminal.ts";

export class SettingsDocument {
  readonly value: unknown;
  readonly #path: string;
  readonly #document: Document;
  readonly #lines = new LineCounter();

  /** @throws {CommandError} If the text is not JSON or YAML. The message has the line and the column. */
  constructor(path: string, text: string) {
    this.#path = path;
    this.#document = parseDocument(text, {
      ...{ lineCounter: this.#lines, prettyErrors: false, logLevel: "silent" },
      // The time of the parser's own check grows with the square of the number of names.
      uniqueKeys: false,
    });
    for (const { message, pos: [start] } of this.#document.errors) {
      // The message may end with a part of the text, which may be a secret.
      throw this.#errorAt(start, `it is not valid JSON: ${message.replace(/[:\s]*".*$/s, "")}`);
    }
    visit(this.#document, {
      Map: (_, map) => this.#rejectSameNames(map),
      Scalar: (_, { type, source = "", range }) => {
        // In YAML, the lines after it are a part of this text.
        if (type !== "PLAIN" || !/^\/[/*]/.test(source)) return;
        throw this.#errorAt(range?.[0] ?? 0, `a comment begins with "#", and "//" needs quotes`);
      },
    });
    this.value = this.attempt("", () => this.#document.toJS());
  }

  /** @throws {CommandError} About the value at a JSON Pointer, or about the nearest value around it. */
  reject(pointer: string, why: string, cause?: unknown): never {
    throw this.#errorAt(this.#positionOf(pointer), why, cause);
  }

  /** Returns the result of a function. An error gets the position of a value. */
  attempt<Result>(pointer: string, make: () => Result): Result {
    try {
      return make();
    } catch (cause) {
      return this.reject(pointer, describeThrown(cause, 2_000), cause);
    }
  }

  /** Returns the file, the line and the column of a value, or of the nearest value around it. */
  place(pointer: string): string {
    return this.#placeAt(this.#positionOf(pointer));
  }

  #positionOf(pointer: string): number {
    let node: unknown = this.#document.contents;
    let position = 0;
    for (const step of pointerSteps(pointer)) {
      const pair = isMap(node)
        ? node.items.find(({ key }) => isScalar(key) && String(key.value) === step)
        : undefined;
      const item = isSeq(node) ? node.items[Number(step)] : undefined;
      const found = (pair?.key ?? item) as { readonly range?: readonly number[] } | undefined;
      if (found === undefined) break;
      position = found.range?.[0] ?? position;
      node = pair?.value ?? item;
    }
    return position;
  }

  #rejectSameNames({ items }: YAMLMap): void {
    const names = new Set<string>();
    for (const { key } of items) {
      if (!isScalar(key)) continue;
      const name = String(key.value);
      if (names.has(name)) {
        throw this.#errorAt(key.range?.[0] ?? 0, "another member has this name; remove one");
      }
      names.add(name);
    }
  }

  #errorAt(position: number, why: string, cause?: unknown): CommandError {
    return usageError(`Cannot use ${this.#placeAt(position)}: ${why}`, { cause });
  }

  #placeAt(position: number): string {
    const { line, col } = this.#lines.linePos(position);
    return `${this.#path}:${line}:${col}`;
  }
}
