import {
  FlatTable,
  footerBlocks,
  messageMetadata,
  verifyFooter,
} from '../../connectors/arrow/verify-metadata.ts';
import { type RangedFile, problem } from '../remote-file.ts';
import { type ArrowField, arrowFields } from './arrow-fields.ts';

/** Rows `from` .. `to - 1` of one batch, which hold the rows of the file from `first` on. */
export interface ArrowPiece {
  readonly batch: ArrowBatch;
  readonly first: number;
  readonly from: number;
  readonly to: number;
}

export interface ArrowBatch {
  /** Number of rows in the batches before. */
  readonly start: number;
  readonly rows: number;
  /** Rows of a field that are null, by node. */
  readonly nulls: readonly number[];
  /** Positions of its buffers in the file. */
  readonly buffers: readonly { readonly at: number; readonly bytes: number }[];
}

const MAGIC = 'ARROW1';
const END = 4 + MAGIC.length;
const RECORD_BATCH = 3;
const COPY = 'Copy the file again';

/**
 * An Arrow IPC file on a web server: its columns and the places of their buffers, from the footer and the
 * head of each batch. The values are read by arrow-values.ts. Throws DataError for a damaged file and for a
 * compressed one, of which no ranges can be read.
 */
export class ArrowFile {
  readonly file: RangedFile;
  readonly fields: readonly ArrowField[];
  readonly batches: readonly ArrowBatch[];
  readonly rows: number;

  private constructor(file: RangedFile, fields: readonly ArrowField[], batches: readonly ArrowBatch[]) {
    [this.file, this.fields, this.batches] = [file, fields, batches];
    const last = batches.at(-1);
    this.rows = last === undefined ? 0 : last.start + last.rows;
  }

  static async open(file: RangedFile): Promise<ArrowFile> {
    const footer = await readFooter(file);
    const fields = checked(file, () => arrowFields(footer));
    const blocks = checked(file, () => footerBlocks(footer, 'batches'));
    const heads = await Promise.all(blocks.map((block) => readHead(file, block)));
    const batches: ArrowBatch[] = [];
    let start = 0;
    for (const head of heads) {
      batches.push({ ...head, start });
      start += head.rows;
    }
    return new ArrowFile(file, fields, batches);
  }

  /** The same file, which is read in another way. */
  through(file: RangedFile): ArrowFile {
    return new ArrowFile(file, this.fields, this.batches);
  }

  /** Throws DataError unless the file has the column. */
  field(name: string): ArrowField {
    const field = this.fields.find((one) => one.name === name);
    if (field === undefined) throw problem(this.file.url, `the file has no column ${name}`);
    if (field.isDictionary)
      throw problem(this.file.url, `the column ${name} is a dictionary`, 'Write its values as they are');
    return field;
  }

  has(name: string): boolean {
    return this.fields.some((one) => one.name === name);
  }

  /** The batches that have rows from .. to - 1 of the file. */
  pieces(from: number, to: number): ArrowPiece[] {
    return this.batches.flatMap((batch) => {
      const own = [Math.max(from, batch.start), Math.min(to, batch.start + batch.rows)];
      const [first, end] = own;
      return first < end ? [{ batch, first, from: first - batch.start, to: end - batch.start }] : [];
    });
  }

  /** Bytes `from` .. `to - 1` of one buffer of a batch. */
  async bytes({ buffers }: ArrowBatch, buffer: number, from: number, to: number): Promise<ArrayBuffer> {
    const { at, bytes } = buffers[buffer];
    if (from < 0 || to > bytes || from > to)
      throw problem(this.file.url, `a buffer has ${bytes} bytes, need ${to}: the file is damaged`, COPY);
    return from === to ? new ArrayBuffer(0) : this.file.slice(at + from, at + to);
  }
}

function checked<T>({ url }: RangedFile, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw problem(url, `the Arrow file cannot be read: ${reason}`, COPY, error);
  }
}

async function readFooter(file: RangedFile): Promise<Uint8Array> {
  const { url, byteLength: size } = file;
  const cut = () => problem(url, 'the Arrow file is cut short or damaged: its end is missing', COPY);
  if (size < 2 * END) throw cut();
  const end = await file.slice(size - END, size);
  if (new TextDecoder('latin1').decode(end.slice(4)) !== MAGIC) throw cut();
  const length = new DataView(end).getInt32(0, true);
  if (length <= 0 || length > size - END)
    throw problem(url, `the file is damaged: a footer of ${length} bytes in a file of ${size}`, COPY);
  const footer = new Uint8Array(await file.slice(size - END - length, size - END));
  checked(file, () => verifyFooter(footer));
  return footer;
}

async function readHead(
  file: RangedFile,
  { offset, headLength, bodyLength }: ReturnType<typeof footerBlocks>[number],
): Promise<Omit<ArrowBatch, 'start'>> {
  const { url, byteLength: size } = file;
  if (!(offset >= 0 && headLength > 8 && bodyLength >= 0 && offset + headLength + bodyLength <= size - END))
    throw problem(url, 'the file is damaged: its footer names bytes after its end', COPY);
  const bytes = new Uint8Array(await file.slice(offset, offset + headLength));
  return checked(file, () => {
    const message = FlatTable.root(messageMetadata(bytes));
    const batch = message.table(2);
    if (message.byte(1) !== RECORD_BATCH || batch === undefined) throw new Error('a batch is missing');
    if (batch.has(3)) throw new Error('its buffers are compressed; write it with codec uncompressed');
    const body = offset + headLength;
    const buffers = batch.pairs(2).map(([at, long]) => {
      if (at < 0 || long < 0 || at + long > bodyLength) throw new Error('a buffer is outside of its batch');
      return { at: body + at, bytes: long };
    });
    return { rows: batch.long(0), nulls: batch.pairs(1).map(([, nulls]) => nulls), buffers };
  });
}
