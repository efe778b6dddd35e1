// Jobs as they go on: server-sent events. They are read here, as EventSource sends no key.

import { ask, askJson, pathOf } from "./service.js";

const AGAIN_MILLISECONDS = 1000;

/** Call `heard` with each change of a job until it has ended; gives its last record. Goes on after an interruption. */
export async function watch(id, heard, signal) {
  let last = "";
  while (true) {
    const ended = await listen(id, last, signal, (event) => {
      last = event.id;
      heard(event.data);
    });
    if (signal.aborted) throw new DOMException("not wanted any more", "AbortError");
    if (ended) return askJson(pathOf("jobs", id), { signal });
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MILLISECONDS));
  }
}

/** Hear events until the connection ends; gives whether the job has ended. */
async function listen(id, last, signal, heard) {
  let ended = false;
  try {
    const headers = last ? { "Last-Event-ID": last } : {};
    const answer = await ask(pathOf("jobs", id, "events"), { accept: "text/event-stream", headers, signal });
    if (answer.status === 204) return true;
    for await (const event of eventsIn(answer.body)) {
      heard(event);
      ended = ended || event.name === "end";
    }
  } catch (problem) {
    // What the service refuses, it refuses again; a connection that breaks is made anew.
    if (signal.aborted || problem.status >= 400) throw problem;
  }
  return ended;
}

/** The events of a stream: each has a name, an id and data. */
async function* eventsIn(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    while (true) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (text + value).split("\n\n");
      text = blocks.pop();
      for (const block of blocks) {
        const fields = Object.fromEntries(block.split("\n").map(field));
        if (fields.data) yield { name: fields.event, id: fields.id, data: JSON.parse(fields.data) };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function field(line) {
  const colon = line.indexOf(":");
  return [line.slice(0, colon), line.slice(colon + 1).trimStart()];
}
