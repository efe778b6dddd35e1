// JSON whose whole numbers keep all their digits: seeds and ids have up to 64 bits, and numbers here have 53.

/** Whether a text is a whole number that is longer than numbers here are exact, where the browser can send it on. */
const isLong = (text) => JSON.rawJSON !== undefined && /^\d{16,}$/.test(text);

/** What a text of JSON says. A long whole number is a BigInt. */
export const parse = (text) => JSON.parse(text, (_, value, at) => (isLong(at?.source) ? BigInt(at.source) : value));

/** The JSON of a value. */
export const stringify = (value, space) =>
  JSON.stringify(value, (_, one) => (typeof one === "bigint" ? JSON.rawJSON(String(one)) : one), space);

/** A number that was typed, or the text where it is none: the service then says what is wrong with it. */
export function number(text) {
  const typed = text.trim();
  if (isLong(typed)) return BigInt(typed);
  return typed === "" || Number.isNaN(Number(typed)) ? text : Number(typed);
}
