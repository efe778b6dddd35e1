// All maps: search, status, warnings.

import { Badge, Heading, Loading, Notice } from "./parts.js";
import { askJson } from "./service.js";
import { html, useLoaded, useSettled, useState } from "./view.js";
import { ago, count, size, words } from "./words.js";

const PAGE = 50;

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

const HEAD = ["Name", "Kernel", "Sampler", "Input", "Columns", "Size", "Created", "Status"];
const NUMBERS = new Set(["Input", "Columns", "Size"]);

function List({ prefix }) {
  const [cursors, setCursors] = useState([]);
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
  return html`
    <p class="unseen" role="status">${maps.length} maps are shown.</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Maps">
      <table class="list">
        <caption class="unseen">Maps in order of their names</caption>
        <thead><tr>${HEAD.map((title) => html`<th scope="col" class=${NUMBERS.has(title) ? "number" : ""}>${title}</th>`)}
        </tr></thead>
        <tbody>${maps.map((record) => html`<${Row} record=${record} key=${record.name} />`)}</tbody>
      </table>
    </div>
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
    <${Heading} note="Each turns vectors into kernel features or hash codes, the same ones for ever."
      actions=${html`<a class="button" href="#/new">New map</a>`}>Maps<//>
    <label class="search">Names that begin with
      <input type="search" value=${text} placeholder="letters" spellcheck="false" maxlength="128"
        onInput=${(event) => setText(event.target.value)} />
    </label>
    <${List} prefix=${prefix} key=${prefix} />`;
}
