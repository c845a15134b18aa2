import type { JsonObject } from '../../engine/json.ts';
import type { Partition } from '../../engine/partition.ts';
import type { RowPart, RowParts } from '../../engine/row-parts.ts';
import type { TaskContracts } from '../../engine/run/step.ts';
import type { TaskOutcome } from '../../engine/task.ts';
import { sharedClock } from '../../engine/threads/shared-clock.ts';
import { fileSpan } from '../../engine/trace/trace.ts';
import { fileProblem } from '../files/file-problem.ts';
import { appendAll, createFile, syncHandle } from '../output/new-file.ts';
import { partName } from '../parquet/part-names.ts';
import { factorFile } from './factor-file.ts';
import { type IdColumn, idCount } from './id-column.ts';

/** One side of a model. Row r of the row-major matrix `factors` belongs to id r; ids ascend. */
export interface FactorTable {
  readonly ids: IdColumn;
  readonly factors: Float32Array;
}

/** A FactorTable whose factors may be in parts, for writing. */
export interface WrittenTable {
  readonly ids: IdColumn;
  readonly factors: RowParts;
}

/**
 * A part file has at least this number of floats. Parts are small, so that threads share the work evenly. A
 * larger model has WANTED_PARTS parts, until a part reaches the maximum size.
 */
const LEAST_PART_FLOATS = 1 << 22;
const MOST_PART_FLOATS = 1 << 25;
const WANTED_PARTS = 64;

/** Rows [from, to) of a side as one part file. */
export type FactorPart = { readonly file: string; readonly from: number; readonly to: number };

/** Parameters of the task: the part, and the side's RowParts without its arrays. */
export type WrittenPart = FactorPart & {
  readonly rows: number;
  readonly columns: number;
  readonly tail?: NonNullable<RowParts['tail']>;
  readonly scale?: NonNullable<RowParts['scale']>;
  readonly lead?: 0 | 1;
};

/**
 * The part files of a side. The cuts depend only on the number of rows and the rank, so the same model has
 * the same files.
 */
export function factorParts(
  rows: number,
  rank: number,
): { readonly name: string; readonly from: number; readonly to: number }[] {
  const floats = Math.min(
    MOST_PART_FLOATS,
    Math.max(LEAST_PART_FLOATS, Math.ceil((rows * rank) / WANTED_PARTS)),
  );
  const step = Math.max(1, Math.floor(floats / rank));
  return Array.from({ length: Math.max(1, Math.ceil(rows / step)) }, (_, part) => ({
    name: partName(part),
    from: part * step,
    to: Math.min(rows, (part + 1) * step),
  }));
}

/**
 * Writes id, features: list<float> of one part, and waits until it is on the disk. The same rows give the
 * same bytes. Returns the number of bytes.
 */
export async function writeFactorPart(
  { ids, factors }: WrittenTable,
  { file, from, to }: FactorPart,
  cancelled: () => boolean,
): Promise<number> {
  const handle = await createFile(file);
  let bytes = 0;
  try {
    for (const pieces of factorFile(ids, factors, from, to)) {
      if (cancelled()) return bytes;
      bytes += await appendAll(handle, pieces);
    }
    await syncHandle(handle);
    return bytes;
  } catch (error) {
    throw fileProblem(error, 'save', file);
  } finally {
    await handle.close();
  }
}

/**
 * The task write-factors: writes one part file, described by WrittenPart.
 *
 *     factors   layout factor-rows: `values.0`, `own.0`, `values.1`, ... Float32, and `order` (see RowParts)
 *     ids       layout ids: `values`, or `offsets` and `bytes` of text
 *
 * It returns the value `bytes`, the size of the file.
 */
export const writeFactorsContract: TaskContracts = { 'write-factors': { ids: 'read', factors: 'read' } };

/** A side as partitions in shared memory; arrays already there are not copied. */
export function sharedSide({ ids, factors }: WrittenTable): {
  readonly ids: Partition;
  readonly factors: Partition;
} {
  const rows = idCount(ids);
  const columns: Partition['columns'] =
    ids.type === 'utf8'
      ? { offsets: shared(ids.offsets), bytes: shared(ids.bytes) }
      : { values: shared(ids.values) };
  return {
    ids: { layout: 'ids', rows, columns },
    factors: {
      layout: 'factor-rows',
      rows,
      columns: {
        ...Object.fromEntries(
          factors.parts.flatMap(({ values, own }, part) => [
            [`values.${part}`, shared(values)],
            ...(own ? [[`own.${part}`, shared(own)]] : []),
          ]),
        ),
        ...(factors.order && { order: shared(factors.order) }),
      },
    },
  };
}

function shared<T extends Int32Array | Uint32Array | BigInt64Array | Float32Array | Uint8Array>(
  values: T,
): T {
  if (values.buffer instanceof SharedArrayBuffer) return values;
  const copy = new (values.constructor as new (buffer: SharedArrayBuffer) => T)(
    new SharedArrayBuffer(values.byteLength),
  );
  copy.set(values as never);
  return copy;
}

/** Handles the task in a worker thread. */
export async function writeFactorsTask({
  params,
  partition,
  cancelled,
}: {
  readonly params: JsonObject;
  partition(name: string): Partition;
  cancelled(): boolean;
}): Promise<TaskOutcome> {
  const { rows, columns, tail, scale, lead, ...part } = params as WrittenPart;
  const { order, ...held } = partition('factors').columns;
  const stored = held as Readonly<Record<string, Float32Array | undefined>>;
  const parts: RowPart[] = [];
  for (let values = stored['values.0']; values !== undefined; values = stored[`values.${parts.length}`])
    parts.push({ values, ...(stored[`own.${parts.length}`] && { own: stored[`own.${parts.length}`] }) });
  const start = sharedClock();
  const bytes = await writeFactorPart(
    {
      ids: idsOf(partition('ids').columns),
      factors: {
        rows,
        columns,
        parts,
        ...(tail && { tail }),
        ...(scale && { scale }),
        ...(lead !== undefined && { lead }),
        ...(order && { order: order as Uint32Array }),
      },
    },
    part,
    cancelled,
  );
  const count = part.to - part.from;
  return {
    rows: count,
    bytesDown: bytes,
    values: { bytes },
    spans: [fileSpan('writes', part.file, start, { rows: count, bytes })],
  };
}

function idsOf({ values, offsets, bytes }: Partition['columns']): IdColumn {
  if (values === undefined)
    return { type: 'utf8', offsets: offsets as Int32Array, bytes: bytes as Uint8Array };
  return values instanceof BigInt64Array
    ? { type: 'int64', values }
    : { type: 'int32', values: values as Int32Array };
}
