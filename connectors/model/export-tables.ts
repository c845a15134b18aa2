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
import { join } from 'node:path';
import { throwIfAborted } from '../../engine/errors.ts';
import { toHalf } from '../../engine/numbers/half.ts';
import { parquetBackend } from '../parquet/backends.ts';
import type { ExportedSides, ExportForm } from './exported-sides.ts';
import { type IdColumn, idCount, idData } from './id-column.ts';

const BATCH_FLOATS = 1 << 20;

/** Writes users.parquet and items.parquet: id, features. */
export async function writeTables(folder: string, sides: ExportedSides, form: ExportForm): Promise<void> {
  for (const [side, { ids, factors }] of Object.entries(sides)) {
    await writeParquet(join(folder, `${side}s.parquet`), ids, factors, form.rank, form.precision);
    throwIfAborted(form.signal, 'export');
  }
}

async function writeParquet(
  path: string,
  ids: IdColumn,
  factors: Float32Array,
  rank: number,
  precision: ExportForm['precision'],
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
