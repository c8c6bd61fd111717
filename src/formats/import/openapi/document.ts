/**
 * An OpenAPI document: its version, and where its references lead. Nothing outside of it is read.
 *
 * @module
 */

import { pointerStep } from "../../../tool/mod.ts";
import { fragmentSteps } from "../../transform/references.ts";
import { isMembers, type Members, textIn } from "../fields.ts";

/** How many references in a row are followed before it is taken for a circle. */
const MAX_HOPS = 32;

/** A part of a document, and where it stands. */
export interface Located {
  readonly value: Members;
  /** A JSON Pointer. */
  readonly path: string;
}

/** An OpenAPI document. */
export class OpenApiDocument {
  readonly root: Members;
  /** Whether schemas are written as OpenAPI 3.0 has them; from 3.1 on they are JSON Schema. */
  readonly is30: boolean;
  readonly #charge: (part: unknown) => void;

  /** @param charge Is told of each part that a reference leads to. */
  constructor(root: Members, charge: (part: unknown) => void) {
    this.root = root;
    this.#charge = charge;
    this.is30 = (textIn(root, "openapi") ?? "").startsWith("3.0");
  }

  /** What a local reference leads to; `undefined` if it leads nowhere, or to another document. */
  at(ref: string): { readonly value: unknown; readonly path: string } | undefined {
    const steps = fragmentSteps(ref);
    if (steps === undefined) return undefined;
    let value: unknown = this.root;
    for (const step of steps) {
      if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) {
        return undefined;
      }
      value = (value as Members)[step];
    }
    return { value, path: steps.map(pointerStep).join("") };
  }

  /** An object of the document, through references to it. */
  resolve(value: unknown, path: string): Located | undefined {
    let at: { readonly value: unknown; readonly path: string } | undefined = { value, path };
    for (let hops = 0; hops < MAX_HOPS; hops++) {
      if (at === undefined || !isMembers(at.value)) return undefined;
      const ref = at.value["$ref"];
      if (typeof ref !== "string") return { value: at.value, path: at.path };
      at = this.at(ref);
      this.#charge(at?.value);
    }
    return undefined;
  }
}
