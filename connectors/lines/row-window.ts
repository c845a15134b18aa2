import { isUtf8 } from 'node:buffer';
import { DataError } from '../../engine/errors.ts';
import type { ByteRange } from '../../engine/stream/split.ts';
import { inputName } from '../files/path-kinds.ts';
import { LONGEST_ROW } from './field-block.ts';
import { countLines } from './field-block.ts';

const LF = 0x0a;
const CAPACITY = 4 * LONGEST_ROW;
/**
 * The buffer of a window that was closed, for the next one: a range of a file needs a whole one for a few
 * milliseconds.
 */
let spare: Uint8Array | undefined;
/** Bytes of a line that a message may show. */
const SHOWN = 200;

/** The range of a whole file. */
export const WHOLE_FILE: ByteRange = { from: 0, to: Number.MAX_SAFE_INTEGER, known: true, rows: 0, lines: 0 };

/** Bytes at `to` that are no text. */
interface Fault {
  readonly summary: string;
  readonly advice: string;
  /** The first of them, in whose place the scanner writes its line end. */
  readonly first: number;
}

/**
 * The part of a text file that is in memory: bytes `from .. to` of one buffer, refilled when all of its whole
 * rows are used. For errors it knows the line of every byte. Bytes that are no UTF-8 end it: they are an
 * error once the rows before them are used.
 */
export class RowWindow {
  // One spare byte holds the scanner's line end.
  bytes: Uint8Array = new Uint8Array(1);
  from = 0;
  /** The end of the bytes. */
  to = 0;
  readonly #file: string;
  readonly #chunks: AsyncGenerator<Uint8Array>;
  readonly #range: ByteRange;
  #rest: Uint8Array = new Uint8Array(0);
  /** The end of what was read: behind `to` where the bytes between are no text. */
  #end = 0;
  #ended = false;
  /** The byte of the file at which the buffer begins. */
  #position: number;
  /** Lines before `from`. */
  #linesBefore: number;
  /** The end of the bytes that are known to be UTF-8. */
  #checked = 0;
  #fault: Fault | undefined;

  /**
   * `chunks`: the file's text from the range's beginning on, or from the byte before it where that is a
   * guess.
   */
  constructor(file: string, chunks: AsyncGenerator<Uint8Array>, range: ByteRange) {
    this.#file = file;
    this.#chunks = chunks;
    this.#range = range;
    this.#position = range.known ? range.from : range.from - 1;
    this.#linesBefore = range.lines;
  }

  /** True when no bytes follow those in memory. */
  get atEnd(): boolean {
    return this.#ended && this.#fault === undefined;
  }

  /** The end of the range, as a position of the buffer: the rows that begin behind it belong to another. */
  get limit(): number {
    return this.#range.to - this.#position;
  }

  /** The byte of the file at `from`. */
  get position(): number {
    return this.#position + this.from;
  }

  /** Lines of the file, or of a range whose beginning was guessed, before `from`. */
  get lines(): number {
    return this.#linesBefore;
  }

  /** Passes the rows before `position`, of `lines` lines, as used. */
  advance(position: number, lines: number): void {
    this.from = position;
    this.#linesBefore += lines;
  }

