/**
 * The part of Thrift's compact protocol that Parquet footers use, read into plain values:
 * a struct becomes a Map from field number to value, integers of up to 32 bits and lengths become numbers,
 * 64-bit integers become numbers too when they are safe (footers hold sizes and counts), binaries stay bytes.
 */
export type ThriftValue = boolean | number | bigint | Uint8Array | ThriftValue[] | ThriftStruct;
export type ThriftStruct = Map<number, ThriftValue>;

const maximumDepth = 32;
const [stop, isTrue, isFalse, byte, i16, i32, i64, double, binary, list, set, map, struct] = Array(13).keys();

/** Reads one struct from the start of `bytes`; throws RangeError when they end early or make no sense. */
export function readThrift(bytes: Uint8Array): ThriftStruct {
  return new CompactReader(bytes).struct(0);
}

class CompactReader {
  private readonly view: DataView;
  private readonly bytes: Uint8Array;
  private at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  struct(depth: number): ThriftStruct {
    if (depth > maximumDepth) throw new RangeError('nested too deeply');
    const fields: ThriftStruct = new Map();
    let id = 0;
    for (;;) {
      const head = this.view.getUint8(this.at++);
      const type = head & 15;
      if (type === stop) return fields;
      id = head >> 4 === 0 ? Number(zigzag(this.varint())) : id + (head >> 4);
      fields.set(id, type === isTrue ? true : type === isFalse ? false : this.value(type, depth + 1));
    }
  }

  private value(type: number, depth: number): ThriftValue {
    if (type === isTrue || type === isFalse) return this.view.getUint8(this.at++) === 1;
    if (type === byte) return this.view.getInt8(this.at++);
    if (type === i16 || type === i32 || type === i64) return small(zigzag(this.varint()));
    if (type === double) return this.view.getFloat64((this.at += 8) - 8, true);
    if (type === binary) return this.binary();
    if (type === list || type === set) return this.list(depth);
    if (type === map) return this.map(depth);
    if (type === struct) return this.struct(depth);
    throw new RangeError(`unknown type ${type}`);
  }

  private binary(): Uint8Array {
    const length = this.length();
    return this.bytes.subarray(this.at, (this.at += length));
  }

  private list(depth: number): ThriftValue[] {
    if (depth > maximumDepth) throw new RangeError('nested too deeply');
    const head = this.view.getUint8(this.at++);
    const length = head >> 4 === 15 ? this.length() : head >> 4;
    const values: ThriftValue[] = [];
    for (let i = 0; i < length; i++) values.push(this.value(head & 15, depth + 1));
    return values;
  }

  /** Maps don't occur in footers that we look into: keys and values are read past, in turn. */
  private map(depth: number): ThriftValue[] {
    const length = this.length();
    if (length === 0) return [];
    const types = this.view.getUint8(this.at++);
    const values: ThriftValue[] = [];
    for (let i = 0; i < length; i++) values.push(this.value(types >> 4, depth + 1), this.value(types & 15, depth + 1));
    return values;
  }

  /** A count of things that take a byte each at least. */
  private length(): number {
    const length = Number(this.varint());
    if (length > this.bytes.length - this.at) throw new RangeError(`${length} elements where ${this.bytes.length - this.at} bytes are left`);
    return length;
  }

  private varint(): bigint | number {
    let low = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const next = this.view.getUint8(this.at++);
      low |= (next & 127) << shift;
      if (next < 128) return low;
    }
    let value = BigInt(low);
    for (let shift = 28n; shift < 70n; shift += 7n) {
      const next = this.view.getUint8(this.at++);
      value |= BigInt(next & 127) << shift;
      if (next < 128) return BigInt.asUintN(64, value);
    }
    throw new RangeError('integer of more than 64 bits');
  }
}

function zigzag(value: bigint | number): bigint | number {
  return typeof value === 'number' ? (value >>> 1) ^ -(value & 1) : BigInt.asIntN(64, (value >> 1n) ^ -(value & 1n));
}

function small(value: bigint | number): bigint | number {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
