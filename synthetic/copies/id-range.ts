import type { ParquetFileInfo } from '../../connectors/parquet/backend.ts';
import type { ParquetSource } from '../../connectors/parquet/parquet-source.ts';
import { DataError, throwIfAborted } from '../../engine/errors.ts';

export interface IdRange {
  readonly smallest: number;
  readonly largest: number;
}

const nothing: IdRange = { smallest: Infinity, largest: -Infinity };

/**
 * Smallest and largest id of an int32 or int64 column over all sources: from their footers, or from the
 * column itself if footers lack statistics. Above 2^53 they are rounded.
 *
 * @throws DataError if there are no rows.
 */
export async function idRange(
  sources: readonly ParquetSource[],
  column: string,
  signal: AbortSignal,
): Promise<IdRange> {
  let range = nothing;
  for (const source of sources)
    range = union(
      range,
      rangeInFooters(await source.files(), column) ?? (await rangeInRows(source, column, signal)),
    );
  if (range.smallest <= range.largest) return range;
  throw new DataError('there are no ratings to copy', { phase: 'generate', column });
}

function union(a: IdRange, b: IdRange): IdRange {
  return { smallest: Math.min(a.smallest, b.smallest), largest: Math.max(a.largest, b.largest) };
}

function rangeInFooters(files: readonly ParquetFileInfo[], column: string): IdRange | undefined {
  let range = nothing;
  for (const { rowGroups } of files) {
    for (const { rows, columns } of rowGroups) {
      const { min, max } = columns.find((chunk) => chunk.column === column)?.statistics ?? {};
      if (rows === 0) continue;
      if (min === undefined || max === undefined) return undefined;
      range = union(range, { smallest: Number(min), largest: Number(max) });
    }
  }
  return range;
}

async function rangeInRows(source: ParquetSource, column: string, signal: AbortSignal): Promise<IdRange> {
  let { smallest, largest } = nothing;
  for await (const batch of await source.execute({ signal }, [column])) {
    throwIfAborted(signal, 'generate');
    const values: Int32Array | BigInt64Array = batch.data.children[0].values;
    const wide = values instanceof BigInt64Array;
    const words = wide ? new Int32Array(values.buffer, values.byteOffset, 2 * batch.numRows) : values;
    for (let row = 0; row < batch.numRows; row++) {
      const id = wide ? words[2 * row + 1] * 2 ** 32 + (words[2 * row] >>> 0) : words[row];
      if (id < smallest) smallest = id;
      if (id > largest) largest = id;
    }
  }
  return { smallest, largest };
}
