// Preact and htm, which plain scripts have loaded before this module runs: https://preactjs.com.

const { h, render, Fragment } = globalThis.preact;
const { useEffect, useMemo, useRef, useState } = globalThis.preactHooks;
const html = globalThis.htm.bind(h);

export { Fragment, html, render, useEffect, useMemo, useRef, useState };

/** The outcome of `load(signal)`, which is called again whenever `inputs` change: { value, problem, loading, again }. */
export function useLoaded(load, inputs) {
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState({ loading: true });
  useEffect(() => {
    const controller = new AbortController();
    setState((before) => ({ value: before.value, loading: true }));
    load(controller.signal).then(
      (value) => controller.signal.aborted || setState({ value, loading: false }),
      (problem) => controller.signal.aborted || setState({ problem, loading: false }),
    );
    return () => controller.abort();
  }, [...inputs, turn]);
  return { ...state, again: () => setTurn((before) => before + 1) };
}

/** A text that follows `text` once that has not changed for some time. */
export function useSettled(text, milliseconds) {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), milliseconds);
    return () => clearTimeout(timer);
  }, [text, milliseconds]);
  return settled;
}

/** A function that begins some work, and the state of the work begun last: { value, problem, busy }. */
export function useWork() {
  const [state, setState] = useState({});
  const current = useRef(null);
  useEffect(() => () => current.current?.abort(), []);
  const begin = async (work) => {
    current.current?.abort();
    const controller = new AbortController();
    current.current = controller;
    setState({ busy: true });
    try {
      const value = await work(controller.signal);
      if (!controller.signal.aborted) setState({ value });
    } catch (problem) {
      if (!controller.signal.aborted) setState({ problem });
    }
  };
  return [state, begin];
}
