/**
 * The part of plue inside of QuickJS: the globals `tools`, `console` and `ToolError`. The host does
 * not trust its output, because a program can change its globals. `Date` is constant and there is
 * no randomness: a resumed program repeats exactly, and cannot measure the time of others.
 */

/**
 * Evaluates to the functions of the host. `take` returns the end of the program in one line, and two
 * lines for each new call: the name and the arguments. All lines are JSON, in which no line feed is
 * possible. Promises and JSON.stringify would call `hidden` names.
 */
export const PRELUDE = `(() => {
  const { parse, stringify } = JSON;
  const [NativePromise, NativeProxy, text] = [Promise, Proxy, String];
  const waiting = [];
  const log = [];
  let limits, end, calls = "", count = 0, logged = 0;

  class ToolError extends Error {
    name = "ToolError";
    constructor(code, message) {
      super(message);
      this.code = code;
    }
  }
  const call = (name, args) => new NativePromise((resolve, reject) => {
    const json = stringify(args === undefined ? {} : args) ?? "null";
    if (count >= limits.calls) {
      const why = ": the program has made " + count + " calls, and more are not allowed";
      return reject(new ToolError("overloaded", "Cannot call " + name + why));
    }
    waiting[count++] = { resolve, reject };
    calls += "\\n" + name + "\\n" + json;
  });
  const hidden = { __proto__: null, then: true, toJSON: true };
  const pathTo = (id, separator) => {
    const name = stringify(id);
    const paths = { __proto__: null };
    const get = (_, key) => {
      const known = paths[key];
      if (known || typeof key === "symbol" || hidden[key]) return known;
      return paths[key] = pathTo(id + separator + key, separator === "" ? ":" : ".");
    };
    return new NativeProxy(() => {}, { get, apply: (_, __, args) => call(name, args[0]) });
  };

  const write = (...values) => {
    const line = values.map((value) => {
      try {
        return typeof value === "string" ? value : stringify(value) ?? text(value);
      } catch {
        return typeof value;
      }
    }).join(" ");
    const room = limits.log - logged;
    logged += line.length + 1;
    if (room > 0) log.push(line.length > room ? line.slice(0, room) + "… [truncated]" : line);
  };
  const console = { debug: write, error: write, info: write, log: write, warn: write };
  Object.assign(globalThis, { tools: pathTo("", ""), console, ToolError });
  Math.random = () => {
    throw new Error("Cannot use Math.random(): a program must repeat exactly when it resumes");
  };

  const fail = (error) => {
    let failed = ["Error", "the error cannot be read", ""];
    try {
      const isError = typeof error === "object" && error !== null;
      const { name = "", message = stringify(error), stack = "" } = isError ? error : { message: text(error) };
      failed = [text(name).slice(0, 200), text(message).slice(0, 2000), text(stack).slice(0, 2000)];
    } catch {}
    end ??= { failed };
  };
  const finish = (value) => {
    const json = stringify(value === undefined ? null : value);
    if (json === undefined) throw new TypeError("Cannot return a " + typeof value + ": return JSON");
    if (json.length > limits.output) {
      const size = json.length + " characters of JSON, and " + limits.output + " are allowed";
      throw new RangeError("Cannot return the value: it has " + size + "; return less of it");
    }
    end ??= { value: json };
  };
  const run = (json, program) => {
    limits = parse(json);
    program().then(finish).catch(fail);
  };
  const settle = (json) => {
    const { index, ok, value } = parse(json);
    const { resolve, reject } = waiting[index];
    waiting[index] = undefined;
    if (ok) resolve(value);
    else reject(new ToolError(value.code, value.message));
  };
  const take = () => {
    const taken = (end ? stringify({ __proto__: null, ...end, log }) : "") + calls;
    calls = "";
    return taken;
  };
  return { __proto__: null, run, fail, settle, take };
})()`;
