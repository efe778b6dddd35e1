// The frequencies of a map, or its landmarks, as a picture. Of many, the first ones are fetched.

import { Histogram, Scatter } from "./chart.js";
import { firstRows } from "./npy.js";
import { Loading, Notice } from "./parts.js";
import { ask, pathOf } from "./service.js";
import { html, useLoaded, useState } from "./view.js";
import { count } from "./words.js";

const MOST = 1500;
const MOST_NUMBERS = 2_000_000;

/** The arrays to draw: the points, and a weight for each where it has one. */
async function points(map, array, signal) {
  const most = Math.max(1, Math.min(MOST, Math.floor(MOST_NUMBERS / map.spec.input_dim)));
  const fetched = (name) => ask(pathOf("maps", map.name, name), { accept: "application/x-npy", signal });
  const rows = await firstRows(await fetched(array), most);
  const weights = array === "frequencies" ? (await firstRows(await fetched("weights"), most)).values : null;
  return { ...rows, weights: weights?.slice(0, rows.n) };
}

export function Spectrum({ map }) {
  const { s: array, arrays } = map.family;
  if (array === "hashes") {
    return html`<section><h2>Hashes</h2><p>This map has no frequencies: each of its ${count(map.n_frequencies)} hashes
      draws one coordinate of a row, and two rows draw the same one as often as their min-max kernel says. Under${" "}
      <a href=${`#/maps/${encodeURIComponent(map.name)}/try`}>Try it</a> you see codes of your own rows.</p></section>`;
  }
  return array in arrays && html`<${Drawn} map=${map} array=${array} />`;
}

function Drawn({ map, array }) {
  const loaded = useLoaded((signal) => points(map, array, signal), [map.digest]);
  const [first, setFirst] = useState(0);
  const [second, setSecond] = useState(1);
  const title = array === "landmarks" ? "Landmarks" : "Spectrum";
  if (loaded.problem)
    return html`<section><h2>${title}</h2><${Notice} kind="info" problem=${loaded.problem} /></section>`;
  if (!loaded.value) return html`<section><h2>${title}</h2><${Loading} what="Loading the frequencies" /></section>`;
  const { n, d, of, values, weights } = loaded.value;
  const column = (j) => Array.from({ length: n }, (_, i) => values[i * d + j]);
  const lengths = Array.from({ length: n }, (_, i) => norm(values.subarray(i * d, (i + 1) * d)));
  const [one, two] = [Math.min(first, d - 1), Math.min(second, d - 1)];
  const named = array === "landmarks" ? "x" : "w";
  return html`<section>
    <div class="line"><h2>${title}</h2>
      ${
        d > 1 &&
        html`<${Coordinate} name="x axis" of=${d} value=${one} onChange=${setFirst} />
        <${Coordinate} name="y axis" of=${d} value=${two} onChange=${setSecond} />`
      }
    </div>
    <p>${of > n ? `The first ${count(n)} of ${count(of)}` : `All ${count(n)}`} ${array}, in two of ${count(d)} coordinates, and
      how long they are.${isWeighted(weights) ? " The size of a point is its weight." : ""}</p>
    <div class="pair">
      <${Scatter} x=${column(one)} y=${column(two)} sizes=${sizes(weights)} xLabel=${`${named}, coordinate ${one}`}
        yLabel=${`${named}, coordinate ${two}`} label=${`${n} ${array} in coordinates ${one} and ${two}`} />
      <${Histogram} of=${lengths} xLabel=${`length of ${named}`} yLabel=${array} label=${`Lengths of ${n} ${array}`} />
    </div>
  </section>`;
}

const norm = (row) => Math.sqrt(row.reduce((sum, one) => sum + one * one, 0));
const isWeighted = (weights) =>
  weights && weights.some((weight) => Math.abs(weight - weights[0]) > 1e-6 * Math.abs(weights[0]));

/** The weights from 0 to 1, where they differ. */
function sizes(weights) {
  if (!isWeighted(weights)) return null;
  const largest = weights.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0);
  return Array.from(weights, (weight) => Math.abs(weight) / largest);
}

const Coordinate = ({ name, of, value, onChange }) => html`<label class="small">${name}
  <input type="number" min="0" max=${of - 1} value=${value}
    onInput=${(event) => onChange(Math.min(of - 1, Math.max(0, Math.round(Number(event.target.value)) || 0)))} /></label>`;
