/**
 * Checks one struct of Thrift's compact protocol before a library decodes it. hyparquet trusts every length:
 * a damaged footer of 50 bytes makes it allocate gigabytes, and an integer without an end takes quadratic
 * time. Throws RangeError if the bytes end early, a list is longer than the rest, an integer has more than
 * ten bytes, or structs are nested deeper than Parquet's.
 */
export function checkThriftShape(bytes: Uint8Array): void {
  new ShapeWalk(bytes).struct(0);
}

const MAXIMUM_DEPTH = 32;
const [stop, isTrue, isFalse, byte, i16, i32, i64, double, binary, list, , , struct] = Array(13).keys();

class ShapeWalk {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  struct(depth: number): void {
    if (depth > MAXIMUM_DEPTH) throw new RangeError('nested too deeply');
    for (;;) {
      const head = this.#byte();
      const type = head & 15;
      if (type === stop) return;
      if (head >> 4 === 0) this.#varint();
      if (type !== isTrue && type !== isFalse) this.#value(type, depth);
    }
  }

  #value(type: number, depth: number): void {
    if (type === i16 || type === i32 || type === i64) this.#varint();
    else if (type === binary) this.#skip(this.#varint());
    else if (type === struct) this.struct(depth + 1);
    else if (type === list) this.#list(depth + 1);
    else if (type === double) this.#skip(8);
    else if (type === byte || type === isTrue || type === isFalse) this.#skip(1);
    else throw new RangeError(`unknown type ${type}`);
  }

  #list(depth: number): void {
    if (depth > MAXIMUM_DEPTH) throw new RangeError('nested too deeply');
    const head = this.#byte();
    const length = head >> 4 === 15 ? this.#varint() : head >> 4;
    this.#need(length);
    for (let i = 0; i < length; i++) this.#value(head & 15, depth);
  }

  #varint(): number {
    let value = 0;
    for (let scale = 1; scale < 2 ** 70; scale *= 128) {
      const next = this.#byte();
      value += (next & 127) * scale;
      if (next < 128) return value;
    }
    throw new RangeError('an integer of more than 64 bits');
  }

  #byte(): number {
    this.#need(1);
    return this.#bytes[this.#at++];
  }

  #skip(length: number): void {
    this.#need(length);
    this.#at += length;
  }

  /** Checks that `length` more items can follow, of at least one byte each. */
  #need(length: number): void {
    if (length > this.#bytes.length - this.#at)
      throw new RangeError(`need ${length} bytes, have ${this.#bytes.length - this.#at}`);
  }
}
