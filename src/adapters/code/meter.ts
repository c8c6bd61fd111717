/**
 * Counts the steps of a WebAssembly module. QuickJS calls its interrupt handler only between
 * instructions of a program. Without the counter, a single built-in operation, such as a search in
 * a large text, could occupy the thread for hours.
 */

import { fail } from "../../tool/mod.ts";

const invalid = (): never =>
  fail("count the loops of the module", "it is not quickjs.wasm of a known quickjs-wasi");

/** The imported interrupt handler, which returns 1 to end the program. */
const HANDLER = "host_interrupt";
/**
 * The number of steps between two calls of the handler. As a constant of an instruction, a number
 * from 8,192 would need the sign bit of LEB128.
 */
const STEPS = 8_000;
/** The steps of an instruction that copies or fills memory, and of each 64 bytes. At most 63. */
const RANGE_STEPS = 50;
const RANGE_SHIFT = 6;

const SECTION = { imports: 2, globals: 6, code: 10 } as const;
const OP = {
  ...{ unreachable: 0x00, loop: 0x03, if: 0x04, end: 0x0b, brTable: 0x0e, call: 0x10 },
  ...{ typedSelect: 0x1c, globalGet: 0x23, globalSet: 0x24, const32: 0x41, constF32: 0x43 },
  ...{ constF64: 0x44, lessOrEqual: 0x4c, add: 0x6a, subtract: 0x6b, shiftRight: 0x76 },
  ...{ prefix: 0xfc, copy: 10, fill: 11 },
} as const;
const [I32, NO_RESULT] = [0x7f, 0x40];

const UNKNOWN = 255;
/** The number of LEB128 immediates of ranges of instructions. Other instructions have none. */
const IMMEDIATES: readonly (readonly [from: number, to: number, count: number])[] = [
  ...[[0x02, 0x04, 1], [0x0c, 0x0d, 1], [0x10, 0x12, 1], [0x11, 0x11, 2], [0x13, 0x13, 2]] as const,
  ...[[0x20, 0x26, 1], [0x28, 0x3e, 2], [0x3f, 0x42, 1], [0xd0, 0xd0, 1], [0xd2, 0xd2, 1]] as const,
  // Exceptions and SIMD have immediates of other forms.
  ...[[0x06, 0x0a, UNKNOWN], [0x14, 0x19, UNKNOWN], [0xd3, 0xfb, UNKNOWN]] as const,
  [0xfd, 0xff, UNKNOWN],
];
/** The number of immediates of each instruction with the prefix 0xfc, from `memory.init` (8) on. */
const PREFIXED = [2, 1, 2, 1, 2, 1, 2, 1, 1, 1];

/**
 * Returns `quickjs.wasm` with a counter in its loops, so that `quickJs` can end a program within a
 * single built-in operation. `quickJs` does this itself if it receives bytes. On Cloudflare Workers,
 * which only load compiled modules, write the returned bytes to a file before you deploy, and import
 * that file.
 *
 * @example Usage
 * ```ts
 * import { readFile, writeFile } from "node:fs/promises";
 * import { meterModule } from "@plue/tools/code";
 *
 * export async function build(): Promise<void> {
 *   const file = new URL(import.meta.resolve("quickjs-wasi/quickjs.wasm"));
 *   await writeFile("quickjs.metered.wasm", meterModule(await readFile(file)));
 * }
 * ```
 *
 * @param module The bytes of `quickjs.wasm`.
 * @throws {TypeError} If they are not a module of QuickJS.
 */
export function meterModule(module: Uint8Array): Uint8Array<ArrayBuffer> {
  const reader = new Reader(module);
  const parts: ArrayLike<number>[] = [reader.take(8)];
  let [handler, counter] = [-1, -1];
  while (reader.at < module.length) {
    const id = reader.byte();
    const section = new Reader(reader.take(reader.number()));
    let content: ArrayLike<number> = section.bytes;
    if (id === SECTION.imports) handler = findHandler(section);
    else if (id === SECTION.globals) {
      counter = section.number();
      const global = [I32, 1, OP.const32, 0, OP.end];
      content = join([leb(counter + 2), section.bytes.subarray(section.at), global, global]);
    } else if (id === SECTION.code) {
      if (Math.min(handler, counter) < 0) invalid();
      content = meterCode(section, leb(handler), leb(counter), leb(counter + 1));
    }
    parts.push([id, ...leb(content.length)], content);
  }
  return join(parts);
}

