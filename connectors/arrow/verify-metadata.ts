/**
 * Describes the metadata of a message (a FlatBuffer): the fields of each table by slot, as in Message.fbs and
 * Schema.fbs. apache-arrow's reader takes pointers out of bounds for zeros or for lengths of any size, so
 * every pointer is checked before that reader runs.
 */
type Kind =
  | { readonly bytes: number }
  /** A number of a type, such as a unit, in two or four bytes. */
  | { readonly size: 2 | 4; readonly accepts: (found: number) => boolean }
  | { readonly text: true }
  /** A vector of inline values, each of `values` bytes. */
  | { readonly values: number }
  | { readonly table: () => Table }
  | { readonly tables: () => Table }
  /** The slot before it has the type of the table. */
  | { readonly union: (type: number) => Table | undefined };
type Table = readonly Kind[];

/** Mark before a message's length; older writers leave it out. */
const CONTINUATION = 0xffff_ffff;

const text: Kind = { text: true };
const scalar = (bytes: number): Kind => ({ bytes });
/** A unit, a precision or a mode. */
const oneOf = (choices: number): Kind => ({ size: 2, accepts: (found) => found >= 0 && found < choices });
const bits = (...widths: number[]): Kind => ({ size: 4, accepts: (found) => widths.includes(found) });
/** Bytes of a value, or values of a list. */
const width: Kind = { size: 4, accepts: (found) => found >= 0 };
/** The scale of a decimal. Its text has as many digits, and a damaged scale could ask for 2^31. */
const scale: Kind = { size: 4, accepts: (found) => Math.abs(found) <= 1000 };
const keyValue: Table = [text, text];
/** Polars has integers of 128 bits; their columns are not read (unread-columns.ts). */
const integer: Table = [bits(8, 16, 32, 64, 128), scalar(1)];
const dictionaryEncoding: Table = [scalar(8), { table: () => integer }, scalar(1), scalar(2)];
const compression: Table = [scalar(1), scalar(1)];
const recordBatch: Table = [
  scalar(8),
  { values: 16 },
  { values: 16 },
  { table: () => compression },
  { values: 8 },
];
const dictionaryBatch: Table = [scalar(8), { table: () => recordBatch }, scalar(1)];
const schema: Table = [scalar(2), { tables: () => field }, { tables: () => keyValue }, { values: 8 }];
const types: Readonly<Record<number, Table>> = {
  2: integer,
  3: [oneOf(3)],
  7: [scalar(4), scale, bits(32, 64, 128, 256)],
  8: [oneOf(2)],
  9: [oneOf(4), bits(32, 64)],
  10: [oneOf(4), text],
  11: [oneOf(3)],
  14: [oneOf(2), { values: 4 }],
  15: [width],
  16: [width],
  17: [scalar(1)],
  18: [oneOf(4)],
};
const field: Table = [
  text,
  scalar(1),
  scalar(1),
  { union: (type) => types[type] ?? [] },
  { table: () => dictionaryEncoding },
  { tables: () => field },
  { tables: () => keyValue },
];
const headers: Readonly<Record<number, Table>> = { 1: schema, 2: dictionaryBatch, 3: recordBatch };
const message: Table = [
  scalar(2),
  scalar(1),
  { union: (type) => headers[type] },
  scalar(8),
  { tables: () => keyValue },
];

const footer: Table = [
  scalar(2),
  { table: () => schema },
  { values: 24 },
  { values: 24 },
  { tables: () => keyValue },
];

/** Checks a file's footer. Throws an Error that names the fault. */
export function verifyFooter(bytes: Uint8Array): void {
  new Verifier(bytes).root(footer);
}

/** Position of a message in a file. */
export interface FooterBlock {
  readonly offset: number;
  /** Bytes of prefix, metadata and padding. */
  readonly headLength: number;
  readonly bodyLength: number;
}

const footerSlots = { dictionaries: 2, batches: 3 };

/** Positions of the dictionaries or of the batches, from a verified footer. */
export function footerBlocks(bytes: Uint8Array, of: keyof typeof footerSlots): FooterBlock[] {
  const root = FlatTable.root(bytes);
  const { first, length } = root.vector(footerSlots[of]);
  return Array.from({ length }, (_, i) => {
    const at = first + 24 * i;
    return {
      offset: Number(root.view.getBigInt64(at, true)),
      headLength: root.view.getInt32(at + 8, true),
      bodyLength: Number(root.view.getBigInt64(at + 16, true)),
    };
  });
}

/** Copy of a verified footer without its dictionaries, so that the schema can be read without them. */
export function withoutDictionaries(bytes: Uint8Array): Uint8Array {
  const copy = bytes.slice();
  const root = FlatTable.root(copy);
  const { first } = root.vector(footerSlots.dictionaries);
  if (first > 0) root.view.setUint32(first - 4, 0, true);
  return copy;
}

/** Checks a message's metadata. Throws an Error that names the fault. */
export function verifyMetadata(bytes: Uint8Array): void {
  new Verifier(bytes).root(message);
}

/** The checked metadata of a message that begins with its length. Throws an Error that names the fault. */
export function messageMetadata(bytes: Uint8Array): Uint8Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const lengthAt = bytes.length >= 8 && view.getUint32(0, true) === CONTINUATION ? 4 : 0;
  const length = bytes.length < 4 ? 0 : view.getInt32(lengthAt, true);
  const start = lengthAt + 4;
  if (length <= 0 || start + length > bytes.length)
    throw new Error(`a message of ${length} bytes in ${bytes.length}`);
  const metadata = bytes.slice(start, start + length);
  verifyMetadata(metadata);
  return metadata;
}

