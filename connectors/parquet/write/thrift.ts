/**
 * A struct of Thrift's compact protocol (thrift-compact-protocol.md): all its fields by number, each with its
 * stored type, so that a few can be changed before the struct is stored again. hyparquet and hyparquet-writer
 * keep no types but guess them from values: they change 12 of the 51 footers of the tests, and never write
 * int16 (docs/decisions/parquet-footers.md).
 */
export type ThriftStruct = Map<number, ThriftValue>;

export type ThriftValue =
  | { readonly type: typeof TRUE | typeof FALSE }
  | { readonly type: typeof BYTE | typeof DOUBLE | typeof BINARY; readonly bytes: Uint8Array }
  | { readonly type: typeof I16 | typeof I32 | typeof I64; readonly number: bigint }
  | { readonly type: typeof LIST; readonly items: ThriftValue[]; readonly of: number }
  | { readonly type: typeof STRUCT; readonly fields: ThriftStruct };

const [STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, , , STRUCT] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
] as const;

export const thrift = {
  i16: (number: number): ThriftValue => ({ type: I16, number: BigInt(number) }),
  i32: (number: number): ThriftValue => ({ type: I32, number: BigInt(number) }),
  i64: (number: number): ThriftValue => ({ type: I64, number: BigInt(number) }),
  binary: (bytes: string | Uint8Array): ThriftValue => ({ type: BINARY, bytes: Buffer.from(bytes) }),
  /** Fields by number; undefined ones are left out. */
  struct: (fields: Readonly<Record<number, ThriftValue | undefined>>): ThriftValue => ({
    type: STRUCT,
    fields: fieldsOf(fields),
  }),
  /** Items of one type; at least one. */
  list: (items: readonly ThriftValue[]): ThriftValue => ({
    type: LIST,
    of: items[0].type,
    items: [...items],
  }),
  structs: (structs: readonly ThriftStruct[]): ThriftValue => ({
    type: LIST,
    of: STRUCT,
    items: structs.map((fields) => ({ type: STRUCT, fields })),
  }),
};

export function fieldsOf(fields: Readonly<Record<number, ThriftValue | undefined>>): ThriftStruct {
  return new Map(
    Object.entries(fields).flatMap(([field, value]) => (value === undefined ? [] : [[Number(field), value]])),
  );
}

/** The integer in a field; undefined if it is absent. */
export function integerIn(fields: ThriftStruct, field: number): number | undefined {
  const value = fields.get(field);
  return value !== undefined && 'number' in value ? Number(value.number) : undefined;
}

/** The struct in a field. */
export function structIn(fields: ThriftStruct, field: number): ThriftStruct {
  const value = fields.get(field);
  if (value === undefined || !('fields' in value)) throw new RangeError(`field ${field} is not a struct`);
  return value.fields;
}

/** The structs of a list in a field. */
export function structsIn(fields: ThriftStruct, field: number): ThriftStruct[] {
  const value = fields.get(field);
  if (value === undefined || !('items' in value)) throw new RangeError(`field ${field} is not a list`);
  return value.items.map((item) => (item as { fields: ThriftStruct }).fields);
}

export function decodeThrift(bytes: Uint8Array): ThriftStruct {
  return readThrift(bytes).fields;
}

/** The struct at the start of some bytes, and its length. */
export function readThrift(bytes: Uint8Array): { readonly fields: ThriftStruct; readonly bytes: number } {
  const decoder = new Decoder(bytes);
  return { fields: decoder.struct(), bytes: decoder.at };
}

