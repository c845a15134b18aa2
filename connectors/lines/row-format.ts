import { Field, Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import type { ValueNeeds } from '../../engine/stream/operator.ts';
import type { ByteRange, ReadSplit } from '../../engine/stream/split.ts';
import { isPlainFile } from '../compression/unpacked-bytes.ts';
import { fileSplitReader } from '../files/file-format.ts';
import type { FileFormat, FilePart, FileSplit, OpenFile } from '../files/file-format.ts';
import { byteAt, fileSize } from '../files/stored-bytes.ts';
import { arrowType } from './arrow-type.ts';
import { RowFile } from './row-file.ts';
import type { RowLayout } from './row-layout.ts';
import { WHOLE_FILE } from './row-window.ts';
import type { RowWindow } from './row-window.ts';
import type { TextType } from './text-type.ts';

const LF = 0x0a;

/** Properties that differ between formats of lines. */
export interface RowKind<Layout extends RowLayout> extends Pick<FileFormat<Layout>, 'name' | 'extensions'> {
  readonly batchSize: number;
  infer(window: RowWindow, file: string): Layout;
  reconcile(layouts: readonly Layout[], needs?: ValueNeeds): readonly Layout[];
  /** The facts of a layout, as JSON, from which another thread makes its scanner again. */
  scanning(layout: Layout): JsonObject;
}

/** A layout as plain JSON. */
type StoredLayout = {
  readonly header: boolean;
  readonly head?: { readonly lines: number; readonly end: number };
  readonly names: readonly string[];
  readonly types: readonly TextType[];
  readonly given: readonly boolean[];
  readonly decimalComma: boolean;
  readonly nulls: readonly string[] | null;
  readonly scanning: JsonObject;
};

type RowSplit = FileSplit & { readonly layout: StoredLayout; readonly batchSize: number };

/**
 * A format of lines. Files are read whole or as byte ranges; reading cannot start in the middle of a
 * compressed file.
 */
export function rowFormat<Layout extends RowLayout>({
  name,
  extensions,
  batchSize,
  infer,
  reconcile,
  scanning,
}: RowKind<Layout>): FileFormat<Layout> {
  return {
    name,
    extensions,
    open: async (file, versions) => openRows(await RowFile.open(file, infer, versions), batchSize),
    reopen: async (file, layout, size, versions) =>
      openRows(await RowFile.openRange(file, layout, size, undefined, versions), batchSize),
    endsWhole: (file, size) => !isPlainFile(file) || byteAt(file, size - 1) === LF,
    reconcile,
    cut: async (file, layout, targetBytes, size) => {
      const { header, head, names, types, given, rules } = layout;
      const stored: StoredLayout = {
        header,
        ...(head && { head }),
        names,
        types,
        given,
        decimalComma: rules.decimalComma,
        nulls: rules.nulls === undefined ? null : [...rules.nulls],
        scanning: scanning(layout),
      };
      return rangesOf(file, targetBytes, size, head?.end).map((part): FilePart => ({
        ...part,
        layout: stored,
        batchSize,
      }));
    },
  };
}

/** Makes the reader of the format's splits; `readersOf` makes the scanner of its rows again. */
export function rowSplitReader(
  readersOf: (scanning: JsonObject, names: readonly string[]) => Pick<RowLayout, 'scanner' | 'marks'>,
): ReadSplit {
  return fileSplitReader(async (split) => {
    const { file, range, batchSize, layout, stamp } = split as RowSplit;
    const { header, head, names, types, given, decimalComma, nulls, scanning } = layout;
    const schema = new Schema(names.map((column, i) => new Field(column, arrowType(types[i]), true)));
    const rules = { decimalComma, nulls: nulls === null ? undefined : new Set(nulls) };
    const whole: RowLayout = {
      header,
      head,
      names,
      types,
      given,
      rules,
      schema,
      kinds: [],
      ...readersOf(scanning, names),
    };
    return openRows(
      await RowFile.openRange(file, whole, stamp?.size || Number.POSITIVE_INFINITY, range),
      batchSize,
    );
  });
}

function openRows<Layout extends RowLayout>(rows: RowFile<Layout>, batchSize: number): OpenFile<Layout> {
  return {
    layout: rows.layout,
    read: (layout, schema, options) => rows.read(layout, schema, batchSize, options),
    close: () => rows.close(),
  };
}

/** Byte ranges of about equal size, of which the first has the whole head; one range for a compressed file. */
function rangesOf(
  file: string,
  targetBytes: number,
  most: number,
  headEnd = 0,
): readonly { readonly bytes: number; readonly range?: ByteRange }[] {
  const size = Math.min(most, fileSize(file));
  const count = Math.ceil(size / targetBytes);
  if (count <= 1 || !isPlainFile(file)) return [{ bytes: size }];
  const starts = Array.from({ length: count }, (_, i) => Math.floor((i * size) / count)).filter(
    (start) => start === 0 || start > headEnd,
  );
  return starts.map((from, i) => ({
    bytes: (starts[i + 1] ?? size) - from,
    range: { from, to: starts[i + 1] ?? WHOLE_FILE.to, known: i === 0, rows: 0, lines: 0 },
  }));
}
