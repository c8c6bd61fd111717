// A table for the terminal: columns as wide as their widest cell, numbers to the right.

/** Lays out rows of cells; the first column is text, the others are numbers. */
export function table(header, rows) {
  const lines = [header, ...rows];
  const widths = header.map((_, column) =>
    Math.max(...lines.map((line) => String(line[column] ?? "").length))
  );
  const layOut = (line) =>
    line.map((cell, column) =>
      column === 0 ? String(cell).padEnd(widths[0]) : String(cell).padStart(widths[column])
    ).join("  ").trimEnd();
  return [layOut(header), widths.map((width) => "-".repeat(width)).join("  "), ...rows.map(layOut)]
    .join("\n");
}
