// Labels of rows: a column of the rows, or a list that was typed.

import { lists } from "./rows.js";
import { Problem } from "./service.js";

const MOST_ROWS = 2000;

/** What may hold the labels of these rows: pairs of a value and what is shown. */
export const sources = (rows) => [
  ["", "none"],
  ["column", "a column of these rows"],
  ...(rows?.texts?.length ? [["text", "the column of words"]] : []),
  ["list", "a list"],
];

/** The label that a text stands for: all of a list are numbers, or none is. */
function typed(text) {
  const labels = text.split(/[\n,;]+/).map((one) => one.trim()).filter(Boolean);
  const found = labels.map(Number);
  return found.some(Number.isNaN) ? labels : found;
}

/** The members of a request that have the rows and, as the form says, their labels. */
export function labelled(rows, { labels, label_column: column, label_list: list }) {
  const of = rows.dataset ? { dataset: rows.dataset } : { vectors: lists(rows, MOST_ROWS) };
  if (labels === "list") return { ...of, y: rows.dataset ? typed(list) : typed(list).slice(0, MOST_ROWS) };
  if (labels === "text" && rows.texts?.length) return { ...of, y: rows.texts[0].slice(0, MOST_ROWS) };
  if (labels !== "column") return of;
  const place = Number(column || rows.d - 1);
  if (rows.dataset) return { ...of, y: { column: place } };
  if (!(Number.isInteger(place) && place >= 0 && place < rows.d)) {
    const detail = `the rows have columns 0 to ${rows.d - 1}, got ${column}`;
    throw new Problem({ title: "There is no such column", detail, errors: [{ pointer: "/y", detail }] });
  }
  return { vectors: of.vectors.map((row) => row.toSpliced(place, 1)), y: of.vectors.map((row) => row[place]) };
}
