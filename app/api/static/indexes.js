// Indexes: what they hold, searches by id or by a row, duplicates, recall, and advice on bands.

import { number } from "./json.js";
import { Measured, Unanswered, Waiting, measure } from "./measured.js";
import { Badge, Confirm, Figure, Heading, Loading, Notice, Table } from "./parts.js";
import { Rows, lists } from "./rows.js";
import { ask, askJson, pathOf } from "./service.js";
import { html, useLoaded, useState, useWork } from "./view.js";
import { ago, count, counted, digits, size } from "./words.js";

const PAGE = 50;
const MOST_CLUSTERS = 100;

/** How an index is searched. */
const searching = ({ bands, rows_per_band }) => (bands ? `${count(bands)} bands of ${count(rows_per_band)}` : "scan");
const linkTo = (name) => `#/indexes/${encodeURIComponent(name)}`;

export function Indexes() {
  const page = useLoaded(async (signal) => {
    const asked = ["v1/indexes?limit=1000", "v1/aliases?limit=1000"].map((path) => askJson(path, { signal }));
    const [{ indexes }, { aliases }] = await Promise.all(asked);
    return { indexes, aliases };
  }, []);
  const row = (one) => [
    html`<a href=${linkTo(one.name)}>${one.name}</a>`,
    html`<a href=${`#/maps/${encodeURIComponent(one.map)}`}>${one.map}</a>`,
    one.size,
    size(one.bytes),
    one.job ? "–" : searching(one),
    one.keep,
    ago(one.created_at),
    html`<${Badge} state=${one.status} />`,
  ];
  const alias = (one) => [
    one.name,
    one.index
      ? html`index <a href=${linkTo(one.index)}>${one.index}</a>`
      : html`map <a href=${`#/maps/${encodeURIComponent(one.map)}`}>${one.map}</a>`,
    ago(one.changed_at),
  ];
  return html`
    <${Heading} note="Hash codes of vectors by their ids, to search for the nearest.">Indexes<//>
    <${Notice} problem=${page.problem} again=${page.again} />
    ${!page.value && !page.problem && html`<${Loading} what="Loading the indexes" />`}
    ${page.value?.indexes.length === 0 && html`<div class="nothing"><p>There are no indexes yet.</p></div>`}
    ${
      page.value?.indexes.length > 0 &&
      html`<${Table} caption="Indexes" rows=${page.value.indexes.map(row)}
        head=${["Name", "Map", "Vectors", "Size", "Search", "Keeps", "Created", "Status"]} />`
    }
    ${
      page.value?.aliases.length > 0 &&
      html`<section><h2>Aliases</h2><${Table} caption="Aliases" head=${["Name", "Stands for", "Changed"]}
        rows=${page.value.aliases.map(alias)} /></section>`
    }`;
}

/** One index: its record, and what may be asked of it. */
export function Index({ name }) {
  const record = useLoaded(async (signal) => {
    const index = await askJson(pathOf("indexes", name), { signal });
    const map = await askJson(pathOf("maps", index.map), { signal });
    return { ...index, width: map.spec.input_dim };
  }, [name]);
  const [id, setId] = useState("");
  if (record.problem) return html`<${Heading}>${name}<//><${Notice} problem=${record.problem} again=${record.again} />`;
  if (!record.value) return html`<${Heading}>${name}<//><${Loading} what="Loading the index" />`;
  const index = record.value;
  return html`
    <${Heading} note=${html`over map <a href=${`#/maps/${encodeURIComponent(index.map)}`}>${index.map}</a>, created ${ago(index.created_at)}`}
      actions=${html`<${Delete} name=${index.name} />`}>${index.name} <${Badge} state=${index.status} /><//>
    ${index.error && html`<${Notice} title="It could not be made">${index.error.detail}<//>`}
    <dl class="figures">
      <${Figure} name="Vectors">${count(index.size)}<//>
      <${Figure} name="Size">${size(index.bytes)}<//>
      <${Figure} name="Search">${index.job ? "–" : searching(index)}<//>
      <${Figure} name="Keeps">${index.keep}<//>
      <${Figure} name="Hashes">${`${count(index.s)} of ${counted(index.bits, "bit")}`}<//>
      ${index.serves !== null && html`<${Figure} name="Reaches its target">${index.serves ? "yes" : "no"}<//>`}
    </dl>
    ${
      index.status === "ready" &&
      html`<${Search} index=${index} id=${id} onId=${setId} />
      <${Vectors} index=${index} onId=${setId} />
      <div class="cards"><${Duplicates} index=${index} /><${Recall} index=${index} /><${Advice} index=${index} /></div>`
    }`;
}

function Delete({ name }) {
  const [sure, setSure] = useState(false);
  const [deleting, begin] = useWork();
  const remove = () =>
    begin(async (signal) => {
      await ask(pathOf("indexes", name), { method: "DELETE", signal });
      location.hash = "#/indexes";
    });
  return html`<button type="button" class="danger" onClick=${() => setSure(true)}>Delete</button>
    <${Confirm} open=${sure} title=${`Delete ${name}?`} yes="Delete it" onYes=${remove} onNo=${() => setSure(false)}>
      <p>All its vectors are deleted.</p><${Notice} problem=${deleting.problem} />
    <//>`;
}

