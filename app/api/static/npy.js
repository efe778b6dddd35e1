// NumPy's .npy files: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.

const MAGIC = "\x93NUMPY";
const SCALARS = {
  f4: [4, (view, at, little) => view.getFloat32(at, little)],
  f8: [8, (view, at, little) => view.getFloat64(at, little)],
  i1: [1, (view, at) => view.getInt8(at)],
  u1: [1, (view, at) => view.getUint8(at)],
  b1: [1, (view, at) => view.getUint8(at)],
  i2: [2, (view, at, little) => view.getInt16(at, little)],
  u2: [2, (view, at, little) => view.getUint16(at, little)],
  i4: [4, (view, at, little) => view.getInt32(at, little)],
  u4: [4, (view, at, little) => view.getUint32(at, little)],
  i8: [8, (view, at, little) => Number(view.getBigInt64(at, little))],
  u8: [8, (view, at, little) => Number(view.getBigUint64(at, little))],
};

/** Shape, order and type of numbers, and where they begin; null if the header is not whole yet. */
export function header(bytes) {
  if (bytes.length < 12) return null;
  if (String.fromCharCode(...bytes.subarray(0, 6)) !== MAGIC) throw new Error("This is no .npy file.");
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const [length, at] = bytes[6] === 1 ? [view.getUint16(8, true), 10] : [view.getUint32(8, true), 12];
  if (bytes.length < at + length) return null;
  const text = new TextDecoder("latin1").decode(bytes.subarray(at, at + length));
  const descr = /'descr':\s*'([<>|=]?)([a-z]\d+)'/.exec(text);
  const shape = /'shape':\s*\(([\d,\s]*)\)/.exec(text);
  const isComplex = descr?.[2] === "c8" || descr?.[2] === "c16";
  const kind = isComplex ? { c8: "f4", c16: "f8" }[descr[2]] : descr?.[2];
  if (!shape || !SCALARS[kind]) throw new Error("This .npy file has no plain numbers.");
  return {
    shape: shape[1]
      .split(",")
      .filter((part) => part.trim())
      .map(Number),
    fortran: /'fortran_order':\s*True/.test(text),
    little: descr[1] !== ">",
    kind,
    perEntry: isComplex ? 2 : 1,
    start: at + length,
  };
}

/** Rows { n, d, values, perEntry } of a file; of complex numbers, two columns are one entry: its real and imaginary part. */
export function read(bytes, most = Infinity) {
  const head = header(bytes);
  if (!head) throw new Error("This .npy file is cut off.");
  const { shape, fortran, little, kind, perEntry, start } = head;
  if (shape.length === 0) throw new Error("This .npy file is a single number; rows are wanted.");
  const all = shape.length === 1 ? 1 : shape[0];
  const d = perEntry * (shape.length === 1 ? shape[0] : shape.slice(1).reduce((a, b) => a * b, 1));
  const [width, get] = SCALARS[kind];
  const view = new DataView(bytes.buffer, bytes.byteOffset + start);
  const n = Math.min(all, most, fortran ? Infinity : Math.floor(view.byteLength / (width * Math.max(1, d))));
  if (n < Math.min(all, most)) throw new Error("This .npy file is cut off.");
  const values = new Float64Array(n * d);
  for (let row = 0; row < n; row += 1) {
    for (let column = 0; column < d; column += 1) {
      const place = fortran ? column * all + row : row * d + column;
      values[row * d + column] = get(view, width * place, little);
    }
  }
  return { n, d, values, perEntry };
}

/** A file of rows { n, d, values }. */
export function write({ n, d, values }) {
  const text = `{'descr': '<f8', 'fortran_order': False, 'shape': (${n}, ${d}), }`;
  const padded = `${text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11)}\n`;
  const bytes = new Uint8Array(10 + padded.length + values.byteLength);
  bytes.set([0x93, ...new TextEncoder().encode("NUMPY"), 1, 0, padded.length & 255, padded.length >> 8]);
  bytes.set(new TextEncoder().encode(padded), 10);
  bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), 10 + padded.length);
  return bytes.buffer;
}

/** The first rows of an answer that may be far larger, which is not read on. Gives { n, d, values, of }. */
export async function firstRows(answer, most) {
  const reader = answer.body.getReader();
  const pieces = [];
  let [length, head, wanted] = [0, null, Infinity];
  try {
    while (length < wanted) {
      const { value, done } = await reader.read();
      if (done) break;
      pieces.push(value);
      length += value.length;
      head ??= header(joined(pieces, length));
      if (head) wanted = head.start + bytesOf(head, most);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
  if (!head) throw new Error("This .npy file is cut off.");
  return { ...read(joined(pieces, length), most), of: head.shape.length === 1 ? 1 : head.shape[0] };
}

/** Pieces of so many bytes in all as one. */
function joined(pieces, length) {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** How many bytes the first rows take; of a file in Fortran order, all. */
function bytesOf({ shape, fortran, kind, perEntry }, most) {
  const [n, ...rest] = shape.length === 1 ? [1, shape[0]] : shape;
  return SCALARS[kind][0] * perEntry * (fortran ? n : Math.min(n, most)) * rest.reduce((a, b) => a * b, 1);
}