class Decoder {
  readonly #bytes: Uint8Array;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  struct(): ThriftStruct {
    const fields: ThriftStruct = new Map();
    for (let field = 0; ;) {
      const head = this.#bytes[this.at++];
      if ((head & 15) === STOP) return fields;
      field = head >> 4 === 0 ? Number(this.#integer()) : field + (head >> 4);
      fields.set(field, this.#value(head & 15));
    }
  }

  #value(type: number, inList = false): ThriftValue {
    switch (type) {
      case TRUE:
      case FALSE:
        // In a list a boolean takes a byte.
        return inList ? { type: this.#bytes[this.at++] === TRUE ? TRUE : FALSE } : { type };
      case BYTE:
        return { type, bytes: this.#take(1) };
      case DOUBLE:
        return { type, bytes: this.#take(8) };
      case BINARY:
        return { type, bytes: this.#take(Number(this.#varint())) };
      case I16:
      case I32:
      case I64:
        return { type, number: this.#integer() };
      case LIST: {
        const head = this.#bytes[this.at++];
        const length = head >> 4 === 15 ? Number(this.#varint()) : head >> 4;
        return { type, of: head & 15, items: Array.from({ length }, () => this.#value(head & 15, true)) };
      }
      case STRUCT:
        return { type, fields: this.struct() };
      default:
        throw new RangeError(`unknown type ${type}`);
    }
  }

  #take(length: number): Uint8Array {
    this.at += length;
    return this.#bytes.subarray(this.at - length, this.at);
  }

  #integer(): bigint {
    const value = this.#varint();
    return (value >> 1n) ^ -(value & 1n);
  }

  #varint(): bigint {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const next = this.#bytes[this.at++];
      if (next === undefined) throw new RangeError('the bytes end inside a number');
      value |= BigInt(next & 127) << shift;
      if (next < 128) return value;
    }
  }
}

export function encodeThrift(fields: ThriftStruct): Uint8Array {
  const pieces: number[] = [];
  writeStruct(fields, pieces);
  return Uint8Array.from(pieces);
}

function writeStruct(fields: ThriftStruct, to: number[]): void {
  let before = 0;
  for (const [field, value] of [...fields].sort(([a], [b]) => a - b)) {
    const step = field - before;
    if (step < 16) to.push((step << 4) | value.type);
    else {
      to.push(value.type);
      writeInteger(BigInt(field), to);
    }
    writeValue(value, to);
    before = field;
  }
  to.push(STOP);
}

function writeValue(value: ThriftValue, to: number[], inList = false): void {
  if ('fields' in value) writeStruct(value.fields, to);
  else if ('number' in value) writeInteger(value.number, to);
  else if ('items' in value) {
    const { items, of } = value;
    if (items.length < 15) to.push((items.length << 4) | of);
    else {
      to.push(0xf0 | of);
      writeVarint(BigInt(items.length), to);
    }
    for (const item of items) writeValue(item, to, true);
  } else if ('bytes' in value) {
    if (value.type === BINARY) writeVarint(BigInt(value.bytes.length), to);
    for (const byte of value.bytes) to.push(byte);
  } else if (inList) to.push(value.type);
}

function writeInteger(value: bigint, to: number[]): void {
  writeVarint(value < 0n ? -2n * value - 1n : 2n * value, to);
}

function writeVarint(value: bigint, to: number[]): void {
  let rest = value;
  for (; rest >= 128n; rest >>= 7n) to.push(Number(rest & 127n) | 128);
  to.push(Number(rest));
}

/** The last bytes of a Parquet file: its footer, the footer's length, and "PAR1". */
export function encodeFooter(footer: ThriftStruct): Uint8Array {
  const bytes = encodeThrift(footer);
  const end = new Uint8Array(bytes.length + 8);
  end.set(bytes);
  new DataView(end.buffer).setUint32(bytes.length, bytes.length, true);
  end.set(PARQUET_MAGIC, bytes.length + 4);
  return end;
}

/** First and last bytes of a Parquet file. */
export const PARQUET_MAGIC = Buffer.from('PAR1', 'latin1');

/** The footer of a file in memory, and its position. */
export function footerIn(file: Uint8Array): { readonly footer: ThriftStruct; readonly start: number } {
  const end = file.length - 8;
  const start = end - new DataView(file.buffer, file.byteOffset + end, 4).getUint32(0, true);
  return { footer: decodeThrift(file.subarray(start, end)), start };
}
