import type { ReadSplit } from '../engine/stream/split.ts';
import { requireStamp } from './files/file-stamp.ts';
import type { FileKind } from './files/format-names.ts';
import { formats } from './formats.ts';

/** Reads a split of any format (see ReadSplit). */
export const readSplit: ReadSplit = async function* (split, schema, options) {
  const format = formats[split.format as FileKind];
  if (format === undefined) throw new Error(`no reader of splits of the format ${split.format}`);
  requireStamp(split.file, split.stamp);
  return yield* (await format.readSplit())(split, schema, options);
};
