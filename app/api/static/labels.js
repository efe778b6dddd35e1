// Rows and labels for a recommendation: a column of the rows, of a dataset, or a list that was typed.

import { lists } from "./rows.js";
import { Problem } from "./service.js";

const MOST_ROWS = 2000;

/** What may hold the labels of these rows: pairs of a value and what is shown. */
export const sources = (rows) => [
  ["", "none"],
  ["column", "a column of these rows"],
  ...(rows?.texts?.length ? [["text", "the column of words"]] : []),
  ...(rows?.dataset ? [["dataset", "the first column of another dataset"]] : []),
  ["list", "a list"],
];

/** Numbers of rows, drawn at random with a seed of its own where there are too many to send. */
function drawn(n) {
  const places = Array.from({ length: n }, (_, i) => i);
  let state = 1;
  for (let i = 0; i < Math.min(n - 1, MOST_ROWS) && n > MOST_ROWS; i += 1) {
    state = (state * 48271) % 2147483647; // the minimal standard generator of Park and Miller
    const j = i + (state % (n - i));
    [places[i], places[j]] = [places[j], places[i]];
  }
  return places.slice(0, MOST_ROWS).sort((one, other) => one - other);
}

/** What is sent of the rows, as a sentence; null where all are sent. */
export const share = (rows) =>
  rows && !rows.dataset && rows.n > MOST_ROWS
    ? `${MOST_ROWS} of your ${rows.n} rows are sent, drawn at random. Keep them as a dataset to use all.`
    : null;

/** The label that a text stands for: all of a list are numbers, or none is. */
function typed(text) {
  const labels = text.split(/[\n,;]+/).map((one) => one.trim()).filter(Boolean);
  const found = labels.map(Number);
  return found.some(Number.isNaN) ? labels : found;
}

function refuse(title, detail) {
  throw new Problem({ title, detail, errors: [{ pointer: "/y", detail }] });
}

/** The members of a request that have the rows and, as the form says, their labels. */
export function labelled(rows, { labels, label_column: column, label_list: list, label_dataset: dataset }) {
  const place = Number(column || rows.d - 1);
  if (rows.dataset) {
    const y = { column: { column: place }, list: list && typed(list), dataset: { dataset } }[labels];
    return { dataset: rows.dataset, ...(y ? { y } : {}) };
  }
  const every = drawn(rows.n);
  const all = lists(rows);
  const vectors = every.map((i) => all[i]);
  const of = (given) => {
    if (given.length !== rows.n) refuse("Labels are missing", `${rows.n} rows want as many labels, got ${given.length}`);
    return { vectors, y: every.map((i) => given[i]) };
  };
  if (labels === "list") return of(typed(list));
  if (labels === "text" && rows.texts?.length) return of(rows.texts[0]);
  if (labels !== "column") return { vectors };
  if (!(Number.isInteger(place) && place >= 0 && place < rows.d)) {
    refuse("There is no such column", `the rows have columns 0 to ${rows.d - 1}, got ${column}`);
  }
  return { vectors: vectors.map((row) => row.toSpliced(place, 1)), y: vectors.map((row) => row[place]) };
}
