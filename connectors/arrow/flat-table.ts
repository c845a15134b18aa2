/** A table of a FlatBuffer that verify-metadata.ts has checked. Fields are numbered by their slots in its schema. */
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
