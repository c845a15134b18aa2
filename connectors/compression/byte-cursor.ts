import { joinBytes } from '../files/stored-bytes.ts';

const LINE_BREAK = 0x0a;

/** Reads bytes off a stream of chunks. */
export class ByteCursor {
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #used: ((chunk: Uint8Array) => void) | undefined;
  /** The chunk that is being read, as long as `copyInto` alone has read it: then nobody has a view of it. */
  #copied: Uint8Array | undefined;
  #rest: Uint8Array = new Uint8Array(0);

  /** `used`: is given each chunk that `copyInto` has copied whole, and that nobody has a view of. */
  constructor(chunks: AsyncIterator<Uint8Array>, used?: (chunk: Uint8Array) => void) {
    this.#chunks = chunks;
    this.#used = used;
  }

  /** Fills memory with the next bytes; returns their number, which is smaller at the end of the stream. */
  async copyInto(bytes: Uint8Array): Promise<number> {
    let at = 0;
    while (at < bytes.length) {
      const part = await this.#part(bytes.length - at);
      if (part === undefined) break;
      bytes.set(part, at);
      at += part.length;
    }
    return at;
  }

  /** The next `length` bytes in new memory; fewer at the end of the stream. */
  async take(length: number): Promise<Uint8Array<ArrayBuffer>> {
    const parts: Uint8Array[] = [];
    for (let missing = length; missing > 0;) {
      const part = await this.some(missing);
      if (part === undefined) break;
      parts.push(part);
      missing -= part.length;
    }
    return joinBytes(parts);
  }

  /** Returns the next bytes, at most `length` of them, from one chunk; undefined at the end. */
  async some(length: number): Promise<Uint8Array | undefined> {
    const part = await this.#part(length);
    this.#copied = undefined;
    return part;
  }

  /** As `some`, for a caller that copies the bytes before it reads further. */
  async #part(length: number): Promise<Uint8Array | undefined> {
    while (this.#rest.length === 0) {
      if (this.#copied !== undefined) this.#used?.(this.#copied);
      this.#copied = undefined;
      const next = await this.#chunks.next();
      if (next.done) return undefined;
      this.#rest = this.#copied = next.value;
    }
    const part = this.#rest.subarray(0, length);
    this.#rest = this.#rest.subarray(part.length);
    return part;
  }

  /** The next bytes, without consuming them. */
  async peek(length: number): Promise<Uint8Array> {
    const bytes = await this.take(length);
    this.#rest = joinBytes([bytes, this.#rest]);
    return bytes;
  }

  /** The bytes before the next line break; undefined if there is none within the next `most` bytes. */
  async line(most: number): Promise<Uint8Array | undefined> {
    const parts: Uint8Array[] = [];
    for (let left = most; left > 0;) {
      const part = await this.some(left);
      if (part === undefined) return undefined;
      const end = part.indexOf(LINE_BREAK);
      if (end >= 0) {
        this.#rest = joinBytes([part.subarray(end + 1), this.#rest]);
        return joinBytes([...parts, part.subarray(0, end)]);
      }
      parts.push(part);
      left -= part.length;
    }
    return undefined;
  }

  /** All remaining bytes. */
  async *all(): AsyncGenerator<Uint8Array> {
    for (let part = await this.some(Infinity); part !== undefined; part = await this.some(Infinity))
      yield part;
  }
}
