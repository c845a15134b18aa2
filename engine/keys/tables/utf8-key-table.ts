import { spread } from '../../random.ts';
import { type KeyColumn, type KeyTable, UNKNOWN_KEY } from '../key-column.ts';

/** Keys of at least this many bytes are hashed by 4-byte words. */
const LONG = 128;

type Utf8Column = KeyColumn & { readonly type: 'utf8' };

export class Utf8KeyTable implements KeyTable {
  readonly type = 'utf8';
  size = 0;
  #offsets = new Int32Array(65);
  #bytes = new Uint8Array(1024);
  #hashes = new Int32Array(64);
  /**
   * Number + 1 of the key in each slot, 0 if empty. The number of slots is a power of two and at least twice
   * the number of keys, so a search takes one or two steps.
   */
  #slots = new Int32Array(64);

  add(column: KeyColumn, codes: Uint32Array): void {
    const { offsets, bytes } = column as Utf8Column;
    for (let i = 0; i + 1 < offsets.length; i++) {
      const from = offsets[i];
      const to = offsets[i + 1];
      const hash = slotHash(bytes, from, to);
      const slot = this.#slotOf(hash, bytes, from, to);
      const entry = this.#slots[slot];
      codes[i] = entry === 0 ? this.#insert(slot, hash, bytes, from, to) : entry - 1;
    }
  }

  find(column: KeyColumn, codes: Uint32Array): void {
    const { offsets, bytes } = column as Utf8Column;
    for (let i = 0; i + 1 < offsets.length; i++) {
      const hash = slotHash(bytes, offsets[i], offsets[i + 1]);
      const entry = this.#slots[this.#slotOf(hash, bytes, offsets[i], offsets[i + 1])];
      codes[i] = entry === 0 ? UNKNOWN_KEY : entry - 1;
    }
  }

  /** Total bytes of all keys. */
  get textBytes(): number {
    return this.#offsets[this.size];
  }

  keys(): KeyColumn {
    const offsets = this.#offsets.subarray(0, this.size + 1);
    return { type: 'utf8', offsets, bytes: this.#bytes.subarray(0, offsets[this.size]) };
  }

  ascending(): Uint32Array {
    const offsets = this.#offsets;
    const bytes = this.#bytes;
    const order = new Uint32Array(this.size);
    for (let i = 0; i < order.length; i++) order[i] = i;
    return order.sort((left, right) => {
      const leftEnd = offsets[left + 1];
      const rightEnd = offsets[right + 1];
      let l = offsets[left];
      let r = offsets[right];
      while (l < leftEnd && r < rightEnd) {
        const difference = bytes[l++] - bytes[r++];
        if (difference !== 0) return difference;
      }
      return leftEnd - l - (rightEnd - r);
    });
  }

  #slotOf(hash: number, bytes: Uint8Array, from: number, to: number): number {
    const table = this.#slots;
    const mask = table.length - 1;
    let slot = hash & mask;
    for (let entry = table[slot]; entry !== 0; entry = table[slot]) {
      if (this.#hashes[entry - 1] === hash && this.#isKey(entry - 1, bytes, from, to)) break;
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #isKey(code: number, bytes: Uint8Array, from: number, to: number): boolean {
    const start = this.#offsets[code];
    if (this.#offsets[code + 1] - start !== to - from) return false;
    let i = from;
    if (to - from >= LONG) {
      const [own, others] = [viewOf(this.#bytes), viewOf(bytes)];
      for (; i + 4 <= to; i += 4)
        if (own.getInt32(start + i - from, true) !== others.getInt32(i, true)) return false;
    }
    for (; i < to; i++) if (this.#bytes[start + i - from] !== bytes[i]) return false;
    return true;
  }

  #insert(slot: number, hash: number, bytes: Uint8Array, from: number, to: number): number {
    const code = this.size++;
    if (code === this.#hashes.length) {
      this.#hashes = grown(this.#hashes, new Int32Array(2 * code));
      this.#offsets = grown(this.#offsets, new Int32Array(2 * code + 1));
    }
    const start = this.#offsets[code];
    const end = start + to - from;
    if (end > this.#bytes.length)
      this.#bytes = grown(this.#bytes, new Uint8Array(Math.max(end, 2 * this.#bytes.length)));
    this.#bytes.set(bytes.subarray(from, to), start);
    this.#offsets[code + 1] = end;
    this.#hashes[code] = hash;
    this.#slots[slot] = code + 1;
    if (2 * this.size >= this.#slots.length) this.#enlarge();
    return code;
  }

  #enlarge(): void {
    const table = new Int32Array(2 * this.#slots.length);
    const mask = table.length - 1;
    for (let code = 0; code < this.size; code++) {
      let free = this.#hashes[code] & mask;
      while (table[free] !== 0) free = (free + 1) & mask;
      table[free] = code + 1;
    }
    this.#slots = table;
  }
}

/** The hash for finding a slot: of the bytes, or for long keys of 4-byte words. */
function slotHash(bytes: Uint8Array, from: number, to: number): number {
  if (to - from < LONG) return hashBytes(bytes, from, to, 0);
  const view = viewOf(bytes);
  let hash = 0x811c_9dc5;
  let i = from;
  for (; i + 4 <= to; i += 4) {
    hash = Math.imul(hash ^ view.getInt32(i, true), 0x0100_0193);
    // The lowest bits choose the slot, but multiplication moves no bits downwards: this does.
    hash ^= hash >>> 15;
  }
  for (; i < to; i++) hash = Math.imul(hash ^ bytes[i], 0x0100_0193);
  return spread(hash);
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

/** A 32-bit hash of a byte range (FNV-1a, then mixed). */
export function hashBytes(bytes: Uint8Array, from: number, to: number, seed: number): number {
  let hash = 0x811c_9dc5 ^ seed;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ bytes[i], 0x0100_0193);
  return spread(hash);
}

function grown<T extends Int32Array | Uint8Array>(old: T, larger: T): T {
  larger.set(old);
  return larger;
}
