// How far a map is from its kernel: the diagnostics of the catalogue, each with its options, picture and numbers.

import { Fields } from "./fields.js";
import { measure, Measured, Waiting } from "./measured.js";
import { Loading, Notice } from "./parts.js";
import { lists, Rows } from "./rows.js";
import { built } from "./schema.js";
import { askJson, pathOf } from "./service.js";
import { html, useEffect, useLoaded, useState, useWork } from "./view.js";
import { heading } from "./words.js";

const MOST_ROWS = 500;
const MOST_PAIRS = 50;

const TITLES = {
  "max-error": "Error curve",
  "box-discrepancy": "Box discrepancy",
  gram: "Gram matrix of your rows",
  variance: "Variance",
  collisions: "Collisions",
};
const NOTES = {
  "max-error": "The largest error of the kernel and the root of the mean square one, by how far two vectors are apart.",
  "box-discrepancy": "How evenly the frequencies lie, against as many that are drawn at random.",
  gram: "The kernel matrix by the map against the exact one, beside Monte Carlo maps of the same size.",
  variance:
    "How much estimates vary over seeds, by formulas and as counted: of rows of the first half with rows of the second.",
  collisions: "How often codes of your rows agree, against the exact kernel.",
};
/** Whether a diagnostic has no answer without rows. */
const wantsRows = ({ takes }) => takes === "rows" || takes === "optional_pairs";

// Rows of unit length, as this kernel compares them, are no farther apart.
const FARTHEST = { correlation_rbf: 2 };

/** A length over which the kernel falls off, as far as it has one. */
function reach({ kernel }) {
  if (kernel.kind === "correlation_rbf") return 1 / Math.sqrt(kernel.gamma);
  const scales = [kernel.length_scale ?? 1].flat().filter(Number.isFinite);
  return scales.length ? scales.reduce((sum, one) => sum + one, 0) / scales.length : 1;
}

const round = (number) => String(Number(number.toPrecision(3)));

/** Options to begin with. */
function start(kind, spec) {
  const scale = reach(spec);
  if (kind === "max-error") {
    const farthest = FARTHEST[spec.kernel.kind] ?? Infinity;
    const diameters = [0.5, 1, 2, 4, 8].map((times) => round(Math.min(farthest, times * scale)));
    return { diameters: [...new Set(diameters)].join(", ") };
  }
  if (kind === "box-discrepancy") return { box: round(2 * scale) };
  return {};
}

/** The members of a body that hold the rows, as a diagnostic takes them. */
function rowsIn({ takes }, rows) {
  if (!rows || takes === "nothing") return {};
  if (takes === "optional_rows") return rows.dataset ? { dataset: rows.dataset } : {};
  if (takes === "optional_pairs") return pairsIn(rows);
  if (rows.dataset) return { dataset: rows.dataset, ...(rows.n > MOST_ROWS ? { rows: MOST_ROWS } : {}) };
  return { vectors: lists(rows, MOST_ROWS) };
}

/** Pairs of rows: of a dataset, two samples. */
function pairsIn(rows) {
  const half = Math.min(MOST_PAIRS, Math.floor(rows.n / 2));
  if (rows.dataset) {
    const [x, y] = [0, 1].map((seed) => ({ dataset: rows.dataset, rows: half, seed }));
    return { x, y };
  }
  const every = lists(rows, 2 * half);
  return { x: every.slice(0, half), y: every.slice(half) };
}

export function Errors({ map }) {
  const catalog = useLoaded((signal) => askJson("v1/catalog", { signal }), []);
  const [rows, setRows] = useState(null);
  if (catalog.problem) return html`<${Notice} problem=${catalog.problem} again=${catalog.again} />`;
  if (!catalog.value) return html`<${Loading} what="Loading the diagnostics" />`;
  const { diagnostics } = catalog.value;
  const own = map.family.diagnostics;
  const kinds = [...new Set([...Object.keys(TITLES), ...own])].filter((kind) => own.includes(kind));
  const card = (kind) =>
    html`<${Diagnostic} map=${map} kind=${kind} schema=${diagnostics[kind]} rows=${rows} key=${kind} />`;
  return html`
    <div class="cards">${kinds.filter((kind) => !wantsRows(diagnostics[kind])).map(card)}</div>
    <section><h2>On your rows</h2><${Rows} onRows=${setRows} width=${map.spec.input_dim} /></section>
    <div class="cards">${kinds.filter((kind) => wantsRows(diagnostics[kind])).map(card)}</div>`;
}

function Diagnostic({ map, kind, schema, rows }) {
  const [values, setValues] = useState(() => start(kind, map.spec));
  const [job, setJob] = useState(null);
  const [{ value, problem, busy }, begin] = useWork();
  const wrong = Object.fromEntries((problem?.errors ?? []).map((one) => [one.pointer, one.detail]));
  const run = (event) => {
    event?.preventDefault();
    setJob(null);
    begin((signal) => {
      const body = { ...built(schema, values), ...rowsIn(schema, rows) };
      if (body.dataset && kind === "box-discrepancy") delete body.box;
      return measure(pathOf("maps", map.name, "diagnostics", kind), body, { heard: setJob, signal });
    });
  };
  // What wants no rows and takes a moment is there to look at.
  useEffect(() => {
    if (kind === "max-error") run();
  }, []);
  const wanting = wantsRows(schema) && !rows;
  const title = TITLES[kind] ?? heading(kind);
  return html`<section class=${`card ${kind === "gram" ? "wide" : ""}`}><h2>${title}</h2><p>${NOTES[kind] ?? schema.description}</p>
    <form onSubmit=${run}>
      <details open=${false}><summary>Options</summary>
        <${Fields} schema=${schema} values=${values} onChange=${setValues} wrong=${wrong} pointer="" /></details>
      <div class="actions">
        <button disabled=${busy || wanting} aria-label=${`Measure: ${title}`}>
          ${busy ? "Measuring …" : "Measure"}</button>
        ${wanting && html`<span class="note">It wants rows.</span>`}</div>
    </form>
    ${busy && html`<${Waiting} job=${job} />`}
    <${Notice} problem=${problem} />
    <${Measured} value=${value} label=${`${title} of ${map.name}`} />
  </section>`;
}
