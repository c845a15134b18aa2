import { isUtf8 } from 'node:buffer';
import { DataError } from '../../engine/errors.ts';
import type { ByteRange } from '../../engine/stream/split.ts';
import { inputName } from '../files/path-kinds.ts';
import { LONGEST_ROW } from './field-block.ts';
import { countLines } from './field-block.ts';

const LF = 0x0a;
const CAPACITY = 4 * LONGEST_ROW;
/**
 * The buffer of a window that was closed. The next window reuses it, since a range needs a whole buffer for
 * only a few milliseconds.
 */
let spare: Uint8Array | undefined;
/** Most bytes of a line in a message. */
const SHOWN = 200;

/** The range that is a whole file. */
export const WHOLE_FILE: ByteRange = { from: 0, to: Number.MAX_SAFE_INTEGER, known: true, rows: 0, lines: 0 };

/** Bytes that are not UTF-8 text; they start at `to`, where the window ends. */
interface Fault {
  readonly summary: string;
  readonly advice: string;
  /** True if the line is shown in the message; binary data are not. */
  readonly isShown: boolean;
  /** The first of these bytes; the scanner overwrites it with its line end. */
  readonly first: number;
}

/**
 * The part of a text file that is in memory: bytes `from .. to` of one buffer, refilled when all of its
 * complete rows are used. Knows the line number of every byte, for errors. Bytes that are not UTF-8 end the
 * window; they are an error once the rows before them are used.
 */
export class RowWindow {
  // One more byte than the text, for the scanner's line end.
  bytes: Uint8Array = new Uint8Array(1);
  from = 0;
  /** End of the text in the buffer. */
  to = 0;
  readonly #file: string;
  readonly #chunks: AsyncGenerator<Uint8Array>;
  readonly #range: ByteRange;
  #rest: Uint8Array = new Uint8Array(0);
  /** End of the bytes in the buffer; after `to` if bytes are not UTF-8 text. */
  #end = 0;
  #ended = false;
  /** Position in the file of the buffer's first byte. */
  #position: number;
  /** Number of lines before `from`. */
  #linesBefore: number;
  /** End of the bytes that were checked to be UTF-8. */
  #checked = 0;
  #fault: Fault | undefined;

  /** `chunks`: the file's bytes from the start of the range; one byte earlier if that start is a guess. */
  constructor(file: string, chunks: AsyncGenerator<Uint8Array>, range: ByteRange) {
    this.#file = file;
    this.#chunks = chunks;
    this.#range = range;
    this.#position = range.known ? range.from : range.from - 1;
    this.#linesBefore = range.lines;
  }

  /** True if the text in memory is the last of the file. */
  get atEnd(): boolean {
    return this.#ended && this.#fault === undefined;
  }

  /** End of the range as a position in the buffer. Rows that start after it belong to another range. */
  get limit(): number {
    return this.#range.to - this.#position;
  }

  /** Position in the file of `from`. */
  get position(): number {
    return this.#position + this.from;
  }

  /** Number of lines before `from`: in the file, or in the range if its start was a guess. */
  get lines(): number {
    return this.#linesBefore;
  }

  /** Marks the rows before `position`, which have `lines` lines, as used. */
  advance(position: number, lines: number): void {
    this.from = position;
    this.#linesBefore += lines;
  }

