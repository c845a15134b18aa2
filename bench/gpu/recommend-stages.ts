/** Times of recommending on a GPU: each stage alone, on a GPU of the calling thread. */
import { Field, Float32, Int32, Schema } from 'apache-arrow';
import { keyCount } from '../../engine/keys/key-column.ts';
import { spinKernel } from '../../gpu/copies/spin.ts';
import { TOP_N_ROWS, topNKernel } from '../../gpu/serving/top-n.ts';
import { Gpu } from '../../gpu/webgpu/gpu.ts';
import { uploadRows } from '../../gpu/copies/matrix-rows.ts';
import { type DeviceMatrix, strideOf } from '../../gpu/device/resources.ts';
import type { FactorModel } from '../../operators/serving/factor-model.ts';
import { itemsByNorm } from '../../operators/serving/items-by-norm.ts';
import { topBatch } from '../../operators/serving/recommend.ts';

/** Milliseconds by stage. */
export type StageTimes = Readonly<Record<string, number>>;

/** Users of a task, as operators/serving/recommend.ts gives them to a GPU for ten items. */
const STEP = 32_768;

const schema = new Schema([
  new Field('user', new Int32(), false),
  new Field('rank', new Int32(), false),
  new Field('item', new Int32(), false),
  new Field('prediction', new Float32(), false),
]);

/** Two rounds over all users; ids are int32. */
export async function recommendStages(
  given: FactorModel,
  n: number,
): Promise<readonly [StageTimes, StageTimes]> {
  const times: Record<string, number> = {};
  const gpu = await timed(times, 'open the GPU', () => Gpu.open());
  const first = await round(gpu, given, n, times);
  const second = await round(gpu, given, n, {});
  await gpu.close();
  return [first, second];
}

async function round(
  gpu: Gpu,
  given: FactorModel,
  n: number,
  times: Record<string, number>,
): Promise<StageTimes> {
  const { model, bounds } = await timed(times, 'host: items by norm', () => itemsByNorm(given));
  await timed(times, 'compile spin', () => gpu.compile(spinKernel, {}));
  const kernel = await timed(times, 'compile top-n', () =>
    gpu.compile(topNKernel, { excluding: false, bounded: true, ordered: false }),
  );
  const [users, items] = [keyCount(model.users), keyCount(model.items)];
  const matrix = async (rows: number): Promise<DeviceMatrix> => ({
    rows,
    columns: model.rank,
    stride: strideOf(model.rank),
    values: await gpu.buffer(rows * strideOf(model.rank) * 4, 'factors'),
  });
  const lists = await timed(times, 'make buffers', () => gpu.buffer(8 * STEP * n, 'lists'));
  const columns = await timed(times, 'make buffers', () => matrix(items));
  const norms = await timed(times, 'make buffers', () =>
    gpu.buffer(bounds.columns.values.byteLength, 'bounds'),
  );
  await timed(times, 'upload items', async () => {
    await uploadRows(gpu, columns, model.itemFactors);
    await gpu.upload(norms, bounds.columns.values);
    await gpu.pass('wait').submit();
  });
  for (let from = 0; from < users; from += STEP) {
    const rows = Math.min(STEP, users - from);
    const own = await timed(times, 'make buffers', () => matrix(rows));
    await timed(times, 'upload users', async () => {
      await uploadRows(gpu, own, model.userFactors.subarray(from * model.rank, (from + rows) * model.rank));
      await gpu.pass('wait').submit();
    });
    const bindings = {
      row_factors: own.values,
      column_factors: columns.values,
      exclude_offsets: own.values,
      exclude_indices: own.values,
      bounds: norms,
      order: norms,
      lists,
    };
    const uniforms = {
      columns: items,
      quads: own.stride / 4,
      slabs: Math.ceil(model.rank / 8),
      n,
      scores_at: rows * n,
      exclude_row: 0,
      from_row: 0,
      rows,
      list_row: 0,
    };
    const { 'top-n': onGpu = 0 } = await timed(
      times,
      'search, wall',
      async () =>
        (
          await gpu
            .pass('top-n')
            .dispatch(kernel, bindings, uniforms, Math.ceil(rows / TOP_N_ROWS))
            .submit({ timed: true })
        ).times,
    );
    times['search on the GPU'] = (times['search on the GPU'] ?? 0) + onGpu;
    const both = await timed(
      times,
      'host: memory of the lists',
      () => new Uint32Array(new SharedArrayBuffer(8 * rows * n)),
    );
    await timed(times, 'read lists back', () => gpu.download(lists, both));
    await timed(times, 'host: Arrow batches', () =>
      topBatch(
        schema,
        model,
        from,
        n,
        both.subarray(0, rows * n),
        new Float32Array(both.buffer, 4 * rows * n),
      ),
    );
    own.values.destroy();
  }
  for (const buffer of [lists, columns.values, norms]) buffer.destroy();
  return times;
}

async function timed<T>(
  times: Record<string, number>,
  stage: string,
  work: () => T | Promise<T>,
): Promise<T> {
  const begin = performance.now();
  const result = await work();
  times[stage] = (times[stage] ?? 0) + performance.now() - begin;
  return result;
}
