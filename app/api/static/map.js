// One map: its record, what may be done with it, and the tabs below.

import { hashing, mapsOf } from "./families.js";
import { JobProgress } from "./jobs.js";
import { stringify } from "./json.js";
import { Badge, Confirm, Figure, Heading, Loading, Notice, Numbers, Warnings } from "./parts.js";
import { ask, askJson, download, pathOf } from "./service.js";
import { Spectrum } from "./spectrum.js";
import { html, useLoaded, useState, useWork } from "./view.js";
import { ago, count, heading, size, words } from "./words.js";

const TABS = [
  ["overview", "Overview"],
  ["errors", "Errors"],
  ["try", "Try it"],
];

export function MapHead({ name, tab, Tab }) {
  const record = useLoaded(async (signal) => {
    const asked = [pathOf("maps", name), "v1/catalog"].map((path) => askJson(path, { signal }));
    const [map, catalog] = await Promise.all(asked);
    return { ...map, family: mapsOf(catalog, map.spec) };
  }, [name]);
  const [last, setLast] = useState(null);
  const map = record.value;
  const ended = (job) => {
    setLast(job);
    record.again();
  };
  if (record.problem) {
    const isGone = record.problem.status === 404 && last?.state === "cancelled";
    return html`<${Heading}>${name}<//>${
      isGone
        ? html`<${Notice} kind="info" title="It was cancelled">
            The job that built this map was cancelled: nothing is kept of it.
          <//>`
        : html`<${Notice} problem=${record.problem} again=${record.again} />`
    }`;
  }
  if (!map) return html`<${Heading}>${name}<//><${Loading} what="Loading the map" />`;
  const { kernel, sampler } = map.spec;
  const note = html`${words(kernel?.kind ?? "")} kernel, ${words(sampler?.kind ?? "")}, created ${ago(map.created_at)}`;
  return html`
    <${Heading} note=${note} actions=${html`<${Actions} map=${map} />`}>${name} <${Badge} state=${map.status} /><//>
    <${Warnings} warnings=${map.warnings} />
    ${map.status === "failed" && html`<${Notice} title="It could not be built">${map.error?.detail}<//>`}
    ${map.status === "building" && html`<${JobProgress} id=${map.job.split("/").pop()} onEnd=${ended} />`}
    ${
      map.status === "ready" &&
      html`
      <nav class="tabs" aria-label="Of this map">${TABS.map(
        ([id, title]) => html`
        <a href=${`#/maps/${encodeURIComponent(name)}${id === "overview" ? "" : `/${id}`}`}
          aria-current=${id === tab ? "page" : null}>${title}</a>`,
      )}</nav>
      ${Tab ? html`<${Tab} map=${map} />` : html`<${Overview} map=${map} />`}`
    }
    ${map.status !== "ready" && html`<${Spec} map=${map} />`}`;
}

const Overview = ({ map }) => html`
  <${Figures} map=${map} />
  <${Spectrum} map=${map} />
  ${map.report && html`<section><h2>Report of learning</h2><${Numbers} of=${map.report} /></section>`}
  <${Spec} map=${map} />`;

function Figures({ map }) {
  const hashes = hashing(map.family);
  return html`<dl class="figures">
    <${Figure} name="Numbers in a vector">${count(map.spec.input_dim)}<//>
    <${Figure} name=${hashes ? "Codes of a row" : "Columns of a row"}>${count(map.n_output)}<//>
    <${Figure} name=${heading(map.family.s)}>${count(map.n_frequencies)}<//>
    <${Figure} name="Size">${size(map.bytes)}<//>
    <${Figure} name="Rows">${map.spec.input ? "prepared first, see the spec" : "as they are"}<//>
    <${Figure} name="Precision">${map.spec.dtype}<//>
    <${Figure} name="Form">${hashes ? "codes" : words(map.spec.form)}${map.spec.normalize ? ", unit norm" : ""}<//>
  </dl>`;
}

const Spec = ({ map }) => html`<section>
  <h2>Record</h2>
  <dl class="pairs">
    <div><dt>Digest</dt><dd><code>${map.digest ?? "–"}</code></dd></div>
    <div><dt>Drawn by</dt><dd>${
      Object.entries(map.generator)
        .map((pair) => pair.join(" "))
        .join(", ") || "–"
    }</dd></div>
    <div><dt>Created</dt><dd>${map.created_at}</dd></div>
    ${map.expires_at && html`<div><dt>Expires</dt><dd>${map.expires_at}, unless it is used before</dd></div>`}
  </dl>
  <details open><summary>Spec</summary>
    <pre tabindex="0" role="region" aria-label="Spec">${stringify(map.spec, 2)}</pre></details>
</section>`;

function Actions({ map }) {
  const [sure, setSure] = useState(false);
  const [deleting, begin] = useWork();
  const [taking, take] = useWork();
  const remove = () =>
    begin(async (signal) => {
      await ask(pathOf("maps", map.name), { method: "DELETE", signal });
      location.hash = "#/maps";
    });
  const taken = (event) => {
    const format = event.target.value;
    event.target.value = "";
    if (format) take(() => download(`${pathOf("maps", map.name, "export")}?format=${format}`, `${map.name}.${format}`));
  };
  return html`
    ${
      map.status === "ready" &&
      html`<select aria-label="Take this map away" value="" onChange=${taken}>
      <option value="">Take away …</option>
      ${map.family.exports.map((format) => html`<option value=${format}>as .${format}</option>`)}
    </select>`
    }
    <button type="button" class="danger" onClick=${() => setSure(true)}>Delete</button>
    <${Confirm} open=${sure} title=${`Delete ${map.name}?`} yes="Delete it" onYes=${remove} onNo=${() => setSure(false)}>
      <p>Its arrays are deleted. The same spec makes the same map again on the same kind of processor.</p>
      <${Notice} problem=${deleting.problem} />
    <//>
    <${Notice} problem=${taking.problem} />`;
}
