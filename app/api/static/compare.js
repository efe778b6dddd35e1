// A map on your rows: features or codes, and its kernel beside the exact one.

import { HeatMap, Histogram, Scatter } from "./chart.js";
import { hashing } from "./families.js";
import { read } from "./npy.js";
import { Figure, Notice, Table } from "./parts.js";
import { first, lists, Rows, sent } from "./rows.js";
import { ask, askJson, download, pathOf } from "./service.js";
import { html, useState, useWork } from "./view.js";
import { count, counted, digits } from "./words.js";

const MOST_ROWS = 64;
const MOST_COLUMNS = 12;
const ENCODINGS = ["zero_bit", "pairs", "b_bit", "fingerprint"];

/** An array of an answer, from .npy. */
async function array(path, body, signal) {
  const answer = await ask(path, { method: "POST", body, accept: "application/x-npy", signal });
  return { ...read(new Uint8Array(await answer.arrayBuffer())), warning: answer.headers.get("Bochner-Warning") };
}

/** The approximate and the exact kernel of some rows with each other. */
async function kernels(map, rows, signal) {
  const body = rows.dataset ? { x: sent(rows, MOST_ROWS) } : { x: lists(rows, MOST_ROWS) };
  const answer = await askJson(`${pathOf("maps", map.name, "kernel")}?exact=true`, { method: "POST", body, signal });
  const { real, imag = [] } = Array.isArray(answer.approximate) ? { real: answer.approximate } : answer.approximate;
  return { approximate: real.flat(), imaginary: imag.flat(), exact: answer.exact.flat(), n: real.length };
}

async function looked(map, rows, encoding, signal) {
  const made = hashing(map.family) ? `codes?encoding=${encoding}` : "transform";
  const [features, grams] = await Promise.all([
    array(`${pathOf("maps", map.name)}/${made}`, sent(rows, MOST_ROWS), signal),
    kernels(map, rows, signal),
  ]);
  return { features, grams };
}

export function Compare({ map }) {
  const [rows, setRows] = useState(null);
  const [encoding, setEncoding] = useState(ENCODINGS[0]);
  const [{ value, problem, busy }, begin] = useWork();
  const hashes = hashing(map.family);
  const made = hashes ? "codes" : "features";
  const all = `${pathOf("maps", map.name)}/${hashes ? `codes?encoding=${encoding}` : "transform"}`;
  const save = () =>
    begin(async (signal) => {
      await download(all, `${map.name}-${made}.npy`, {
        method: "POST",
        body: sent(rows),
        accept: "application/x-npy",
        signal,
      });
      return value;
    });
  return html`<section>
    <h2>Your rows</h2>
    <${Rows} onRows=${setRows} width=${map.spec.input_dim} />
    <div class="actions">
      ${
        hashes &&
        html`<label class="small">Encoding <select value=${encoding} onChange=${(event) => setEncoding(event.target.value)}>
        ${ENCODINGS.map((one) => html`<option>${one}</option>`)}</select></label>`
      }
      <button type="button" disabled=${!rows || busy} onClick=${() => begin((signal) => looked(map, rows, encoding, signal))}>
        ${busy ? "Computing …" : `Show ${made} and similarities`}</button>
      <button type="button" class="plain" disabled=${!rows || busy} onClick=${save}>Save all ${made} as .npy</button>
    </div>
    <${Notice} problem=${problem} />
    ${value && html`<${Made} of=${value.features} made=${made} rows=${rows} /><${Grams} of=${value.grams} hashes=${hashes} />`}
  </section>`;
}

function Made({ of, made, rows }) {
  const columns = Math.min(of.d, MOST_COLUMNS);
  const head = ["Row", ...Array.from({ length: columns }, (_, j) => String(j))];
  const few = first(of, 8);
  const shown = lists({ ...few, values: few.values }).map((row, i) => [String(i), ...row.slice(0, columns)]);
  return html`<h3>${made === "codes" ? "Codes" : "Features"}</h3>
    <${Notice} kind="warn" title="Warning">${of.warning}<//>
    <p role="status">${counted(of.n, "row")} of ${count(of.d / of.perEntry)} ${made}${
      of.perEntry > 1 ? ", each in two columns: real and imaginary part" : ""
    }${rows?.n > of.n ? `; you have ${counted(rows.n, "row")}` : ""}.</p>
    <${HeatMap} of=${of} most=${[24, 96]} label=${`The first ${made}, a line for each row`} />
    <${Table} caption=${`The first ${made}`} head=${head} rows=${shown} />`;
}

function Grams({ of: { approximate, imaginary, exact, n }, hashes }) {
  const [least, largest] = [Math.min(0, ...exact, ...approximate), Math.max(...exact, ...approximate)];
  const errors = approximate.map((one, i) => one - exact[i]);
  const lengths = errors.map((one, i) => Math.hypot(one, imaginary[i] ?? 0));
  const norm = (numbers) => Math.sqrt(numbers.reduce((sum, one) => sum + one * one, 0));
  const grid = (values) => ({ n, d: n, values });
  return html`<h3>Similarities</h3>
    <p>The kernel of ${counted(n, "row")} with each other: ${
      hashes ? "as often as codes agree" : "as inner products of features"
    }, and exactly.${imaginary.length > 0 && " Pictures have its real part; sizes of errors count both."}</p>
    <dl class="figures small">
      <${Figure} name="Relative error">${digits(norm(lengths) / (norm(exact) || 1))}<//>
      <${Figure} name="Largest error">${digits(Math.max(...lengths))}<//>
      <${Figure} name="Mean error">${digits(errors.reduce((sum, one) => sum + one, 0) / errors.length)}<//>
    </dl>
    <div class="three">
      <${HeatMap} of=${grid(approximate)} label="By the map" bounds=${[least, largest]} />
      <${HeatMap} of=${grid(exact)} label="Exact" bounds=${[least, largest]} />
      <${HeatMap} of=${grid(errors)} label="The difference" />
    </div>
    <div class="pair"><${Scatter} x=${exact} y=${approximate} xLabel="exact kernel" yLabel="by the map" diagonal
      label=${`The kernel by the map against the exact one, ${exact.length} pairs of rows`} />
      <${Histogram} of=${errors} xLabel="by the map − exact" yLabel="pairs of rows" label="How far off the pairs are" /></div>`;
}