  /**
   * Goes to the first line of a range whose beginning is a guess: behind the first line end at or behind the
   * byte before it. False where the range has none.
   */
  async toFirstLine(): Promise<boolean> {
    for (;;) {
      await this.#read();
      const last = Math.min(this.#end, this.limit);
      const lf = this.bytes.subarray(0, Math.max(0, last)).indexOf(LF);
      if (lf >= 0) {
        this.from = lf + 1;
        this.#checked = lf + 1;
        this.#checkEncoding();
        return true;
      }
      if (this.#ended || this.#end >= this.limit) return false;
      this.from = this.#end;
    }
  }

  /**
   * Moves the unused bytes to the front and reads until the buffer is full, or the file or the range ends.
   * Throws DataError where no text follows.
   */
  async fill(): Promise<void> {
    if (this.#fault !== undefined) throw await this.#faultProblem(this.#fault);
    await this.#read();
    this.#checkEncoding();
  }

  /** Throws DataError where the bytes in memory are not all text. */
  async requireText(): Promise<void> {
    if (this.#fault !== undefined) throw await this.#faultProblem(this.#fault);
  }

  async #read(): Promise<void> {
    this.bytes.copyWithin(0, this.from, this.#end);
    this.#position += this.from;
    this.#checked -= this.from;
    this.#end -= this.from;
    this.from = 0;
    // Behind the end of the range only the rest of its last row is needed: the row is most often shorter than
    // a chunk.
    do await this.#readChunk();
    while (this.#end < CAPACITY && !this.#ended && this.#end < this.limit);
  }

  async #readChunk(): Promise<void> {
    if (this.#rest.length === 0) {
      const next = await this.#chunks.next();
      if (next.done) this.#ended = true;
      else this.#rest = next.value;
    }
    this.#reserve(Math.min(this.#end + this.#rest.length, CAPACITY));
    const taken = Math.min(this.#rest.length, CAPACITY - this.#end);
    this.bytes.set(this.#rest.subarray(0, taken), this.#end);
    this.#rest = this.#rest.subarray(taken);
    this.#end += taken;
  }

  /** Makes room for `length` bytes, step by step, so that small files need a small buffer. */
  #reserve(length: number): void {
    if (length < this.bytes.length) return;
    const larger = spare ?? new Uint8Array(Math.min(CAPACITY, Math.max(length, 4 * this.bytes.length)) + 1);
    spare = undefined;
    larger.set(this.bytes.subarray(0, this.#end));
    this.bytes = larger;
  }

  /** Most rows that the bytes can hold: a row of n fields has n bytes or more. */
  mostRows(columns: number): number {
    return this.#ended || this.#end >= this.limit
      ? Math.ceil((this.#end - this.from) / columns) + 1
      : Number.POSITIVE_INFINITY;
  }

  /**
   * Ends the window before the first line that is not UTF-8. A character that is cut at the end waits for its
   * rest.
   */
  #checkEncoding(): void {
    const { bytes } = this;
    this.to = this.#end;
    const end = this.#ended ? this.#end : this.#wholeCharactersEnd();
    if (end <= this.#checked) return;
    if (isUtf8(bytes.subarray(this.#checked, end))) {
      this.#checked = end;
      return;
    }
    const start = badLine(bytes, this.#checked, end);
    this.to = Math.max(this.from, start === 0 ? 0 : bytes.lastIndexOf(LF, start - 1) + 1);
    const isUtf16 = this.#position === 0 && hasUtf16Mark(bytes);
    this.#fault = {
      first: bytes[this.to],
      summary: `the text is ${isUtf16 ? 'UTF-16' : 'not UTF-8'}`,
      advice: `Convert the file, for example with iconv ${isUtf16 ? '-f UTF-16 ' : ''}-t UTF-8`,
    };
  }

  /**
   * The end without a last character that may be cut: at most three bytes that continue one, and its first.
   */
  #wholeCharactersEnd(): number {
    const { bytes } = this;
    let end = this.#end;
    while (end > this.#checked && end > this.#end - 3 && (bytes[end - 1] & 0xc0) === 0x80) end--;
    return end > this.#checked && bytes[end - 1] >= 0xc0 ? end - 1 : end;
  }

  /** The error for the line behind `to`, of which as much is read as a message shows. */
  async #faultProblem({ summary, advice, first }: Fault): Promise<DataError> {
    this.bytes[this.to] = first;
    while (!this.#ended && this.#end < CAPACITY && this.#end - this.to < SHOWN) await this.#readChunk();
    const start = this.to;
    this.to = this.#end;
    return this.problem(summary, start, advice);
  }

  /** The line, from 1, of a byte that is not used yet. */
  lineOf(position: number): number {
    return this.#linesBefore + countLines(this.bytes, this.from, position) + 1;
  }

  /** The line of the file at a position, shortened for a message. */
  lineText(position: number): string {
    const start = position === 0 ? 0 : this.bytes.lastIndexOf(LF, position - 1) + 1;
    const lf = this.bytes.indexOf(LF, position);
    const end = Math.min(lf < 0 ? this.to : lf, this.to, start + SHOWN);
    return shorten(
      Buffer.from(this.bytes.buffer, start, Math.max(0, end - start))
        .toString('utf8')
        .replace(/\r$/, ''),
    );
  }

  /** An error with the line's number and text. */
  problem(summary: string, position: number, advice?: string): DataError {
    return this.problemAt(position, `${summary}: ${this.lineText(position)}`, advice);
  }

  /** An error with the line's number. */
  problemAt(position: number, summary: string, advice?: string, column?: string): DataError {
    return new DataError(`line ${this.lineOf(position)}: ${summary}`, {
      phase: 'read',
      file: inputName(this.#file),
      column,
      advice,
    });
  }

  async close(): Promise<void> {
    if (this.bytes.length > CAPACITY) spare = this.bytes;
    this.bytes = new Uint8Array(1);
    await this.#chunks.return(undefined);
  }
}

/** The beginning of the first line, or piece of one, in `bytes[from..to)` that is not UTF-8. */
function badLine(bytes: Uint8Array, from: number, to: number): number {
  for (let start = from; ;) {
    const lf = bytes.indexOf(LF, start);
    const next = lf < 0 || lf >= to ? to : lf + 1;
    if (next === to || !isUtf8(bytes.subarray(start, next))) return start;
    start = next;
  }
}

function hasUtf16Mark([first, second]: Uint8Array): boolean {
  return (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
}

/** A text in quotes, at most 80 characters of it. */
export function shorten(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
