import {
  Field,
  FixedSizeList,
  Float16,
  Float32,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  type TypeMap,
} from 'apache-arrow';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { throwIfAborted, UsageError } from '../../engine/errors.ts';
import { toHalf } from '../../engine/numbers/half.ts';
import { fileProblem } from '../files/file-problem.ts';
import { npyBytes } from '../numpy/npy.ts';
import { atomicOutput } from '../output/atomic-output.ts';
import { parquetBackend } from '../parquet/backends.ts';
import { type IdColumn, idCount, idData } from './id-column.ts';

export interface ExportOptions {
  /**
   * NumPy arrays (user_ids.npy, user_factors.npy, item_ids.npy, item_factors.npy), or Parquet (users.parquet,
   * items.parquet: id, features).
   */
  readonly format: 'npy' | 'parquet';
  readonly precision: 'float32' | 'float16';
  readonly overwrite?: boolean;
  readonly signal?: AbortSignal;
}

/** The ids of one side, and `rank` numbers for each. */
export interface ExportedSide {
  readonly ids: IdColumn;
  readonly factors: Float32Array;
}

const names = [
  'user_ids.npy',
  'user_factors.npy',
  'item_ids.npy',
  'item_factors.npy',
  'users.parquet',
  'items.parquet',
];
const BATCH_FLOATS = 1 << 20;

/** Writes a folder with the factors of both sides. It appears completely or not at all. */
export async function exportFactors(
  directory: string,
  sides: { readonly user: ExportedSide; readonly item: ExportedSide },
  rank: number,
  { format = 'npy', precision = 'float32', ...options }: Partial<ExportOptions>,
): Promise<void> {
  if (format !== 'npy' && format !== 'parquet')
    throw new UsageError(`format must be npy or parquet, got ${String(format)}`);
  if (precision !== 'float32' && precision !== 'float16')
    throw new UsageError(`precision must be float32 or float16, got ${String(precision)}`);
  throwIfAborted(options.signal, 'export');
  const bytes = Object.values(sides).reduce((sum, { factors }) => sum + factors.byteLength, 0);
  const output = await atomicOutput(directory, {
    kind: 'folder',
    overwrite: options.overwrite,
    recognizes: (path) => names.includes(path),
    durable: true,
  });
  try {
    for (const [side, { ids, factors }] of Object.entries(sides)) {
      if (format === 'parquet')
        await writeParquet(join(output.temporary, `${side}s.parquet`), ids, factors, rank, precision);
      else {
        await writePieces(
          join(output.temporary, `${side}_ids.npy`),
          npyBytes({
            shape: [idCount(ids)],
            ...(ids.type === 'utf8' ? { texts: textsOf(ids) } : { values: ids.values }),
          }),
        );
        await writePieces(
          join(output.temporary, `${side}_factors.npy`),
          npyBytes({
            shape: [idCount(ids), rank],
            ...(precision === 'float16' ? { half: toHalf(factors) } : { values: factors }),
          }),
        );
      }
      throwIfAborted(options.signal, 'export');
    }
    await output.commit();
  } catch (error) {
    throw await output.fail(
      fileProblem(error, 'export', directory),
      precision === 'float16' ? bytes / 2 : bytes,
    );
  }
}

async function writePieces(path: string, pieces: readonly Uint8Array[]): Promise<void> {
  const file = await open(path, 'wx');
  try {
    for (const piece of pieces) await file.writeFile(piece);
  } finally {
    await file.close();
  }
}

function textsOf({ offsets, bytes }: { readonly offsets: Int32Array; readonly bytes: Uint8Array }): string[] {
  return Array.from({ length: offsets.length - 1 }, (_, i) =>
    Buffer.from(bytes.subarray(offsets[i], offsets[i + 1])).toString('utf8'),
  );
}

async function writeParquet(
  path: string,
  ids: IdColumn,
  factors: Float32Array,
  rank: number,
  precision: ExportOptions['precision'],
): Promise<void> {
  const float = precision === 'float16' ? new Float16() : new Float32();
  const type = new FixedSizeList(rank, new Field('element', float, false));
  const schema = new Schema([
    new Field('id', idData(ids, 0, 0).type, false),
    new Field('features', type, false),
  ]);
  const rows = idCount(ids);
  const step = Math.max(1, Math.floor(BATCH_FLOATS / rank));
  const writer = await (
    await parquetBackend()
  ).create(path, schema, { codec: 'zstd', rowGroupSize: 8 * step, dictionary: false });
  try {
    for (let from = 0; from < rows || from === 0; from += step) {
      const to = Math.min(rows, from + step);
      const values = factors.subarray(from * rank, to * rank);
      const child = makeData({
        type: float as Float32,
        length: values.length,
        nullCount: 0,
        data: (precision === 'float16' ? toHalf(values) : values) as Float32Array,
      });
      const features = makeData({
        type: type as FixedSizeList<Float32>,
        length: to - from,
        nullCount: 0,
        child,
      });
      await writer.write(
        new RecordBatch(
          schema,
          makeData({
            type: new Struct<TypeMap>(schema.fields),
            length: to - from,
            nullCount: 0,
            children: [idData(ids, from, to), features],
          }),
        ),
      );
    }
    await writer.close();
  } catch (error) {
    await writer.abort();
    throw error;
  }
}
