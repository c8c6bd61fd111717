/** Draws the tokens of ten tasks in three ways as SVG, for light and dark mode. */

/** A task, and its tokens in each way. */
export interface TaskTokens {
  readonly task: string;
  readonly tokens: Readonly<Record<string, number>>;
}

const WIDTH = 760;
const LEFT = 290;
const RIGHT = WIDTH - 30;
const TOP = 56;
const ROW = 26;
/** The axis is logarithmic, from 1,000 to 10,000,000 tokens. */
const TICKS = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];

export function drawTokens(rows: readonly TaskTokens[]): string {
  const bottom = TOP + ROW * rows.length;
  const ways = Object.keys(rows[0]?.tokens ?? {});
  const text = (x: number, y: number, content: string, rest = ""): string =>
    `<text x="${x}" y="${y}"${rest}>${content}</text>`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${bottom + 44}" role="img" ` +
    'aria-label="Tokens of ten tasks in three ways">',
    `<style>
  svg { --ink: #1f2328; --grid: #d8dee4; --w0: #bc4c00; --w1: #0969da; --w2: #1a7f37; background: #fff }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --grid: #30363d; --w0: #f0883e; --w1: #4493f8; --w2: #3fb950; background: #0d1117 }
  }
  text { font: 12px system-ui, sans-serif; fill: var(--ink) }
  line { stroke: var(--grid) }
</style>`,
    ...ways.flatMap((way, index) => [
      `<circle cx="${LEFT + 4 + 130 * index}" cy="20" r="5" fill="var(--w${index})"/>`,
      text(LEFT + 16 + 130 * index, 24, way),
    ]),
    ...TICKS.flatMap((tick) => [
      `<line x1="${xOf(tick)}" y1="${TOP - 16}" x2="${xOf(tick)}" y2="${bottom}"/>`,
      text(xOf(tick), bottom + 18, tick.toLocaleString("en"), ' text-anchor="middle"'),
    ]),
    text(LEFT, bottom + 36, "tokens that the model reads, on a logarithmic axis"),
    ...rows.flatMap(({ task, tokens }, row) => {
      const y = TOP + ROW * row;
      return [
        text(LEFT - 16, y + 4, task, ' text-anchor="end"'),
        ...ways.map((way, index) =>
          `<circle cx="${xOf(tokens[way] ?? 0)}" cy="${y}" r="5" fill="var(--w${index})"/>`
        ),
      ];
    }),
    "</svg>",
    "",
  ].join("\n");
}

function xOf(tokens: number): number {
  const [from = 1, to = 1] = [TICKS[0], TICKS.at(-1)];
  const share = Math.log(Math.max(tokens, from) / from) / Math.log(to / from);
  // Rounded, because engines differ in the last bits of a logarithm.
  return Math.round(10 * (LEFT + share * (RIGHT - LEFT))) / 10;
}
