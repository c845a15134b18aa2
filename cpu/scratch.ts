/** Addresses of arrays in a thread's scratch memory, one after the other, each aligned to 64 bytes. */
export class ScratchAddresses {
  readonly #start: number;
  #end: number;

  constructor(start: number) {
    [this.#start, this.#end] = [start, start];
  }

  /** The address of an array of `bytes` bytes. */
  readonly take = (bytes: number): number => {
    const at = this.#end;
    this.#end += 64 * Math.ceil(bytes / 64);
    return at;
  };

  /** The first address after all arrays. */
  get end(): number {
    return this.#end;
  }

  get bytes(): number {
    return this.#end - this.#start;
  }
}

/** The types and offsets of a struct's fields: cpu/generated/structs.ts. */
interface StructLayout {
  readonly bytes: number;
  readonly fields: Readonly<
    Record<string, readonly [type: 'usize' | 'i32' | 'f32' | 'f64' | 'v128', offset: number]>
  >;
}

/** A struct of cpu/assembly in memory. Its address, a multiple of 16, is an argument of kernels. */
export class Struct<Layout extends StructLayout> {
  readonly address: number;
  readonly #layout: Layout;
  readonly #view: DataView;

  /** A struct whose contents are undefined. */
  constructor({ buffer }: WebAssembly.Memory, address: number, layout: Layout) {
    this.address = address;
    this.#layout = layout;
    this.#view = new DataView(buffer, address, layout.bytes);
  }

  clear(): this {
    for (let at = 0; at < this.#layout.bytes; at += 8) this.#view.setFloat64(at, 0);
    return this;
  }

  set(values: { readonly [Field in keyof Layout['fields']]?: number }): this {
    for (const field in values) {
      const [type, offset] = this.#layout.fields[field];
      const value = values[field] ?? 0;
      if (type === 'f32') this.#view.setFloat32(offset, value, true);
      else if (type === 'f64') this.#view.setFloat64(offset, value, true);
      else this.#view.setUint32(offset, value, true);
    }
    return this;
  }

  get(field: keyof Layout['fields'] & string): number {
    const [type, offset] = this.#layout.fields[field];
    if (type === 'f32') return this.#view.getFloat32(offset, true);
    return type === 'f64' ? this.#view.getFloat64(offset, true) : this.#view.getUint32(offset, true);
  }
}
