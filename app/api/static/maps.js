// All maps: search, status, warnings.

import { Badge, Heading, Loading, Notice } from "./parts.js";
import { askJson } from "./service.js";
import { html, useLoaded, useSettled, useState } from "./view.js";
import { ago, count, counted, size, words } from "./words.js";

const PAGE = 200;

function Row({ record }) {
  const { name, status, spec, warnings } = record;
  return html`<tr>
    <th scope="row"><a href=${`#/maps/${encodeURIComponent(name)}`}>${name}</a></th>
    <td>${words(spec.kernel?.kind ?? "")}</td>
    <td>${words(spec.sampler?.kind ?? "")}</td>
    <td class="number">${count(spec.input_dim)}</td>
    <td class="number">${count(record.n_output)}</td>
    <td class="number">${size(record.bytes)}</td>
    <td>${ago(record.created_at)}</td>
    <td><${Badge} state=${status} />${
      warnings.length > 0 &&
      html` <span class="badge warned">${warnings.length}${" "}
      ${warnings.length === 1 ? "warning" : "warnings"}</span>`
    }</td>
  </tr>`;
}

// The columns: title, whether it has numbers, and what to sort by.
const COLUMNS = [
  ["Name", false, (map) => map.name],
  ["Kernel", false, (map) => map.spec.kernel?.kind ?? ""],
  ["Sampler", false, (map) => map.spec.sampler?.kind ?? ""],
  ["Input", true, (map) => map.spec.input_dim],
  ["Columns", true, (map) => map.n_output ?? 0],
  ["Size", true, (map) => map.bytes],
  ["Created", false, (map) => map.created_at],
  ["Status", false, (map) => map.status],
];
// Pipelines of the client name the maps that they make with this.
const OF_PIPELINES = "sklearn-";

/** The maps of a page in an order: [column, direction]. */
function sorted(maps, [column, direction]) {
  const by = COLUMNS[column][2];
  const compare = (one, other) => (by(one) < by(other) ? -1 : Number(by(one) > by(other)));
  return [...maps].sort((one, other) => direction * compare(one, other));
}

function Head({ order: [column, direction], onOrder }) {
  return html`<thead><tr>${COLUMNS.map(
    ([title, isNumber], place) => html`<th scope="col" class=${isNumber ? "number" : ""}
      aria-sort=${place === column ? (direction > 0 ? "ascending" : "descending") : null}>
      <button type="button" class="bare" onClick=${() => onOrder([place, place === column ? -direction : 1])}>${title}${
        place === column ? (direction > 0 ? " ↑" : " ↓") : ""
      }</button></th>`,
  )}</tr></thead>`;
}

function List({ prefix }) {
  const [cursors, setCursors] = useState([]);
  const [order, setOrder] = useState([0, 1]);
  const [unfolded, setUnfolded] = useState(prefix.startsWith(OF_PIPELINES));
  const cursor = cursors.at(-1);
  const page = useLoaded(
    (signal) => {
      const query = new URLSearchParams({ limit: PAGE, prefix, ...(cursor ? { cursor } : {}) });
      return askJson(`v1/maps?${query}`, { signal });
    },
    [prefix, cursor],
  );
  if (page.problem) return html`<${Notice} problem=${page.problem} again=${page.again} />`;
  if (!page.value) return html`<${Loading} what="Loading the maps" />`;
  const { maps, next } = page.value;
  if (!maps.length && !cursors.length) return html`<${Nothing} prefix=${prefix} />`;
  const shown = maps.filter((one) => unfolded || !one.name.startsWith(OF_PIPELINES));
  const folded = maps.length - shown.length;
  return html`
    <p class="unseen" role="status">${counted(shown.length, "map")} shown.</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Maps">
      <table class="list">
        <caption class="unseen">Maps</caption>
        <${Head} order=${order} onOrder=${setOrder} />
        <tbody>${sorted(shown, order).map((record) => html`<${Row} record=${record} key=${record.name} />`)}</tbody>
      </table>
    </div>
    ${
      folded > 0 &&
      html`<p><button type="button" class="plain" onClick=${() => setUnfolded(true)}>
        Show ${counted(folded, "map")} made by pipelines</button></p>`
    }
    ${
      (next || cursors.length > 0) &&
      html`<div class="actions">
      <button type="button" class="plain" disabled=${!cursors.length}
        onClick=${() => setCursors(cursors.slice(0, -1))}>Previous</button>
      <button type="button" class="plain" disabled=${!next} onClick=${() => setCursors([...cursors, next])}>Next</button>
    </div>`
    }`;
}

const Nothing = ({ prefix }) => html`<div class="nothing">
  <p>${prefix ? html`No map has a name that begins with <b>${prefix}</b>.` : "There are no maps yet."}</p>
  <a class="button" href="#/new">Create a map</a>
</div>`;

export function Maps() {
  const [text, setText] = useState("");
  const prefix = useSettled(text.trim(), 200);
  return html`
    <${Heading} note="Each turns vectors into kernel features or hash codes, and never changes."
      actions=${html`<a class="button" href="#/new">New map</a>`}>Maps<//>
    <label class="search">Names that begin with
      <input type="search" value=${text} placeholder="letters" spellcheck="false" maxlength="128"
        onInput=${(event) => setText(event.target.value)} />
    </label>
    <${List} prefix=${prefix} key=${prefix} />`;
}
