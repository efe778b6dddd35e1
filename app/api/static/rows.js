// Rows to look at: pasted, dropped, chosen from a file, or of a dataset of the service.

import { parse } from "./csv.js";
import { read, write } from "./npy.js";
import { Notice } from "./parts.js";
import { askJson } from "./service.js";
import { html, useEffect, useLoaded, useState } from "./view.js";
import { count, counted } from "./words.js";

// The rows of this tab: one view shows what another was given.
let kept = { text: "" };

/** The rows as lists; null where a number is missing. */
export function lists({ n, d, values }, most = Infinity) {
  const list = (i) => Array.from(values.subarray(i * d, (i + 1) * d), (one) => (Number.isNaN(one) ? null : one));
  return Array.from({ length: Math.min(n, most) }, (_, i) => list(i));
}

/** The first rows. */
export const first = (rows, most) => ({
  ...rows,
  n: Math.min(rows.n, most),
  values: rows.values.subarray(0, Math.min(rows.n, most) * rows.d),
});

/** How to send chosen rows as the vectors of a request: rows as a .npy, a dataset by its name. */
export const sent = (chosen, most = Infinity) =>
  chosen.dataset ? { dataset: chosen.dataset, ...(most < chosen.n ? { rows: most } : {}) } : write(first(chosen, most));

async function ofFile(file) {
  if (file.name.toLowerCase().endsWith(".npy")) return read(new Uint8Array(await file.arrayBuffer()));
  return parse(await file.text());
}

/** A field for rows. `onRows` is given { n, d, values }, or { dataset, n, d }, or null. */
export function Rows({ onRows, width }) {
  const [text, setText] = useState(kept.text);
  const [state, setState] = useState(kept.state ?? {});
  const [over, setOver] = useState(false);
  const datasets = useLoaded((signal) => askJson("v1/datasets?limit=1000", { signal }), []);
  const use = (next, shown) => {
    kept = { text: shown, state: next };
    setText(shown);
    setState(next);
  };
  useEffect(() => onRows(state.rows ?? null), [state.rows]);
  const typed = (shown) => {
    try {
      use(shown.trim() ? { rows: parse(shown) } : {}, shown);
    } catch (error) {
      use({ error: error.message }, shown);
    }
  };
  const take = async (file) => {
    if (!file) return;
    try {
      const rows = await ofFile(file);
      use({ rows, name: file.name }, "");
    } catch (error) {
      use({ error: `${file.name}: ${error.message}` }, "");
    }
  };
  const dropped = (event) => {
    event.preventDefault();
    setOver(false);
    take(event.dataTransfer.files[0]);
  };
  const named = (name) => {
    const found = datasets.value.datasets.find((one) => one.name === name);
    use(found ? { rows: { dataset: name, n: found.shape[0], d: found.shape[1] }, name } : {}, "");
  };
  const { rows, error, name } = state;
  return html`<div class=${`rows ${over ? "over" : ""}`} onDrop=${dropped} onDragLeave=${() => setOver(false)}
    onDragOver=${(event) => {
      event.preventDefault();
      setOver(true);
    }}>
    <label>Paste rows of numbers, or drop a CSV or .npy file here
      <textarea rows="5" spellcheck="false" value=${text} placeholder=${"0.1, 0.2, 0.3\n1.5, 0.9, 2.2"}
        onInput=${(event) => typed(event.target.value)}></textarea>
    </label>
    <div class="line">
      <label class="file button plain">Choose a file
        <input type="file" accept=".csv,.tsv,.txt,.npy" onChange=${(event) => take(event.target.files[0])} /></label>
      ${
        datasets.value?.datasets.length > 0 &&
        html`<label class="small">or a dataset
        <select value=${rows?.dataset ?? ""} onChange=${(event) => named(event.target.value)}>
          <option value=""></option>${datasets.value.datasets.map((one) => html`<option value=${one.name}>${one.name}</option>`)}
        </select></label>`
      }
      <p role="status" class="told">${
        rows &&
        html`<b>${counted(rows.n, "row")} of ${counted(rows.d, "number")}</b>${name ? ` from ${name}` : ""}.${" "}${rows.note}`
      }</p>
    </div>
    ${error && html`<${Notice} title="These are no rows">${error}<//>`}
    ${
      rows &&
      width &&
      rows.d !== width &&
      html`<${Notice} kind="warn" title="Another width">
        This map takes rows of ${counted(width, "number")}; these have ${count(rows.d)}.
      <//>`
    }
  </div>`;
}