function findHandler(section: Reader): number {
  const count = section.number();
  for (let index = 0; index < count; index++) {
    section.take(section.number());
    const name = new TextDecoder().decode(section.take(section.number()));
    if (section.byte() !== 0) invalid();
    section.number();
    if (name === HANDLER) return index;
  }
  return -1;
}

function meterCode(
  section: Reader,
  handler: readonly number[],
  counter: readonly number[],
  length: readonly number[],
): Uint8Array {
  const [getCounter, setCounter] = [[OP.globalGet, ...counter], [OP.globalSet, ...counter]];
  const step = [
    ...[...getCounter, OP.const32, 1, OP.subtract, ...setCounter],
    ...[...getCounter, OP.const32, 0, OP.lessOrEqual, OP.if, NO_RESULT],
    ...[OP.call, ...handler, OP.if, NO_RESULT, OP.unreachable, OP.end],
    ...[...getCounter, OP.const32, ...leb(STEPS), OP.add, ...setCounter, OP.end],
  ];
  // The length of the range is the uppermost operand.
  const range = [
    ...[OP.globalSet, ...length, ...getCounter, OP.const32, RANGE_STEPS, OP.subtract],
    ...[OP.globalGet, ...length, OP.const32, RANGE_SHIFT, OP.shiftRight, OP.subtract],
    ...[...setCounter, OP.globalGet, ...length],
  ];
  const immediates = new Uint8Array(256);
  for (const [from, to, count] of IMMEDIATES) immediates.fill(count, from, to + 1);
  const count = section.number();
  const parts: ArrayLike<number>[] = [leb(count)];
  for (let index = 0; index < count; index++) {
    const body = meterFunction(new Reader(section.take(section.number())), immediates, step, range);
    parts.push(leb(body.length), body);
  }
  return join(parts);
}

/** Adds `step` to each loop of a function, and `range` before instructions on ranges of memory. */
function meterFunction(
  body: Reader,
  immediates: Uint8Array,
  step: readonly number[],
  range: readonly number[],
): Uint8Array {
  const parts: ArrayLike<number>[] = [];
  let copied = 0;
  const insert = (code: readonly number[], at: number): void => {
    parts.push(body.bytes.subarray(copied, at), code);
    copied = at;
  };
  for (let locals = body.number(); locals > 0; locals--) body.skip(2);
  while (body.at < body.bytes.length) {
    const from = body.at;
    const opcode = body.byte();
    const count = immediates[opcode] as number;
    if (count === UNKNOWN) invalid();
    body.skip(count);
    if (opcode === OP.loop) insert(step, body.at);
    else if (opcode === OP.brTable) body.skip(body.number() + 1);
    else if (opcode === OP.typedSelect) body.skip(body.number());
    else if (opcode === OP.constF32) body.take(4);
    else if (opcode === OP.constF64) body.take(8);
    else if (opcode === OP.prefix) {
      const operation = body.number();
      // The operations before `memory.init` are conversions, without immediates.
      if (operation >= 8) body.skip(PREFIXED[operation - 8] ?? invalid());
      if (operation === OP.copy || operation === OP.fill) insert(range, from);
    }
  }
  insert([], body.at);
  return join(parts);
}

class Reader {
  readonly bytes: Uint8Array;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  byte(): number {
    return this.bytes[this.at++] ?? invalid();
  }

  number(): number {
    let value = 0;
    for (let factor = 1;; factor *= 128) {
      const byte = this.byte();
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  }

  skip(count: number): void {
    for (; count > 0; count--) while (this.byte() >= 128);
  }

  take(length: number): Uint8Array {
    return this.bytes.subarray(this.at, this.at += length);
  }
}

function leb(value: number): readonly number[] {
  return value < 128 ? [value] : [value % 128 + 128, ...leb(Math.floor(value / 128))];
}

function join(parts: readonly ArrayLike<number>[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
