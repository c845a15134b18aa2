import type { RecordBatch, Schema } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { setOrigin } from '../../engine/stream/stream.ts';
import { conformBatch } from '../files/common-schema.ts';
import { FileSetSource } from '../files/file-set-source.ts';
import type { FileFormat, OpenFile } from '../files/file-set-source.ts';
import { arrowExtensions } from '../files/format-names.ts';
import { inputName, STANDARD_STREAM } from '../files/path-kinds.ts';
import { storedBytes } from '../files/stored-bytes.ts';
import { footerSchema } from './footer-schema.ts';
import { IpcDecoder } from './ipc-decoder.ts';
import { ipcMessages } from './ipc-messages.ts';
import type { IpcMessage } from './ipc-messages.ts';

export interface ArrowLayout {
  readonly schema: Schema;
}

/**
 * Arrow IPC, file or stream format (told apart by their first bytes), as a Source: a file, a folder, a glob, several of these, or
 * "-" for stdin. Data are read from beginning to end, a batch at a time, so memory holds one or two of the writer's batches.
 * Buffers compressed by zstd are read where Node supports it; lz4 is refused.
 */
export class ArrowSource extends FileSetSource<ArrowLayout> {
  readonly name = 'arrow-source';

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
    const messages = ipcMessages(storedBytes(path), file, () => schemaOfFile(path));
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

function schemaOfFile(path: string): Promise<IpcMessage> {
  if (path !== STANDARD_STREAM) return footerSchema(path);
  throw new DataError('this Arrow file has its schema at its end only, so it cannot be read from a pipe', { phase: 'read', file: 'stdin', advice: 'Name the file, or send the stream format' });
}