/** A typed id: a whole number, or a string. */
const idIn = (text) => (/^-?(0|[1-9]\d*)$/.test(text) ? number(text) : text);

function Search({ index, id, onId }) {
  const [rows, setRows] = useState(null);
  const [k, setK] = useState("10");
  const [tag, setTag] = useState("");
  const [{ value, problem, busy }, begin] = useWork();
  const run = (event) => {
    event.preventDefault();
    const query = id === "" ? { vectors: lists(rows, 1) } : { ids: [id] };
    const body = { ...query, k: Number(k), include: ["tags"], ...(tag ? { tag } : {}) };
    begin((signal) => askJson(pathOf("indexes", index.name, "search"), { method: "POST", body, signal }));
  };
  const found = value?.results[0];
  const row = (one, i) => [
    html`<button type="button" class="bare" onClick=${() => onId(one)}>${String(one)}</button>`,
    `${digits(found.similarity[i])} ± ${digits(found.standard_error[i])}`,
    ...(found.exact ? [digits(found.exact[i])] : []),
    found.tags[i]?.join(", ") ?? "unknown",
  ];
  return html`<section><h2>Search</h2>
    <form onSubmit=${run}>
      <label>Id of a vector of the index
        <input value=${String(id)} spellcheck="false" onInput=${(event) => onId(idIn(event.target.value))} /></label>
      ${id === "" && html`<${Rows} onRows=${(one) => setRows(one?.values ? one : null)} width=${index.width} />`}
      <div class="line">
        <label class="small">Nearest <input type="number" min="1" max="1000" value=${k}
          onInput=${(event) => setK(event.target.value)} /></label>
        <label class="small">with the tag <input value=${tag} spellcheck="false"
          onInput=${(event) => setTag(event.target.value)} /></label>
      </div>
      <div class="actions"><button disabled=${busy || (id === "" && !rows)}>Search</button></div>
    </form>
    <${Notice} problem=${problem} />
    <p role="status">${
      found &&
      `${counted(found.ids.length, "vector")} found among ${count(found.candidates)}, by ${found.searched === "scan" ? "a scan" : "bands"}.`
    }</p>
    ${
      found?.ids.length > 0 &&
      html`<${Table} caption="Nearest vectors" rows=${found.ids.map(row)}
        head=${["Id", "Similarity", ...(found.exact ? ["Exact"] : []), "Tags"]} />`
    }
  </section>`;
}

