// Jobs: live progress, cancelling, and what became of them.

import { watch } from "./events.js";
import { Measured, resultOf } from "./measured.js";
import { Badge, Figure, Heading, Loading, Notice } from "./parts.js";
import { Ranking } from "./recommend.js";
import { askJson, pathOf } from "./service.js";
import { html, useEffect, useLoaded, useState, useWork } from "./view.js";
import { ago, count, digits, duration, words } from "./words.js";

const PAGE = 1000;
const MOST_SHOWN = 200;
const AGAIN_MILLISECONDS = 3000;
const STATES = ["queued", "running", "succeeded", "failed", "cancelled"];

/** What a job is about, with links. */
export function Subject({ job }) {
  const { map, diagnostic, index, kernel, dataset } = job.subject ?? {};
  const about = [kernel && words(kernel), dataset && `on ${dataset}`].filter(Boolean).join(" ");
  return html`${words(job.kind)} ${diagnostic ? `(${words(diagnostic)}) ` : ""}
    ${map && html`<a href=${`#/maps/${encodeURIComponent(map)}`}>${map}</a>`}
    ${index && html`<a href=${`#/indexes/${encodeURIComponent(index)}`}>${index}</a>`}${(map || index) && about && " "}${about}`;
}

const secondsOf = (job) => (new Date(job.ended_at) - new Date(job.started_at)) / 1000;

/** A job while it goes on. `onEnd` is given its last record. */
export function JobProgress({ id, onEnd }) {
  const [job, setJob] = useState(null);
  const [problem, setProblem] = useState(null);
  const [cancelling, begin] = useWork();
  useEffect(() => {
    const controller = new AbortController();
    const changed = (change) => setJob((before) => ({ ...before, ...change }));
    const follow = async () => {
      const found = await askJson(pathOf("jobs", id), { signal: controller.signal });
      changed(found);
      const last = found.ended_at ? found : await watch(id, changed, controller.signal);
      changed(last);
      onEnd?.(last);
    };
    follow().catch((failure) => controller.signal.aborted || setProblem(failure));
    return () => controller.abort();
  }, [id]);
  if (problem) return html`<${Notice} problem=${problem} />`;
  if (!job) return html`<${Loading} what="Looking for the job" />`;
  const ended = !["queued", "running"].includes(job.state);
  const percent = Math.round(100 * job.progress);
  return html`<section class="job" aria-label="Job">
    <div class="line"><b><${Subject} job=${job} /></b> <${Badge} state=${job.state} />
      ${
        !ended &&
        html`<button type="button" class="danger" disabled=${cancelling.busy}
        onClick=${() => begin((signal) => askJson(pathOf("jobs", id), { method: "DELETE", signal }))}>Cancel</button>`
      }
    </div>
    <progress max="1" value=${job.progress} aria-label="Progress">${percent} %</progress>
    <p class="unseen" role="status">${ended ? `The job has ended: ${job.state}.` : `${Math.floor(percent / 10) * 10} percent done`}</p>
    <dl class="figures small">
      <${Figure} name="Done">${percent} %<//>
      <${Figure} name="Steps">${count(job.step)} of ${count(job.of)}<//>
      <${Figure} name="Submitted">${ago(job.created_at)}<//>
      ${job.started_at && html`<${Figure} name="Started">${ago(job.started_at)}<//>`}
      ${job.ended_at && html`<${Figure} name="Ended">${ago(job.ended_at)}<//>`}
      ${
        ended
          ? job.started_at && html`<${Figure} name="Took">${duration(secondsOf(job))}<//>`
          : html`<${Figure} name="Time left">${duration(job.eta_seconds)}<//>`
      }
      ${typeof job.objective === "number" && html`<${Figure} name="Objective">${digits(job.objective)}<//>`}
    </dl>
    ${job.error && html`<${Notice} title="It failed">${job.error.detail}<//>`}
    <${Notice} problem=${cancelling.problem} />
  </section>`;
}

/** A job, and what it has made. */
export function Job({ id }) {
  const [last, setLast] = useState(null);
  const hasNumbers = last?.result?.endsWith(`/jobs/${id}/result`);
  const result = useLoaded(async (signal) => (hasNumbers ? resultOf(id, signal) : null), [hasNumbers]);
  return html`<${Heading} note=${html`<code>${id}</code>`}>Job<//><${JobProgress} id=${id} onEnd=${setLast} />
    <${Notice} problem=${result.problem} again=${result.again} />
    ${
      last?.kind === "recommend" && result.value?.document
        ? html`<${Ranking} of=${result.value.document} picture=${result.value.picture} />`
        : html`<${Measured} value=${result.value} label="Result" />`
    }
    <p><a href="#/jobs">All jobs</a></p>`;
}

/** Jobs of a state, the newest first. The service lists the oldest first. */
async function jobsOf(state, signal) {
  const found = [];
  let cursor = null;
  do {
    const query = new URLSearchParams({ limit: PAGE, ...(state ? { state } : {}), ...(cursor ? { cursor } : {}) });
    const page = await askJson(`v1/jobs?${query}`, { signal });
    found.push(...page.jobs);
    cursor = page.next;
  } while (cursor && found.length < 10 * PAGE);
  return found.reverse().slice(0, MOST_SHOWN);
}

export function Jobs() {
  const [state, setState] = useState("");
  const [followed, setFollowed] = useState(null);
  const jobs = useLoaded((signal) => jobsOf(state, signal), [state]);
  const open = jobs.value?.some((job) => !job.ended_at);
  useEffect(() => {
    const timer = setTimeout(jobs.again, open ? AGAIN_MILLISECONDS : 4 * AGAIN_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [jobs.value, jobs.problem]);
  // One at a time is heard live: a browser keeps few connections to a host.
  const live = followed ?? jobs.value?.find((job) => job.state === "running")?.id;
  return html`
    <${Heading} note="Work that takes longer than a request. It outlives the process that does it.">Jobs<//>
    ${live && html`<${JobProgress} id=${live} key=${live} onEnd=${jobs.again} />`}
    <label class="search">State
      <select value=${state} onChange=${(event) => setState(event.target.value)}>
        <option value="">any</option>${STATES.map((one) => html`<option value=${one}>${one}</option>`)}
      </select>
    </label>
    <${Notice} problem=${jobs.problem} again=${jobs.again} />
    ${!jobs.value && !jobs.problem && html`<${Loading} what="Loading the jobs" />`}
    ${jobs.value?.length === 0 && html`<div class="nothing"><p>There are no such jobs.</p></div>`}
    ${
      jobs.value?.length > 0 &&
      html`<div class="scroll" tabindex="0" role="region" aria-label="Jobs"><table class="list">
      <caption class="unseen">Jobs, the newest first</caption>
      <thead><tr>${["Job", "State", "Progress", "Submitted", "Took", "Id"].map((title) => html`<th scope="col">${title}</th>`)}</tr></thead>
      <tbody>${jobs.value.map(
        (job) => html`<tr key=${job.id}>
        <td><${Subject} job=${job} /></td>
        <td><${Badge} state=${job.state} /></td>
        <td><progress max="1" value=${job.progress} aria-label=${`Progress of ${job.id}`} /></td>
        <td>${ago(job.created_at)}</td>
        <td>${job.started_at && job.ended_at ? duration(secondsOf(job)) : "–"}</td>
        <td><a href=${`#/jobs/${job.id}`} onClick=${() => setFollowed(job.id)}><code>…${job.id.slice(-8)}</code></a></td>
      </tr>`,
      )}</tbody>
    </table></div>`
    }`;
}
