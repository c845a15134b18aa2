import type { RecordBatch, Schema } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { setOrigin } from '../../engine/stream/stream.ts';
import { conformBatch } from '../files/common-schema.ts';
import { FileSetSource } from '../files/file-set-source.ts';
import type { FileFormat, OpenFile } from '../files/file-set-source.ts';
import { arrowExtensions } from '../files/format-names.ts';
import { inputName, STANDARD_STREAM } from '../files/path-kinds.ts';
import { firstBytes, storedBytes } from '../files/stored-bytes.ts';
import { fileMessages } from './file-messages.ts';
import { IpcDecoder } from './ipc-decoder.ts';
import { FILE_MAGIC, ipcMessages } from './ipc-messages.ts';
import type { IpcMessage } from './ipc-messages.ts';

export interface ArrowLayout {
  readonly schema: Schema;
}

/**
 * Arrow IPC, file or stream format (told apart by their first bytes), as a Source: a file, a folder, a glob, several of these, or
 * "-" for stdin. Feather's version 2 is the file format. Files are read by their footer, streams and stdin from beginning to end, a
 * batch at a time, so memory holds one or two of the writer's batches. Stdin must end with the stream's end mark. Buffers may be
 * compressed by lz4, or by zstd with Node 22.15 or newer. Text in views, dictionaries or with 64-bit offsets becomes Utf8.
 */
export class ArrowSource extends FileSetSource<ArrowLayout> {
  readonly name = 'arrow-source';
  readonly phase = 'read';

  constructor(paths: string | readonly string[]) {
    super(paths, { extensions: arrowExtensions, open: (file) => OpenArrow.open(file) } satisfies FileFormat<ArrowLayout>);
  }
}

class OpenArrow implements OpenFile<ArrowLayout> {
  readonly layout: ArrowLayout;
  readonly #file: string;
  readonly #messages: AsyncGenerator<IpcMessage>;
  readonly #decoder: IpcDecoder;

  private constructor(file: string, messages: AsyncGenerator<IpcMessage>, decoder: IpcDecoder) {
    this.#file = file;
    this.#messages = messages;
    this.#decoder = decoder;
    this.layout = { schema: decoder.schema };
  }

  static async open(path: string): Promise<OpenArrow> {
    const file = inputName(path);
    const messages = await messagesOf(path);
    try {
      const first = await messages.next();
      if (first.done) throw new DataError('the Arrow data have no schema', { phase: 'read', file });
      return new OpenArrow(file, messages, new IpcDecoder(first.value, file));
    } catch (error) {
      await messages.return(undefined);
      throw error;
    }
  }

  async *read(_layout: ArrowLayout, schema: Schema): AsyncGenerator<RecordBatch> {
    let firstRow = 0;
    for await (const message of this.#messages) {
      const batch = this.#decoder.decode(message);
      if (batch === undefined || batch.numRows === 0) continue;
      yield setOrigin(conformBatch(batch, schema), { file: this.#file, firstRow });
      firstRow += batch.numRows;
    }
  }

  async close(): Promise<void> {
    await this.#messages.return(undefined);
  }
}

async function messagesOf(path: string): Promise<AsyncGenerator<IpcMessage>> {
  if (path === STANDARD_STREAM) return ipcMessages(storedBytes(path), inputName(path), true);
  const head = Buffer.from(await firstBytes(path, FILE_MAGIC.length)).toString('latin1');
  return head === FILE_MAGIC ? fileMessages(path) : ipcMessages(storedBytes(path), path, false);
}
