// Diagnostics and recommendations: asked for, waited for with progress where they take a job, and shown.

import { watch } from "./events.js";
import { parse } from "./json.js";
import { Badge, Notice, Numbers } from "./parts.js";
import { ask, askJson, pathOf } from "./service.js";
import { html, useEffect, useState } from "./view.js";

const JSON_TYPE = "application/json";
// Where there is no picture, numbers come once more, which is no error.
const PICTURE = "image/svg+xml, application/json;q=0.1";

/** Numbers and, where there is one, the picture of an answer, which `fetched` gets in a media type. */
async function both(fetched) {
  const [numbers, drawn] = await Promise.all([fetched(JSON_TYPE), fetched(PICTURE)]);
  const isDrawn = drawn.headers.get("Content-Type").startsWith("image/");
  return { document: parse(await numbers.text()), picture: isDrawn ? await drawn.blob() : null };
}

/** Ask for an answer and its picture. Where a job makes them, `heard` is given it while it goes on. */
export async function measure(path, body, { prefer, heard, signal }) {
  const post = (accept) => ask(path, { method: "POST", body, accept, prefer, signal });
  const answer = await post(JSON_TYPE);
  // Drawn by a second request: what came at once comes at once again.
  if (answer.status !== 202) return both((accept) => (accept === JSON_TYPE ? answer : post(accept)));
  const job = await answer.json();
  heard(job);
  const last = await watch(job.id, (change) => heard({ ...job, ...change }), signal);
  heard(last);
  if (last.state !== "succeeded") return { job: last };
  return resultOf(job.id, signal);
}

/** Numbers and picture that a job has made. */
export const resultOf = (id, signal) => both((accept) => ask(pathOf("jobs", id, "result"), { accept, signal }));

/** A picture that the service has drawn. */
export function Picture({ blob, label }) {
  const [url, setUrl] = useState(null);
  useEffect(() => {
    if (!blob) return undefined;
    const made = URL.createObjectURL(blob);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return url && html`<img class="drawn" src=${url} alt=${label} />`;
}

/** The progress of a job whose answer is waited for. */
export function Waiting({ job }) {
  const [problem, setProblem] = useState(null);
  if (!job || job.ended_at) return null;
  const cancel = () => askJson(pathOf("jobs", job.id), { method: "DELETE" }).catch(setProblem);
  return html`<div class="job"><div class="line">Running as a job <${Badge} state=${job.state} />
      <button type="button" class="danger" onClick=${cancel}>Cancel</button></div>
    <progress max="1" value=${job.progress} aria-label="Progress" /><${Notice} problem=${problem} /></div>`;
}

/** A job that has ended without an answer. */
export const Unanswered = ({ job }) =>
  html`<${Notice} title=${`The job is ${job.state}`}>${job.error?.detail ?? "There is no answer."}<//>`;

/** What was measured: the picture, and the numbers below it. */
export function Measured({ value, label, open = false }) {
  if (!value) return null;
  if (value.job) return html`<${Unanswered} job=${value.job} />`;
  const { warnings, ...numbers } = value.document;
  return html`
    ${warnings?.length > 0 && html`<${Notice} kind="warn" title="Warning">${warnings.join(" ")}<//>`}
    <${Picture} blob=${value.picture} label=${label} />
    <details open=${open || !value.picture}><summary>Numbers</summary><${Numbers} of=${numbers} name=${label} /></details>`;
}