  /**
   * Moves to the first line that starts in a range with a guessed start: after the first line end at or after
   * the byte before the range. False if no line starts in the range.
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
   * Throws DataError if the next bytes are not text.
   */
  async fill(): Promise<void> {
    if (this.#fault !== undefined) throw await this.#faultProblem(this.#fault);
    await this.#read();
    this.#checkEncoding();
  }

  /** Throws DataError if some bytes in memory are not text. */
  async requireText(): Promise<void> {
    if (this.#fault !== undefined) throw await this.#faultProblem(this.#fault);
  }

  async #read(): Promise<void> {
    this.bytes.copyWithin(0, this.from, this.#end);
    this.#position += this.from;
    this.#checked -= this.from;
    this.#end -= this.from;
    this.from = 0;
    // After the end of the range, only the rest of its last row is needed; one chunk is mostly enough.
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

  /** Makes room for `length` bytes, in steps, so that small files need a small buffer. */
  #reserve(length: number): void {
    if (length < this.bytes.length) return;
    const larger = spare ?? new Uint8Array(Math.min(CAPACITY, Math.max(length, 4 * this.bytes.length)) + 1);
    spare = undefined;
    larger.set(this.bytes.subarray(0, this.#end));
    this.bytes = larger;
  }

  /** Most rows that the bytes can hold: a row of n fields has at least n bytes. */
  mostRows(columns: number): number {
    return this.#ended || this.#end >= this.limit
      ? Math.ceil((this.#end - this.from) / columns) + 1
      : Number.POSITIVE_INFINITY;
  }

  /**
   * Ends the window before the first line that is not UTF-8. A character that is incomplete at the end of
   * the bytes is checked once its rest has been read.
   */
  #checkEncoding(): void {
    const { bytes } = this;
    this.to = this.#end;
    const end = this.#ended ? this.#end : this.#wholeCharactersEnd();
    if (end <= this.#checked) return;
    const other = this.#position === 0 && this.#checked === 0 ? otherKind(bytes.subarray(0, end)) : undefined;
    if (other !== undefined) {
      this.to = this.from;
      this.#fault = { ...other, first: bytes[this.to], isShown: false };
      return;
    }
    if (isUtf8(bytes.subarray(this.#checked, end))) {
      this.#checked = end;
      return;
    }
    const start = badLine(bytes, this.#checked, end);
    this.to = Math.max(this.from, start === 0 ? 0 : bytes.lastIndexOf(LF, start - 1) + 1);
    const isShown = !bytes.subarray(this.to, Math.min(end, this.to + SHOWN)).some(isControl);
    this.#fault = {
      first: bytes[this.to],
      summary: isShown ? 'the text is not UTF-8' : 'the file is binary, or text that is not UTF-8',
      advice: 'Convert the file, for example with iconv -t UTF-8',
      isShown,
    };
  }

  /** End of the bytes without an incomplete last character: its first byte and at most three more. */
  #wholeCharactersEnd(): number {
    const { bytes } = this;
    let end = this.#end;
    while (end > this.#checked && end > this.#end - 3 && (bytes[end - 1] & 0xc0) === 0x80) end--;
    return end > this.#checked && bytes[end - 1] >= 0xc0 ? end - 1 : end;
  }

  /** Error for the line after `to`; reads as much of it as a message shows. */
  async #faultProblem({ summary, advice, first, isShown }: Fault): Promise<DataError> {
    if (!isShown) return this.problemAt(this.to, summary, advice);
    this.bytes[this.to] = first;
    while (!this.#ended && this.#end < CAPACITY && this.#end - this.to < SHOWN) await this.#readChunk();
    const start = this.to;
    this.to = this.#end;
    return this.problem(summary, start, advice);
  }

  /** Line number (from 1) of an unused byte. */
  lineOf(position: number): number {
    return this.#linesBefore + countLines(this.bytes, this.from, position) + 1;
  }

  /** The line at a position, shortened for a message. */
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

  /** Error with the line's number and text. */
  problem(summary: string, position: number, advice?: string): DataError {
    return this.problemAt(position, `${summary}: ${this.lineText(position)}`, advice);
  }

  /** Error with the line's number. */
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

/** Start of the first line, or part of a line, in `bytes[from..to)` that is not UTF-8. */
function badLine(bytes: Uint8Array, from: number, to: number): number {
  for (let start = from; ;) {
    const lf = bytes.indexOf(LF, start);
    const next = lf < 0 || lf >= to ? to : lf + 1;
    if (next === to || !isUtf8(bytes.subarray(start, next))) return start;
    start = next;
  }
}

/** Bytes at the beginning of a file by which binary data and UTF-16 are recognised. */
const INSPECTED = 4096;
const LEAST_INSPECTED = 512;

/** The kind of a file that is no text, or UTF-16, with or without a mark. Undefined for all others. */
function otherKind(bytes: Uint8Array): Pick<Fault, 'summary' | 'advice'> | undefined {
  const head = bytes.subarray(0, INSPECTED);
  const [first, second] = head;
  const zeros = [0, 1].map((parity) => head.filter((byte, at) => byte === 0 && at % 2 === parity).length);
  const isWide = zeros.includes(0) && 8 * Math.max(...zeros) > head.length && (first === 0 || second === 0);
  const hasMark = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  if (hasMark || isWide) {
    const name = hasMark ? 'UTF-16' : zeros[0] === 0 ? 'UTF-16LE' : 'UTF-16BE';
    return {
      summary: `the text is ${name}`,
      advice: `Convert the file, for example with iconv -f ${name} -t UTF-8`,
    };
  }
  // Texts may have some control characters.
  if (head.length < LEAST_INSPECTED || 4 * head.filter(isControl).length < head.length) return undefined;
  return { summary: 'the file is binary, not text', advice: 'Check the path, or set the option format' };
}

/** True for control characters other than a tab and line ends. */
function isControl(byte: number): boolean {
  return byte < 0x20 && byte !== 0x09 && byte !== LF && byte !== 0x0d;
}

/** A text in quotes, shortened to 80 characters. */
export function shorten(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
