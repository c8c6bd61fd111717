/**
 * The port through which imports hold back tools that are not as they were when they were approved.
 * `toolPins` of `@plue/tools/pins` answers it.
 *
 * @module
 */

import type { Tool } from "../tool/mod.ts";
import type { ImportOptions, ImportResult } from "./import_options.ts";

/** Options of an import that holds back tools which are not as they were when approved. */
export type WithPins<Options extends ImportOptions> =
  & Omit<Options, "pins">
  & {
    /** What was approved: `toolPins` of `@plue/tools/pins`. */
    readonly pins: ImportPins;
  };

/**
 * How grave a change is, from harmless to grave:
 * - `wording`: only texts that describe;
 * - `narrowed`: less is accepted or answered than before, or the tool is gone;
 * - `widened`: more may be accepted or answered, or a tool is new, or it cannot be told;
 * - `risk_raised`: the hints are riskier, calls go elsewhere, or a text or a name looks like an attack.
 */
export type PinGrade = "wording" | "narrowed" | "widened" | "risk_raised";

/** One difference between the approved definition and the one that is offered now. */
export interface PinChange {
  /** Where, as a JSON Pointer into the definitions. */
  readonly path: string;
  readonly grade: PinGrade;
}

/** A tool that is held back: not listed, found, exported or called until it is approved. */
export interface HeldTool {
  readonly id: string;
  /**
   * What happened to it since the tools were approved. `unverified`: the pins cannot be read or
   * kept, so nothing is known.
   */
  readonly kind: "new" | "changed" | "renamed" | "vanished" | "unverified";
  /** The gravest of its changes. */
  readonly grade: PinGrade;
  /** The differences, of a tool that has changed. At most 100. */
  readonly changes: readonly PinChange[];
  /** The id that a renamed tool had. */
  readonly formerId?: string;
  /** The definition that was approved, if there is one. */
  readonly before?: Readonly<Record<string, unknown>>;
  /** The definition that is offered now, unless the tool has vanished. It is not to be trusted. */
  readonly after?: Readonly<Record<string, unknown>>;
  /** The digest of what is offered now; `""` if the tool has vanished. */
  readonly digest: string;
  /** The answer in a sentence, without any text of the source. */
  readonly reason: string;
  /**
   * Stands in for it in a registry, so that `explain` says why it is not seen. It holds nothing of
   * the source but the name.
   */
  readonly tool: Tool;
}

/** What an import with pins gives. */
export interface PinnedImport<Source extends string = string> extends ImportResult<Source> {
  /** The tools that are as they were when they were approved. */
  readonly tools: readonly Tool[];
  /** The others. */
  readonly held: readonly HeldTool[];
  /**
   * Lets tools in that are held back, as they are in this import, and keeps that.
   *
   * @param tools Their ids, or what `held` says of them. The latter is safe against a tool that has
   * changed again since then.
   * @returns The import with these tools let in.
   * @throws {TypeError} If a tool is not held back, or has changed since.
   * @throws {Error} If the pins cannot be read or kept.
   */
  approve(...tools: readonly (string | HeldTool)[]): Promise<PinnedImport<Source>>;
}

/** Compares imports with what was approved. */
export interface ImportPins {
  /**
   * Holds back what is not approved. Never rejects: what cannot be decided is held back.
   *
   * @param key Which import it is: its namespace.
   */
  check<Source extends string>(
    imported: ImportResult<Source>,
    key: string,
  ): Promise<PinnedImport<Source>>;
}
