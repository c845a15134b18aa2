import { Schema } from 'apache-arrow';
import type { RecordBatch } from 'apache-arrow';
import { throwIfAborted } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { ValueNeeds } from '../../engine/stream/operator.ts';
import type { ReadSplit, ReadSplitOptions, SourceSplit, SplitEnd } from '../../engine/stream/split.ts';
import { originOf, setOrigin } from '../../engine/stream/stream.ts';
import { conformBatch } from './common-schema.ts';
import type { EndsWhole } from './file-stamp.ts';
import type { ConstantColumn } from '../folders/folder-columns.ts';

/** One open file, or a part of it, with known columns. It can be read once. */
export interface OpenFile<Layout> {
  readonly layout: Layout;
  /**
   * The rows under `schema`, which has some of the file's columns in their order; every batch has its origin.
   * `takesFaults` is of ValueNeeds. Returns the end of a byte range.
   *
   */
  read(
    layout: Layout,
    schema: Schema,
    options: ReadSplitOptions,
  ): AsyncGenerator<RecordBatch, SplitEnd | undefined>;
  close(): Promise<void>;
}

/**
 * A part of a file as plain JSON, without the file's name: what the format's `reopen` needs, and the sizes of
 * SourceSplit.
 */
export type FilePart = JsonObject & Pick<SourceSplit, 'bytes' | 'rows' | 'range'>;

/** A kind of file that is read from its beginning to its end, or in parts. */
export interface FileFormat<Layout extends { readonly schema: Schema }> {
  /** The name under which the reader of its splits is found (connectors/read-split.ts). */
  readonly name: string;
  /** Endings of such files inside folders. */
  readonly extensions: readonly string[];
  /** Opens a file to learn its layout, and to read all of it. */
  open(file: string): Promise<OpenFile<Layout>>;
  /** Opens a file whose layout is known; `size`: bytes that are read, at most. */
  reopen(file: string, layout: Layout, size: number): Promise<OpenFile<Layout>>;
  /** Absent where files must not grow while they are read. */
  readonly endsWhole?: EndsWhole;
  /** Makes the layouts of several files agree where that is possible. */
  reconcile?(layouts: readonly Layout[], needs?: ValueNeeds): readonly Layout[];
  /**
   * Cuts the first `size` bytes of a file into parts of about `targetBytes`, with all that another thread needs
   * to read them.
   */
  cut(file: string, layout: Layout, targetBytes: number, size: number): Promise<readonly FilePart[]>;
}

/**
 * Reads an open file, and closes it: its own columns among those of `schema`, and constants for the others.
 */
export async function* readOpenFile<Layout extends { readonly schema: Schema }>(
  open: OpenFile<Layout>,
  layout: Layout,
  schema: Schema,
  constants: readonly ConstantColumn[],
  options: ReadSplitOptions,
): AsyncGenerator<RecordBatch, SplitEnd | undefined> {
  try {
    const wanted = new Set(schema.fields.map(({ name }) => name));
    const stored = layout.schema.fields.filter(({ name }) => wanted.has(name));
    // Reads the file's first column to count the rows, where none of its own columns is wanted.
    const batches = open.read(
      layout,
      new Schema(stored.length > 0 ? stored : layout.schema.fields.slice(0, 1)),
      options,
    );
    try {
      for (;;) {
        const next = await batches.next();
        throwIfAborted(options.signal, 'read');
        if (next.done) return next.value;
        const origin = originOf(next.value);
        const conformed = conformBatch(next.value, schema, constants);
        yield origin ? setOrigin(conformed, origin) : conformed;
      }
    } finally {
      await batches.return(undefined);
    }
  } finally {
    await open.close();
  }
}

/** A part of a file of a file set. */
export type FileSplit = SourceSplit & { readonly constants: readonly ConstantColumn[] };

/** The reader of a format's splits; `open` opens the part. */
export function fileSplitReader<Layout extends { readonly schema: Schema }>(
  open: (split: FileSplit) => Promise<OpenFile<Layout>>,
): ReadSplit {
  return async function* (split, schema, options) {
    throwIfAborted(options.signal, 'read');
    const opened = await open(split as FileSplit);
    return yield* readOpenFile(opened, opened.layout, schema, (split as FileSplit).constants, options);
  };
}
