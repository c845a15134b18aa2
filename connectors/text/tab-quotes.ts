const QUOTE = 0x22;
const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;

/** Tab-separated fields that begin with a quote. */
export interface TabQuotes {
  /** True if a field is properly quoted: closed before a tab or line end, and its lines are not whole rows. */
  readonly closes: boolean;
  /** Number of fields before that one. */
  readonly open: number;
  /** Position of the first of them. */
  readonly first: number;
}

/**
 * Finds fields that begin with a quote in `bytes[from..to)`, up to the first one that is a quoted field. The
 * first line has as many tabs as a row.
 */
export function findTabQuotes(bytes: Uint8Array, from: number, to: number): TabQuotes {
  const lineEnd = bytes.indexOf(LF, from);
  const columns = 1 + bytes.subarray(from, Math.min(lineEnd < 0 ? to : lineEnd, to)).filter(isTab).length;
  let [open, first] = [0, -1];
  for (let p = bytes.indexOf(QUOTE, from); p >= 0 && p < to; p = bytes.indexOf(QUOTE, p + 1)) {
    if (p > from && bytes[p - 1] !== TAB && bytes[p - 1] !== LF) continue;
    if (isQuotedField(bytes, p, to, columns)) return { closes: true, open, first };
    if (open++ === 0) first = p;
  }
  return { closes: false, open, first };
}

function isQuotedField(bytes: Uint8Array, open: number, to: number, columns: number): boolean {
  let close = bytes.indexOf(QUOTE, open + 1);
  while (close >= 0 && close < to && bytes[close + 1] === QUOTE) close = bytes.indexOf(QUOTE, close + 2);
  if (close < 0 || close >= to) return false;
  if (close + 1 < to && ![TAB, LF, CR].includes(bytes[close + 1])) return false;
  const start = bytes.lastIndexOf(LF, open) + 1;
  const lineEnd = bytes.indexOf(LF, close);
  return !areRows(bytes.subarray(start, Math.min(lineEnd < 0 ? to : lineEnd, to)), columns);
}

/**
 * True for two or more lines of which each has the tabs of a row: quotes that span them may be part of texts.
 */
export function areRows(lines: Uint8Array, columns: number): boolean {
  const tabs = [0];
  for (const byte of lines) {
    if (byte === LF) tabs.push(0);
    else if (byte === TAB) tabs[tabs.length - 1]++;
  }
  return columns > 1 && tabs.length > 1 && tabs.every((number) => number === columns - 1);
}

function isTab(byte: number): boolean {
  return byte === TAB;
}
