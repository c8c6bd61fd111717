// A plugin of the bundler that marks the declarations at the top level of a chunk as free of side
// effects. The package says so of its files (`"sideEffects": false`), and bundlers then omit unused
// files. In a chunk of many files they omit single declarations, but only if they can prove them to
// be pure.

import { RolldownMagicString } from "rolldown";
import { parseAst } from "rolldown/parseAst";

/**
 * The initialisers that esbuild, Rollup and Bun all take for pure. Everything else is called once
 * inside of a function whose call is marked as pure.
 */
const PURE = {
  Literal: () => true,
  Identifier: () => true,
  FunctionExpression: () => true,
  ArrowFunctionExpression: () => true,
  TemplateLiteral: ({ expressions }) => expressions.length === 0,
  UnaryExpression: ({ argument }) => argument.type === "Literal",
  ArrayExpression: ({ elements }) => elements.every((item) => item !== null && isPure(item)),
  ObjectExpression: ({ properties }) =>
    properties.every(({ type, computed, value }) =>
      type === "Property" && !computed && isPure(value)
    ),
  NewExpression: ({ callee, arguments: args }) =>
    /^(Weak)?(Map|Set)$/.test(callee.name) && args.length === 0,
  ClassExpression: ({ superClass, body }) =>
    (superClass === null || superClass.type === "Identifier") &&
    body.body.every((member) =>
      member.type !== "StaticBlock" && !member.computed && (member.decorators ?? []).length === 0 &&
      !(member.static && member.type === "PropertyDefinition" && member.value !== null &&
        !isPure(member.value))
    ),
};

function isPure(node) {
  return PURE[node.type]?.(node) ?? false;
}

export function pureDeclarations() {
  return {
    name: "pure-declarations",
    renderChunk(code, { fileName }) {
      const text = new RolldownMagicString(code, { filename: fileName });
      for (const statement of parseAst(code).body) {
        const declarations = statement.type === "VariableDeclaration" ? statement.declarations : [];
        for (const { id, init } of declarations) {
          if (id.type !== "Identifier" || init === null || isPure(init)) continue;
          text.appendRight(init.start, "/* @__PURE__ */ (() => (");
          // A class without a name has the name of the variable.
          if (init.type === "ClassExpression" && init.id === null) {
            text.appendLeft(init.start + "class".length, ` ${id.name}`);
          }
          text.appendLeft(init.end, "))()");
        }
      }
      return text.hasChanged()
        ? { code: text.toString(), map: text.generateMap({ hires: "boundary" }).toString() }
        : undefined;
    },
  };
}
