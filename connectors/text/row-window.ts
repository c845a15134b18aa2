import { isUtf8 } from 'node:buffer';
import { DataError } from '../../engine/errors.ts';
import { inputName } from '../files/path-kinds.ts';
import { LONGEST_ROW } from './dialect.ts';
import { countLines } from './record-scanner.ts';

const LF = 0x0a;
const CAPACITY = 4 * LONGEST_ROW;
const SMALLEST = 1 << 16;

/**
 * The part of a text file that is in memory: bytes `from .. to` of one buffer, refilled when all of its whole rows are
 * used. For errors it knows the line of every byte.
 */
export class RowWindow {
  // One spare byte holds the scanner's line end.
  bytes: Uint8Array = new Uint8Array(SMALLEST + 1);
  from = 0;
  /** The end of the bytes. */
  to = 0;
  atEnd = false;
  readonly #file: string;
  readonly #chunks: AsyncGenerator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array(0);
  /** Lines before `from`. */
  #linesBefore = 0;
  /** The end of the bytes that are known to be UTF-8. */
  #checked = 0;

  constructor(file: string, chunks: AsyncGenerator<Uint8Array>) {
    this.#file = file;
    this.#chunks = chunks;
  }

  /** Passes the rows before `position`, of `lines` lines, as used. */
  advance(position: number, lines: number): void {
    this.from = position;
    this.#linesBefore += lines;
  }

  /** Moves the unused bytes to the front and reads until the buffer is full or the file ends. */
  async fill(): Promise<void> {
    this.bytes.copyWithin(0, this.from, this.to);
    this.#checked -= this.from;
    this.to -= this.from;
    this.from = 0;
    while (this.to < CAPACITY && !this.atEnd) {
      if (this.#rest.length === 0) {
        const next = await this.#chunks.next();
        if (next.done) this.atEnd = true;
        else this.#rest = next.value;
      }
      this.#reserve(Math.min(this.to + this.#rest.length, CAPACITY));
      const taken = Math.min(this.#rest.length, CAPACITY - this.to);
      this.bytes.set(this.#rest.subarray(0, taken), this.to);
      this.#rest = this.#rest.subarray(taken);
      this.to += taken;
    }
    this.#checkEncoding();
  }

  /** Makes room for `length` bytes, step by step, so that small files need a small buffer. */
  #reserve(length: number): void {
    if (length < this.bytes.length) return;
    const larger = new Uint8Array(Math.min(CAPACITY, Math.max(length, 4 * this.bytes.length)) + 1);
    larger.set(this.bytes.subarray(0, this.to));
    this.bytes = larger;
  }

  /** Most rows that the bytes can hold: a row of n fields has n bytes or more. */
  mostRows(columns: number): number {
    return this.atEnd ? Math.ceil((this.to - this.from) / columns) + 1 : Number.POSITIVE_INFINITY;
  }

  /** Throws DataError with the line when the bytes are not UTF-8. A character that is cut at the end waits for its rest. */
  #checkEncoding(): void {
    const { bytes } = this;
    let end = this.to;
    if (!this.atEnd) while (end > this.#checked && end > this.to - 4 && bytes[end - 1] >= 0x80) end--;
    if (end <= this.#checked) return;
    if (isUtf8(bytes.subarray(this.#checked, end))) {
      this.#checked = end;
      return;
    }
    for (let start = this.#checked; start < end; ) {
      const lf = bytes.indexOf(LF, start);
      const next = lf < 0 || lf >= end ? end : lf + 1;
      if (!isUtf8(bytes.subarray(start, next))) {
        const isUtf16 = this.#linesBefore === 0 && ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff));
        throw this.problem(`the text is ${isUtf16 ? 'UTF-16' : 'not UTF-8'}`, start, `Convert the file, for example with iconv ${isUtf16 ? '-f UTF-16 ' : ''}-t UTF-8`);
      }
      start = next;
    }
    throw this.problem('the text is not UTF-8', this.#checked);
  }

  /** The line, from 1, of a byte that is not used yet. */
  lineOf(position: number): number {
    return this.#linesBefore + countLines(this.bytes, this.from, position) + 1;
  }

  /** The line of the file at a position, shortened for a message. */
  lineText(position: number): string {
    const start = position === 0 ? 0 : this.bytes.lastIndexOf(LF, position - 1) + 1;
    const lf = this.bytes.indexOf(LF, position);
    const end = Math.min(lf < 0 ? this.to : lf, this.to, start + 200);
    return shorten(Buffer.from(this.bytes.buffer, start, Math.max(0, end - start)).toString('utf8').replace(/\r$/, ''));
  }

  /** An error with the line's number and text. */
  problem(summary: string, position: number, advice?: string): DataError {
    return this.problemAt(position, `${summary}: ${this.lineText(position)}`, advice);
  }

  /** An error with the line's number. */
  problemAt(position: number, summary: string, advice?: string, column?: string): DataError {
    return new DataError(`line ${this.lineOf(position)}: ${summary}`, { phase: 'read', file: inputName(this.#file), column, advice });
  }

  async close(): Promise<void> {
    await this.#chunks.return(undefined);
  }
}

/** A text in quotes, at most 80 characters of it. */
export function shorten(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
