import type { RecordBatch, Schema } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { setOrigin } from '../../engine/stream/stream.ts';
import { conformBatch } from '../files/common-schema.ts';
import {
  type FileFormat,
  type FilePart,
  FileSetSource,
  type FileSplit,
  fileSplitReader,
  type KnownFile,
  type OpenFile,
} from '../files/file-set-source.ts';
import { fileKinds } from '../files/format-names.ts';
import { inputName, isUrl, STANDARD_STREAM } from '../files/path-kinds.ts';
import { fileSize, firstBytes, storedBytes } from '../files/stored-bytes.ts';
import type { FolderColumns } from '../folders/folder-columns.ts';
import type { UrlVersions } from '../http/request.ts';
import { headOfUrl } from '../http/stream-url.ts';
import { fileMessages, messageSizes } from './file-messages.ts';
import { IpcDecoder } from './ipc-decoder.ts';
import { FILE_MAGIC, ipcMessages, type IpcMessage } from './ipc-messages.ts';

export interface ArrowSourceOptions {
  /** Columns from the names of folders (`year=1999`). Default: 'infer'. */
  readonly partitions?: FolderColumns;
}

export interface ArrowLayout {
  readonly schema: Schema;
}

/**
 * Arrow IPC as a Source: a file, a folder, a glob, several of these, or "-" for stdin. The first bytes decide
 * between file and stream format; Feather version 2 is the file format. Files are read by their footer;
 * streams and stdin are read from beginning to end. One batch is read at a time, so memory holds one or two
 * of the writer's batches. Stdin must end with the stream's end mark. Buffers may be compressed with lz4, or
 * with zstd on Node 22.15 or newer. Text as views, as dictionaries or with 64-bit offsets becomes Utf8.
 */
export class ArrowSource extends FileSetSource<ArrowLayout> {
  readonly name = 'arrow-source';
  readonly phase = 'read';

  readonly #options: ArrowSourceOptions;

  constructor(paths: string | readonly string[], options: ArrowSourceOptions = {}) {
    super(paths, arrowFormat, options.partitions);
    this.#options = options;
  }

  protected override again(): ArrowSource {
    return new ArrowSource(this.paths, this.#options);
  }
}

/** A range of a file's batches. `firstRow`: number of rows in the file before the range. */
type BatchPart = { readonly from: number; readonly to: number; readonly firstRow: number };

const ALL: BatchPart = { from: 0, to: Number.MAX_SAFE_INTEGER, firstRow: 0 };

const arrowFormat: FileFormat<ArrowLayout> = {
  name: 'arrow',
  extensions: fileKinds.arrow.extensions,
  opensAtOnce: 1,
  open: (file, versions) => OpenArrow.open(file, ALL, versions),
  reopen: ({ file, versions }) => OpenArrow.open(file, ALL, versions),
  cut,
};

/** Reads a range of a file's batches, or a whole stream (see ReadSplit). */
export const readArrowSplit = fileSplitReader((split) =>
  OpenArrow.open(split.file, (split as FileSplit & { readonly part: BatchPart }).part),
);

/**
 * Groups neighbouring batches into parts of about `targetBytes`. A stream has no list of its batches, so it
 * is one part. Every part reads all dictionaries, so a part is at least four times their size.
 */
async function cut({ file }: KnownFile<ArrowLayout>, targetBytes: number): Promise<readonly FilePart[]> {
  if (!isIpcFile(file)) return [{ bytes: fileSize(file), part: ALL }];
  const { dictionaries, batches } = await messageSizes(file);
  const target = Math.max(targetBytes, 4 * dictionaries.reduce((sum, bytes) => sum + bytes, 0));
  const parts: FilePart[] = [];
  let [from, bytes, rows, firstRow] = [0, 0, 0, 0];
  for (const [number, batch] of batches.entries()) {
    bytes += batch.bytes;
    rows += batch.rows;
    if (bytes + (batches[number + 1]?.bytes ?? Number.POSITIVE_INFINITY) <= target) continue;
    parts.push({ bytes, rows, part: { from, to: number + 1, firstRow } });
    [from, bytes, rows, firstRow] = [number + 1, 0, 0, firstRow + rows];
  }
  return parts;
}

class OpenArrow implements OpenFile<ArrowLayout> {
  readonly layout: ArrowLayout;
  readonly #file: string;
  readonly #messages: AsyncGenerator<IpcMessage>;
  readonly #decoder: IpcDecoder;
  readonly #firstRow: number;

  private constructor(
    file: string,
    messages: AsyncGenerator<IpcMessage>,
    decoder: IpcDecoder,
    firstRow: number,
  ) {
    this.#file = file;
    this.#firstRow = firstRow;
    this.#messages = messages;
    this.#decoder = decoder;
    this.layout = { schema: decoder.schema };
  }

  static async open(path: string, part: BatchPart, versions?: UrlVersions): Promise<OpenArrow> {
    const file = inputName(path);
    const messages = await messagesOf(path, part, versions);
    try {
      const first = await messages.next();
      if (first.done) throw new DataError('the Arrow data have no schema', { phase: 'read', file });
      return new OpenArrow(file, messages, new IpcDecoder(first.value, file, part.from), part.firstRow);
    } catch (error) {
      await messages.return(undefined);
      throw error;
    }
  }

  async *read(_layout: ArrowLayout, schema: Schema): AsyncGenerator<RecordBatch, undefined> {
    let firstRow = this.#firstRow;
    for await (const message of this.#messages) {
      for (const batch of this.#decoder.decode(message)) {
        if (batch.numRows === 0) continue;
        yield setOrigin(conformBatch(batch, schema), { file: this.#file, firstRow });
        firstRow += batch.numRows;
      }
    }
    return undefined;
  }

  async close(): Promise<void> {
    await this.#messages.return(undefined);
  }
}

async function messagesOf(
  path: string,
  part: BatchPart,
  versions: UrlVersions | undefined,
): Promise<AsyncGenerator<IpcMessage>> {
  if (path === STANDARD_STREAM) return ipcMessages(storedBytes(path), inputName(path), true);
  const isFile = isUrl(path) ? isMagic((await headOfUrl(path, FILE_MAGIC.length)).bytes) : isIpcFile(path);
  return isFile
    ? fileMessages(path, part, versions)
    : ipcMessages(storedBytes(path, undefined, versions), inputName(path), false);
}

function isIpcFile(path: string): boolean {
  return isMagic(firstBytes(path, FILE_MAGIC.length));
}

function isMagic(bytes: Uint8Array): boolean {
  return Buffer.from(bytes).toString('latin1') === FILE_MAGIC;
}
