// Texts of numbers: CSV, with whatever separates the cells.

// The first of them that a line has parts its cells; blanks do where it has none.
const SEPARATORS = [";", "\t", ","];
const QUOTED = /"[^"]*"/g;

const isNumber = (cell) => cell === "" || cell.toLowerCase() === "nan" || !Number.isNaN(Number(cell));

/** The cells of a line. What is between quotes is one cell; where semicolons part them, numbers may have commas. */
function cellsOf(line) {
  const quoted = [];
  const bare = line.replace(QUOTED, (cell) => `"${quoted.push(cell.slice(1, -1)) - 1}"`);
  const separator = SEPARATORS.find((one) => bare.includes(one));
  return bare
    .split(separator ?? /\s+/)
    .map((cell) => cell.trim().replace(/"(\d+)"/g, (_, place) => quoted[place]))
    .map((cell) => (separator === ";" && /^[-+]?\d*,\d+(e[-+]?\d+)?$/i.test(cell) ? cell.replace(",", ".") : cell));
}

/** The cells of each line that has some; what follows # is for people. */
function cellsIn(text) {
  const lines = text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line && !line.startsWith("#"));
  return lines.map(cellsOf);
}

/** Whether the first line has the names of columns: words, above numbers. */
function hasNames([names, row]) {
  return row !== undefined && names.some((cell, j) => !isNumber(cell) && row[j] !== undefined && isNumber(row[j]));
}

/** Rows { n, d, values, note, texts } of a text of numbers. A line of names is left out; `texts` are columns of words. */
export function parse(text) {
  const cells = cellsIn(text);
  const leftOut = [];
  if (hasNames(cells)) {
    cells.shift();
    leftOut.push("the first line, of names");
  }
  const width = cells[0]?.length ?? 0;
  const ragged = cells.findIndex((row) => row.length !== width);
  if (ragged >= 0) throw new Error(`Row ${ragged + 1} has ${cells[ragged].length} cells; the first has ${width}.`);
  const columns = [...Array(width).keys()].filter((j) => cells.some((row) => isNumber(row[j])));
  if (!columns.length) throw new Error("There are no rows of numbers.");
  const without = width - columns.length;
  if (without) leftOut.push(`${without} ${without === 1 ? "column" : "columns"} without numbers`);
  const values = new Float64Array(cells.length * columns.length);
  cells.forEach((row, i) =>
    columns.forEach((j, place) => {
      if (!isNumber(row[j])) throw new Error(`Row ${i + 1}, column ${j + 1}: “${row[j].slice(0, 40)}” is no number.`);
      values[i * columns.length + place] = row[j] === "" ? NaN : Number(row[j]);
    }),
  );
  const texts = [...Array(width).keys()].filter((j) => !columns.includes(j)).map((j) => cells.map((row) => row[j]));
  const note = leftOut.length ? `Left out: ${leftOut.join(", ")}.` : "";
  return { n: cells.length, d: columns.length, values, note, texts };
}
