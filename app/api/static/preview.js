// What a map would be and cost, asked of the service as one types.

import { hashing } from "./families.js";
import { stringify } from "./json.js";
import { Figure, Notice, Warnings } from "./parts.js";
import { address, askJson, pathOf } from "./service.js";
import { html } from "./view.js";
import { count, duration, heading, size } from "./words.js";

/** What a spec would make under a name. The service builds it for that, for a second at most, and throws it away. */
export const tried = (name, spec, signal) =>
  askJson(`${pathOf("maps", name)}?dry_run=true`, { method: "PUT", body: spec, prefer: "wait=1", signal });

/** What is wrong with a body, by pointer. */
export const wrongIn = (problem) =>
  Object.fromEntries((problem?.errors ?? []).map((one) => [one.pointer ?? one.parameter ?? "", one.detail]));

/** How long one number of an answer is: a feature, which may be complex, or a code. */
function entryBytes({ dtype, form }, family) {
  if (hashing(family)) return 4;
  return (dtype === "float64" ? 8 : 4) * (form === "complex" ? 2 : 1);
}

function Figures({ of, family }) {
  const [most, about] = of.at_once ? ["", ""] : ["up to ", "about "];
  const time = of.seconds === null ? "unknown" : `${about}${duration(of.seconds)}`;
  return html`<dl class="figures">
    <${Figure} name="Columns of a row">${most}${count(of.n_output)}<//>
    <${Figure} name=${heading(family.s)}>${most}${count(of.n_frequencies)}<//>
    <${Figure} name="Size">${most}${size(of.bytes)}<//>
    <${Figure} name="Memory to build">${size(of.building_bytes)}<//>
    <${Figure} name="Time to build" note=${of.at_once ? "at once" : "by a job"}>${time}<//>
    <${Figure} name="Size of an answer row">${size(of.n_output * entryBytes(of.spec, family))}<//>
  </dl>`;
}

/** The preview beside the form; `preview` is as `useLoaded` has it. */
export function Preview({ preview: { value, problem, loading }, family, name, spec, busy }) {
  const job = html`<${Notice} kind="info" title="Built by a job">
    Building goes on after the answer, and you can watch it.<//>`;
  return html`<h2>Summary</h2>
    <div class=${loading ? "fading" : ""} role="status">
      ${problem && html`<${Notice} problem=${problem} title="This map cannot be made" />`}
      ${value && html`<${Figures} of=${value} family=${family} /><${Warnings} warnings=${value.warnings} />${!value.at_once && job}`}
    </div>
    <div class="actions"><button disabled=${busy || !value}>Create the map</button></div>
    <details><summary>The same by curl</summary>
      <pre tabindex="0" role="region" aria-label="The same by curl">${curl(name, spec)}</pre>
    </details>`;
}

function curl(name, spec) {
  const body = stringify(spec, 1).replace(/'/g, "'\\''");
  return `curl -X PUT ${address(pathOf("maps", name || "NAME"))} \\\n -H 'Content-Type: application/json' -d '${body}'`;
}
