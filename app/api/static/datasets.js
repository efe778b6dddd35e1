// Datasets: rows that the service keeps under a name.

import { Confirm, Heading, Loading, Notice } from "./parts.js";
import { Rows } from "./rows.js";
import { write } from "./npy.js";
import { ask, askJson, pathOf } from "./service.js";
import { NAME } from "./specs.js";
import { html, useLoaded, useState, useWork } from "./view.js";
import { ago, count, size } from "./words.js";

export function Datasets() {
  const page = useLoaded((signal) => askJson("v1/datasets?limit=1000", { signal }), []);
  const [removed, setRemoved] = useState(null);
  const [deleting, begin] = useWork();
  const remove = () =>
    begin(async (signal) => {
      await ask(pathOf("datasets", removed), { method: "DELETE", signal });
      setRemoved(null);
      page.again();
    });
  return html`
    <${Heading} note="Rows that the service keeps under a name, to learn from and to measure on.">Datasets<//>
    <${Notice} problem=${page.problem} again=${page.again} />
    ${!page.value && !page.problem && html`<${Loading} what="Loading the datasets" />`}
    ${page.value?.datasets.length === 0 && html`<div class="nothing"><p>There are no datasets yet.</p></div>`}
    ${
      page.value?.datasets.length > 0 &&
      html`<div class="scroll" tabindex="0" role="region" aria-label="Datasets"><table class="list">
      <caption class="unseen">Datasets in order of their names</caption>
      <thead><tr>${["Name", "Rows", "Columns", "Size", "Added", "Expires", ""].map(
        (title) => html`<th scope="col">
        ${title || html`<span class="unseen">Delete</span>`}</th>`,
      )}</tr></thead>
      <tbody>${page.value.datasets.map(
        (one) => html`<tr key=${one.name}>
        <th scope="row">${one.name}</th>
        <td class="number">${count(one.shape[0])}</td>
        <td class="number">${count(one.shape[1])}</td>
        <td class="number">${size(one.bytes)}</td>
        <td>${ago(one.created_at)}</td>
        <td>${one.expires_at ?? "never"}</td>
        <td><button type="button" class="danger" aria-label=${`Delete ${one.name}`}
          onClick=${() => setRemoved(one.name)}>Delete</button></td>
      </tr>`,
      )}</tbody>
    </table></div>`
    }
    <${Confirm} open=${removed !== null} title=${`Delete ${removed}?`} yes="Delete it" onYes=${remove}
      onNo=${() => setRemoved(null)}>
      <p>Maps that were learned from it stay as they are.</p><${Notice} problem=${deleting.problem} />
    <//>
    <${Put} onPut=${page.again} />`;
}

function Put({ onPut }) {
  const [name, setName] = useState("");
  const [rows, setRows] = useState(null);
  const [putting, begin] = useWork();
  const put = (event) => {
    event.preventDefault();
    begin(async (signal) => {
      await ask(pathOf("datasets", name), { method: "PUT", body: write(rows), signal });
      onPut();
      return name;
    });
  };
  return html`<section><h2>Add a dataset</h2>
    <form onSubmit=${put}>
      <${Rows} onRows=${(found) => setRows(found?.values ? found : null)} />
      <label>Name <input required pattern=${NAME} spellcheck="false" value=${name}
        onInput=${(event) => setName(event.target.value)} /></label>
      <div class="actions"><button disabled=${!rows || putting.busy}>Keep as a dataset</button></div>
      <${Notice} problem=${putting.problem} />
      <p role="status">${putting.value && `Dataset ${putting.value} is kept.`}</p>
    </form></section>`;
}
