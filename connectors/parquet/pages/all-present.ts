/**
 * True if the definition levels of a page show that no value is null. The levels are runs of one bit (see
 * ../assembly/runs.ts), and all must be 1. False for truncated levels.
 */
export function allPresent(levels: Uint8Array, values: number): boolean {
  let at = 0;
  for (let done = 0; done < values;) {
    let head = 0;
    for (let scale = 1; ; scale *= 128) {
      if (at >= levels.length || scale > 2 ** 28) return false;
      const byte = levels[at++];
      head += (byte & 127) * scale;
      if (byte < 128) break;
    }
    const count = Math.floor(head / 2);
    if (head % 2 === 0) {
      if (levels[at++] !== 1) return false;
      done += count;
      continue;
    }
    if (at + count > levels.length) return false;
    for (let end = at + count; at < end; at++, done += 8) {
      const expected = values - done >= 8 ? 255 : 2 ** (values - done) - 1;
      if (values > done && (levels[at] & expected) !== expected) return false;
    }
  }
  return true;
}
