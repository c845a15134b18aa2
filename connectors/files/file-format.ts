import { Schema } from 'apache-arrow';
import type { RecordBatch } from 'apache-arrow';
import { throwIfAborted } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { ValueNeeds } from '../../engine/stream/operator.ts';
import type { ReadSplit, ReadSplitOptions, SourceSplit, SplitEnd } from '../../engine/stream/split.ts';
import { originOf, setOrigin } from '../../engine/stream/stream.ts';
import { conformBatch } from './common-schema.ts';
import type { UrlVersions } from '../http/url-versions.ts';
import type { EndsWhole } from './file-stamp.ts';
import type { ConstantColumn } from '../folders/folder-columns.ts';

/** One open file, or a part of it, with known columns. It can be read once. */
export interface OpenFile<Layout> {
  readonly layout: Layout;
  /**
   * Reads the rows of `schema`, a selection of the file's columns in their order. Every batch has its origin.
   * `takesFaults`: see ValueNeeds. Returns the end of the byte range that was read.
   */
  read(
    layout: Layout,
    schema: Schema,
    options: ReadSplitOptions,
  ): AsyncGenerator<RecordBatch, SplitEnd | undefined>;
  close(): Promise<void>;
}

/**
 * A part of a file as plain JSON, without the file's name. It contains what the format's `reopen` needs and
 * the sizes of SourceSplit.
 */
export type FilePart = JsonObject & Pick<SourceSplit, 'bytes' | 'rows' | 'range'>;

/** A file format whose files are read from beginning to end, or in parts. */
export interface FileFormat<Layout extends { readonly schema: Schema }> {
  /** Name of the function that reads its splits (connectors/read-split.ts). */
  readonly name: string;
  /** Extensions of such files inside folders. */
  readonly extensions: readonly string[];
  /** Opens a file to learn its layout, and to read all of it. */
  open(file: string, versions: UrlVersions): Promise<OpenFile<Layout>>;
  /** Opens a file whose layout is known; `size`: bytes that are read, at most. */
  reopen(file: string, layout: Layout, size: number, versions: UrlVersions): Promise<OpenFile<Layout>>;
  /**
   * True if a file that grew had only complete rows when it was opened. Absent if files of this format must
   * not grow while they are read.
   */
  readonly endsWhole?: EndsWhole;
  /** Makes the layouts of several files agree, where possible. */
  reconcile?(layouts: readonly Layout[], needs?: ValueNeeds): readonly Layout[];
  /**
   * Cuts the first `size` bytes of a file into parts of about `targetBytes`. Each part contains everything
   * that another thread needs to read it.
   */
  cut(file: string, layout: Layout, targetBytes: number, size: number): Promise<readonly FilePart[]>;
}

/** Reads an open file, and closes it: its own columns of `schema`, and constants for the others. */
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
    // If no column of the file itself is wanted, the first one is read to count the rows.
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

/** A part of a file in a file set. */
export type FileSplit = SourceSplit & { readonly constants: readonly ConstantColumn[] };

/** Makes the function that reads a format's splits; `open` opens the part. */
export function fileSplitReader<Layout extends { readonly schema: Schema }>(
  open: (split: FileSplit) => Promise<OpenFile<Layout>>,
): ReadSplit {
  return async function* (split, schema, options) {
    throwIfAborted(options.signal, 'read');
    const opened = await open(split as FileSplit);
    return yield* readOpenFile(opened, opened.layout, schema, (split as FileSplit).constants, options);
  };
}