class Verifier {
  readonly #view: DataView;
  /**
   * Number of tables that may still follow. Tables may be shared, and damaged data may have cycles, so the
   * size of the metadata limits the number.
   */
  #left: number;

  constructor(bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#left = bytes.length / 4;
  }

  root(shape: Table): void {
    this.#table(this.#offset(0), shape, 0);
  }

  #table(at: number, shape: Table, depth: number): void {
    if (this.#left-- < 0 || depth > 64) throw new Error('its tables contain each other');
    this.#inside(at, 4);
    const slots = at - this.#view.getInt32(at, true);
    this.#inside(slots, 4);
    const length = this.#view.getUint16(slots, true);
    this.#inside(slots, Math.max(4, length));
    shape.forEach((kind, index) => {
      const slot = (position: number) =>
        4 + 2 * position + 2 <= length ? this.#view.getUint16(slots + 4 + 2 * position, true) : 0;
      const place = slot(index);
      if (place === 0) return;
      const type = 'union' in kind && slot(index - 1) !== 0 ? this.#byte(at + slot(index - 1)) : 0;
      this.#value(at + place, kind, type, depth);
    });
  }

  #value(at: number, kind: Kind, type: number, depth: number): void {
    if ('bytes' in kind) this.#inside(at, kind.bytes);
    else if ('size' in kind) this.#number(at, kind);
    else if ('text' in kind) this.#vector(at, 1);
    else if ('values' in kind) this.#vector(at, kind.values);
    else if ('table' in kind) this.#table(this.#offset(at), kind.table(), depth + 1);
    else if ('tables' in kind) {
      const { first, length } = this.#vector(at, 4);
      for (let i = 0; i < length; i++) this.#table(this.#offset(first + 4 * i), kind.tables(), depth + 1);
    } else {
      const shape = kind.union(type);
      if (shape === undefined) throw new Error(`it is of an unknown kind (${type})`);
      this.#table(this.#offset(at), shape, depth + 1);
    }
  }

  #number(at: number, { size, accepts }: Extract<Kind, { size: number }>): void {
    this.#inside(at, size);
    const found = size === 2 ? this.#view.getInt16(at, true) : this.#view.getInt32(at, true);
    if (!accepts(found))
      throw new Error(`a unit, width, length, scale or mode of a type is ${found}, which cannot be read`);
  }

  #vector(at: number, bytes: number): { first: number; length: number } {
    const start = this.#offset(at);
    this.#inside(start, 4);
    const length = this.#view.getUint32(start, true);
    this.#inside(start + 4, length * bytes);
    return { first: start + 4, length };
  }

  #offset(at: number): number {
    this.#inside(at, 4);
    return at + this.#view.getUint32(at, true);
  }

  #byte(at: number): number {
    this.#inside(at, 1);
    return this.#view.getUint8(at);
  }

  #inside(at: number, bytes: number): void {
    if (at < 0 || at + bytes > this.#view.byteLength)
      throw new Error(`it points to ${at}..${at + bytes} of ${this.#view.byteLength} bytes`);
  }
}

/** A table of a FlatBuffer that was checked. Fields are numbered by their slots in its schema. */
export class FlatTable {
  readonly view: DataView;
  /** Its position in the view. */
  readonly at: number;

  constructor(view: DataView, at: number) {
    [this.view, this.at] = [view, at];
  }

  static root(bytes: Uint8Array): FlatTable {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return new FlatTable(view, view.getUint32(0, true));
  }

  /** Position of a field; 0 if it has its default value, which is not stored. */
  #place(field: number): number {
    const fields = this.at - this.view.getInt32(this.at, true);
    const slot = 4 + 2 * field;
    const offset = slot < this.view.getUint16(fields, true) ? this.view.getUint16(fields + slot, true) : 0;
    return offset === 0 ? 0 : this.at + offset;
  }

  byte(field: number): number {
    const place = this.#place(field);
    return place === 0 ? 0 : this.view.getUint8(place);
  }

  short(field: number): number {
    const place = this.#place(field);
    return place === 0 ? 0 : this.view.getInt16(place, true);
  }

  int(field: number): number {
    const place = this.#place(field);
    return place === 0 ? 0 : this.view.getInt32(place, true);
  }

  long(field: number): number {
    const place = this.#place(field);
    return place === 0 ? 0 : Number(this.view.getBigInt64(place, true));
  }

  has(field: number): boolean {
    return this.#place(field) !== 0;
  }

  text(field: number): string {
    const { first, length } = this.vector(field);
    const { buffer, byteOffset } = this.view;
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(
      new Uint8Array(buffer, byteOffset + first, length),
    );
  }

  table(field: number): FlatTable | undefined {
    const place = this.#place(field);
    return place === 0 ? undefined : new FlatTable(this.view, place + this.view.getUint32(place, true));
  }

  tables(field: number): FlatTable[] {
    const { first, length } = this.vector(field);
    return Array.from({ length }, (_, i) => {
      const place = first + 4 * i;
      return new FlatTable(this.view, place + this.view.getUint32(place, true));
    });
  }

  /** A vector of pairs of 64-bit numbers. */
  pairs(field: number): (readonly [number, number])[] {
    const { first, length } = this.vector(field);
    const long = (at: number) => Number(this.view.getBigInt64(at, true));
    return Array.from({ length }, (_, i) => [long(first + 16 * i), long(first + 16 * i + 8)] as const);
  }

  /** The first entry of a vector, and its number of entries; none for an absent one. */
  vector(field: number): { readonly first: number; readonly length: number } {
    const place = this.#place(field);
    if (place === 0) return { first: 0, length: 0 };
    const start = place + this.view.getUint32(place, true);
    return { first: start + 4, length: this.view.getUint32(start, true) };
  }
}
