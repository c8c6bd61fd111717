/**
 * Finds all functions of a host that plue calls: in the option types of the package's entries, and
 * in the types to which these refer. The compiler reads the types, so no hook is missed.
 */

import { join } from "node:path";
import {
  type Checker,
  SignatureKind,
  type Symbol,
  SymbolFlags,
  type Type,
} from "typescript/unstable/async";
import type { Exports } from "./public_names.ts";

const ROOT = join(import.meta.dirname, "../..");

/** Functions that are passed as arguments, not in options. */
const HANDED_IN = new Set([
  "StandardSchema",
  "SelectableToolHost",
  "DispatchContext",
  "ToolDefinition",
  "ToolPolicy",
  "PinStore",
  "CallStore",
  "ToolChangeListener",
]);

/** Collects the names of all hooks, such as `HttpOptions.onError`. */
export class HookFinder {
  readonly names: Set<string> = new Set();
  readonly #seen: Set<number> = new Set();
  readonly #places: Set<string> = new Set();

  /** Reads the exports of an entry of the package. */
  async readExports(exported: Exports, checker: Checker): Promise<void> {
    for (const [, symbol] of exported) {
      const isType = symbol.flags & (SymbolFlags.Interface | SymbolFlags.TypeAlias);
      if (isType && (/Options$/.test(symbol.name) || HANDED_IN.has(symbol.name))) {
        const type = await checker.getDeclaredTypeOfSymbol(symbol);
        await this.#read(type, symbol.name, checker);
      }
    }
  }

  /** Reads the type of a member, or of a list of options. */
  async #read(type: Type | undefined, name: string, checker: Checker): Promise<void> {
    // A recursive type, such as JSON, is read once for each name.
    const place = `${name} ${type?.id}`;
    if (type === undefined || this.#places.has(place)) return;
    this.#places.add(place);
    if (type.isUnionType() || type.isIntersectionType()) {
      for (const part of await type.getTypes()) await this.#read(part, name, checker);
      return;
    }
    if (await checker.isArrayLikeType(type) && type.isTypeReference()) {
      for (const item of await checker.getTypeArguments(type)) {
        await this.#read(item, name, checker);
      }
      return;
    }
    const signatures = await checker.getSignaturesOfType(type, SignatureKind.Call);
    if (signatures.length > 0) this.names.add(name);
    // The result of a hook may have hooks too: a span of telemetry, the check of a schema.
    for (const signature of signatures) {
      await this.#read(await checker.getReturnTypeOfSignature(signature), `${name}()`, checker);
    }
    if (this.#seen.has(type.id)) return;
    this.#seen.add(type.id);
    if (type.isTypeReference() && isOf(await type.getSymbol(), "Promise")) {
      for (const settled of await checker.getTypeArguments(type)) {
        await this.#read(settled, name, checker);
      }
      return;
    }
    if (!isOwn(await type.getSymbol())) return;
    for (const member of await checker.getPropertiesOfType(type)) {
      const parent = await member.getParent();
      if (parent !== undefined && !isOwn(parent)) continue;
      const isNamed = parent !== undefined && !parent.name.startsWith("__");
      const owner = isNamed ? parent.name : (await type.getAliasSymbol())?.name ?? name;
      const value = await checker.getTypeOfSymbol(member);
      await this.#read(value, `${owner}.${member.name}`, checker);
    }
  }
}

function isOf(symbol: Symbol | undefined, name: string): boolean {
  return symbol?.name === name;
}

/**
 * Returns true for a type of plue that is not a class: plue creates the objects of its classes
 * itself. A type parameter has the members of its constraint, such as a string. /
 */
function isOwn(symbol: Symbol | undefined): boolean {
  const { declarations = [], flags = 0 } = symbol ?? {};
  return declarations.length > 0 &&
    (flags & (SymbolFlags.Class | SymbolFlags.TypeParameter)) === 0 &&
    declarations.every(({ path }) => path.startsWith(join(ROOT, "src")));
}
