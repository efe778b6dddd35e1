// Pictures that are drawn here: clouds of points and histograms. Colours come from the styles.

import { html } from "./view.js";
import { digits, mark } from "./words.js";

// On a telephone a picture has fewer units, so that its words stay as large as others.
const [WIDTH, HEIGHT, STEPS] = matchMedia("(max-width: 40rem)").matches ? [290, 250, 4] : [460, 340, 6];
const [LEFT, RIGHT, TOP, BOTTOM] = [58, 12, 12, 46];
// Between numbers that are nearer to one another than this part of them there are no round ones to tell.
const NEAREST = 1e-9;

/** Round numbers between two others, some five of them in a wide picture. */
export function ticks(least, largest) {
  const rough = (largest - least) / STEPS || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((one) => one * power >= rough * 0.99);
  const first = Math.ceil(least / step);
  const length = Math.floor(largest / step + 1e-9) - first + 1;
  return Array.from({ length }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** Least and largest of some numbers. */
function ends(numbers) {
  let [least, largest] = [Infinity, -Infinity];
  for (const number of numbers) {
    least = Math.min(least, number);
    largest = Math.max(largest, number);
  }
  return least <= largest ? [least, largest] : [0, 1];
}

/** The ends of an axis: those of some numbers, and a little more; numbers that differ by rounding alone are its middle. */
export function range(numbers, margin = 0.04) {
  const [least, largest] = ends(numbers);
  const size = Math.max(Math.abs(least), Math.abs(largest));
  const apart = largest - least > NEAREST * size ? (largest - least) * margin : size / 2 || 0.5;
  return [least - apart, largest + apart];
}

function Axes({ x, y, xLabel, yLabel, label, children }) {
  const across = (value) => LEFT + ((value - x[0]) / (x[1] - x[0])) * (WIDTH - LEFT - RIGHT);
  const up = (value) => HEIGHT - BOTTOM - ((value - y[0]) / (y[1] - y[0])) * (HEIGHT - TOP - BOTTOM);
  return html`<svg class="chart" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${label}>
    <g class="grid">
      ${ticks(...x).map((tick) => html`<line x1=${across(tick)} x2=${across(tick)} y1=${TOP} y2=${HEIGHT - BOTTOM} />`)}
      ${ticks(...y).map((tick) => html`<line x1=${LEFT} x2=${WIDTH - RIGHT} y1=${up(tick)} y2=${up(tick)} />`)}
    </g>
    <g class="ticks">
      ${ticks(...x).map(
        (tick) => html`<text x=${across(tick)} y=${HEIGHT - BOTTOM + 16} class="middle">${mark(tick)}</text>`,
      )}
      ${ticks(...y).map((tick) => html`<text x=${LEFT - 7} y=${up(tick) + 4} class="end">${mark(tick)}</text>`)}
      <text x=${(LEFT + WIDTH - RIGHT) / 2} y=${HEIGHT - 8} class="middle axis">${xLabel}</text>
      <text transform=${`translate(14 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`} class="middle axis">${yLabel}</text>
    </g>
    ${children(across, up)}
  </svg>`;
}

/** Points (x, y), each with a size from 0 to 1 if sizes are given; with a diagonal on which x = y, if wanted. */
export function Scatter({ x, y, sizes, xLabel, yLabel, label, diagonal = false }) {
  const [ofX, ofY] = diagonal ? Array(2).fill(range([...x, ...y])) : [range(x), range(y)];
  const radius = (i) => (sizes ? 1.2 + 5 * Math.sqrt(sizes[i]) : x.length > 800 ? 1.8 : 2.8);
  return html`<${Axes} x=${ofX} y=${ofY} xLabel=${xLabel} yLabel=${yLabel} label=${label}>${(across, up) => html`
    ${
      diagonal &&
      html`<line class="diagonal" x1=${across(ofX[0])} y1=${up(ofX[0])} x2=${across(ofX[1])} y2=${up(ofX[1])} />`
    }
    <g class="points">${Array.from(
      x,
      (one, i) => html`<circle cx=${short(across(one))} cy=${short(up(y[i]))} r=${short(radius(i))} />`,
    )}</g>
  `}<//>`;
}

/** How often numbers fall into each of some steps. */
export function Histogram({ of, xLabel, yLabel, label }) {
  const [least, end] = range(of, 0);
  const steps = Math.max(4, Math.min(40, Math.round(2 * Math.cbrt(of.length))));
  const counts = Array(steps).fill(0);
  for (const number of of) counts[Math.min(steps - 1, Math.floor(((number - least) / (end - least)) * steps))] += 1;
  return html`<${Axes} x=${[least, end]} y=${[0, 1.05 * Math.max(...counts)]} xLabel=${xLabel} yLabel=${yLabel} label=${label}>
    ${(across, up) =>
      html`<g class="bars">${counts.map((often, i) => {
        const [from, to] = [i, i + 1].map((place) => across(least + ((end - least) * place) / steps));
        const [top, width] = [up(often), Math.max(0.5, to - from - 1)];
        return html`<rect x=${short(from + 0.5)} y=${short(top)} width=${short(width)} height=${short(up(0) - top)} />`;
      })}</g>`}
  <//>`;
}

/** A place in a picture, in as many digits as can be seen. */
const short = (place) => place.toFixed(1);

// A little larger than its place, so that nothing shines through between two.
const Cell = ({ x, y, shade }) => html`<rect x=${x} y=${y} width="1.02" height="1.02" class=${shade} />`;

const MOST_CELLS = 64;
const SHADES = 16;

/** A matrix as coloured squares: { n, d, values }, of which so many rows and columns are shown. */
export function HeatMap({ of: { n, d, values }, label, bounds, most = [MOST_CELLS, MOST_CELLS] }) {
  const [rows, columns] = [Math.min(n, most[0]), Math.min(d, most[1])];
  const shown = [];
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) shown.push(values[row * d + column]);
  }
  const [least, largest] = bounds ?? around(shown);
  const shade = (value) => {
    const place = Math.floor((SHADES * (value - least)) / (largest - least || 1));
    return `shade-${Math.min(SHADES - 1, Math.max(0, place))}`;
  };
  const shape = columns > 2 * rows ? "wide" : "";
  const sign = least === -largest ? "signed" : "";
  return html`<figure class=${`heat ${sign}`}>
    <svg viewBox=${`0 0 ${columns} ${rows}`} role="img" aria-label=${label} preserveAspectRatio="none" class=${shape}>
      ${shown.map((value, i) => html`<${Cell} x=${i % columns} y=${Math.floor(i / columns)} shade=${shade(value)} />`)}
    </svg>
    <figcaption>${label}<span class="scale"><i>${digits(least)}</i>
      <svg viewBox=${`0 0 ${SHADES} 1`} preserveAspectRatio="none" aria-hidden="true">
        ${Array.from({ length: SHADES }, (_, i) => html`<${Cell} x=${i} y="0" shade=${`shade-${i}`} />`)}
      </svg><i>${digits(largest)}</i></span>
    </figcaption>
  </figure>`;
}

/** Least and largest; as far on both sides of 0 where there are numbers of both signs. */
function around(numbers) {
  const [least, largest] = ends(numbers);
  const far = Math.max(-least, largest);
  return least < 0 && largest > 0 ? [-far, far] : [least, largest];
}