function Vectors({ index, onId }) {
  const [cursor, setCursor] = useState(null);
  const page = useLoaded(
    (signal) => {
      const query = new URLSearchParams({ limit: PAGE, ...(cursor ? { cursor } : {}) });
      return askJson(`${pathOf("indexes", index.name, "vectors")}?${query}`, { signal });
    },
    [index.name, cursor],
  );
  const row = ({ id, tags }) => [
    html`<button type="button" class="bare" onClick=${() => onId(id)}>${String(id)}</button>`,
    tags?.join(", ") ?? "unknown",
  ];
  return html`<details><summary>Vectors and tags</summary>
    <${Notice} problem=${page.problem} again=${page.again} />
    ${page.value?.vectors.length > 0 && html`<${Table} caption="Vectors" head=${["Id", "Tags"]} rows=${page.value.vectors.map(row)} />`}
    <div class="actions">
      <button type="button" class="plain" disabled=${!cursor} onClick=${() => setCursor(null)}>First</button>
      <button type="button" class="plain" disabled=${!page.value?.next} onClick=${() => setCursor(page.value.next)}>Next</button>
    </div>
  </details>`;
}

/** A card whose button has something measured, by a job where that takes long. */
function Card({ title, note, path, body, disabled, wide, children, shown }) {
  const [job, setJob] = useState(null);
  const [{ value, problem, busy }, begin] = useWork();
  const run = (event) => {
    event.preventDefault();
    setJob(null);
    begin((signal) => measure(path, body(), { heard: setJob, signal }));
  };
  return html`<section class=${`card ${wide ? "wide" : ""}`}><h2>${title}</h2><p>${note}</p>
    <form onSubmit=${run}>${children}
      <div class="actions"><button disabled=${busy || disabled} aria-label=${`Measure: ${title}`}>
        ${busy ? "Measuring …" : "Measure"}</button></div>
    </form>
    ${busy && html`<${Waiting} job=${job} />`}
    <${Notice} problem=${problem} />
    ${value?.job ? html`<${Unanswered} job=${value.job} />` : value && shown(value)}
  </section>`;
}

function Duplicates({ index }) {
  const [least, setLeast] = useState("0.9");
  const shown = ({ document: { clusters } }) => html`
    <p role="status">${counted(clusters.length, "cluster")} of similar vectors.</p>
    ${
      clusters.length > 0 &&
      html`<${Table} caption="Clusters" head=${["Keep", "Others"]} rows=${clusters
        .slice(0, MOST_CLUSTERS)
        .map(({ keep, ids }) => [String(keep), ids.slice(1).join(", ")])} />`
    }`;
  const body = () => ({ min_similarity: Number(least), answer: "clusters", linkage: "representative" });
  return html`<${Card} title="Duplicates" path=${pathOf("indexes", index.name, "duplicates")} body=${body} shown=${shown}
      note="Clusters of vectors that are all similar to the one to keep.">
    <label class="small">Similarity from which <input type="number" min="0.01" max="1" step="0.01" value=${least}
      onInput=${(event) => setLeast(event.target.value)} /></label>
  <//>`;
}

const Recall = ({ index }) => html`<${Card} title="Recall" path=${pathOf("indexes", index.name, "recall")} body=${() => ({})}
  note="What searches find of the ten nearest vectors, and what loses the others." disabled=${index.size < 11}
  shown=${(value) => html`<${Measured} value=${value} label="Recall" open=${true} />`} />`;

function Advice({ index }) {
  const [dataset, setDataset] = useState("");
  const [recall, setRecall] = useState("0.95");
  const datasets = useLoaded((signal) => askJson("v1/datasets?limit=1000", { signal }), []);
  const body = () => ({ map: index.map, keep: index.keep, dataset, k: 10, recall: Number(recall) });
  return html`<${Card} title="Advice on bands" path="v1/indexes/advice" body=${body} disabled=${!dataset} wide=${true}
      note="Bands that find the ten nearest of rows like those of a dataset, or a scan."
      shown=${(value) => html`<${Measured} value=${value} label=${`Advice for ${index.map}`} />`}>
    <label class="small">Dataset <select value=${dataset} onChange=${(event) => setDataset(event.target.value)}>
      <option value=""></option>${datasets.value?.datasets.map((one) => html`<option value=${one.name}>${one.name}</option>`)}
    </select></label>
    <label class="small">Recall <input type="number" min="0.01" max="0.99" step="0.01" value=${recall}
      onInput=${(event) => setRecall(event.target.value)} /></label>
  <//>`;
}
