/** Times of recommending on a GPU: each stage separately, on a GPU opened in the calling thread. */
import { Field, Float32, Int32, Schema } from 'apache-arrow';
import { keyCount } from '../../engine/keys/key-column.ts';
import { spinKernel } from '../../gpu/copies/spin.ts';
import { TOP_N_ROWS, topNKernel } from '../../gpu/serving/top-n.ts';
import type { Gpu } from '../../gpu/webgpu/gpu.ts';
import { openGpu } from '../../gpu/webgpu/open-gpu.ts';
import { uploadRows } from '../../gpu/copies/matrix-rows.ts';
import { type DeviceMatrix, strideOf } from '../../gpu/device/resources.ts';
import type { FactorModel } from '../../operators/serving/factor-model.ts';
import { itemsByNorm } from '../../operators/serving/items-by-norm.ts';
import { topBatch } from '../../operators/serving/recommend.ts';

/** Milliseconds by stage. */
export type StageTimes = Readonly<Record<string, number>>;

/** Users per task, as operators/serving/recommend.ts sends them to a GPU for ten items. */
const STEP = 32_768;

const schema = new Schema([
  new Field('user', new Int32(), false),
  new Field('rank', new Int32(), false),
  new Field('item', new Int32(), false),
  new Field('prediction', new Float32(), false),
]);

/** Runs two rounds over all users; ids are int32. */
export async function recommendStages(
  given: FactorModel,
  n: number,
): Promise<readonly [StageTimes, StageTimes]> {
  const times: Record<string, number> = {};
  const gpu = await timed(times, 'open the GPU', () => openGpu());
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
  const search = await prepare(gpu, given, n, times);
  const users = keyCount(search.model.users);
  for (let from = 0; from < users; from += STEP) {
    const rows = Math.min(STEP, users - from);
    await recommendTo(search, { from, rows, n }, times);
  }
  for (const buffer of [search.lists, search.items.values, search.bounds]) buffer.destroy();
  return times;
}

/** The model and its items on the GPU, ready to be searched. */
interface Search {
  readonly gpu: Gpu;
  readonly model: FactorModel;
  readonly kernel: Awaited<ReturnType<Gpu['compile']>>;
  readonly items: DeviceMatrix;
  readonly bounds: GPUBuffer;
  readonly lists: GPUBuffer;
}

async function prepare(
  gpu: Gpu,
  given: FactorModel,
  n: number,
  times: Record<string, number>,
): Promise<Search> {
  const { model, bounds: norms } = await timed(times, 'host: items by norm', () => itemsByNorm(given));
  await timed(times, 'compile spin', () => gpu.compile(spinKernel, {}));
  const kernel = await timed(times, 'compile top-n', () =>
    gpu.compile(topNKernel, { excluding: false, bounded: true, ordered: false }),
  );
  const lists = await timed(times, 'make buffers', () => gpu.buffer(8 * STEP * n, 'lists'));
  const items = await timed(times, 'make buffers', () => matrix(gpu, model, keyCount(model.items)));
  const bounds = await timed(times, 'make buffers', () =>
    gpu.buffer(norms.columns.values.byteLength, 'bounds'),
  );
  await timed(times, 'upload items', async () => {
    await uploadRows(gpu, items, model.itemFactors);
    await gpu.upload(bounds, norms.columns.values);
    await gpu.pass('wait').submit();
  });
  return { gpu, model, kernel, items, bounds, lists };
}

async function matrix(gpu: Gpu, { rank }: FactorModel, rows: number): Promise<DeviceMatrix> {
  const stride = strideOf(rank);
  return { rows, columns: rank, stride, values: await gpu.buffer(rows * stride * 4, 'factors') };
}

/** Handles one task's users: uploads them, finds their lists and makes Arrow batches of these. */
async function recommendTo(
  search: Search,
  { from, rows, n }: { readonly from: number; readonly rows: number; readonly n: number },
  times: Record<string, number>,
): Promise<void> {
  const { gpu, model, lists } = search;
  const { rank } = model;
  const users = await timed(times, 'make buffers', () => matrix(gpu, model, rows));
  await timed(times, 'upload users', async () => {
    await uploadRows(gpu, users, model.userFactors.subarray(from * rank, (from + rows) * rank));
    await gpu.pass('wait').submit();
  });
  const onGpu = await timed(times, 'search, wall', () => topN(search, users, n));
  times['search on the GPU'] = (times['search on the GPU'] ?? 0) + onGpu;
  const both = await timed(
    times,
    'host: memory of the lists',
    () => new Uint32Array(new SharedArrayBuffer(8 * rows * n)),
  );
  await timed(times, 'read lists back', () => gpu.download(lists, both));
  const [found, scores] = [both.subarray(0, rows * n), new Float32Array(both.buffer, 4 * rows * n)];
  await timed(times, 'host: Arrow batches', () => topBatch(schema, model, from, n, found, scores));
  users.values.destroy();
}

/** Milliseconds of the search on the GPU. */
async function topN(
  { gpu, model, kernel, items, bounds, lists }: Search,
  users: DeviceMatrix,
  n: number,
): Promise<number> {
  const { rows } = users;
  const bindings = {
    row_factors: users.values,
    column_factors: items.values,
    exclude_offsets: users.values,
    exclude_indices: users.values,
    bounds,
    order: bounds,
    lists,
  };
  const uniforms = {
    columns: items.rows,
    quads: users.stride / 4,
    slabs: Math.ceil(model.rank / 8),
    n,
    scores_at: rows * n,
    exclude_row: 0,
    from_row: 0,
    rows,
    list_row: 0,
  };
  const pass = gpu.pass('top-n').dispatch(kernel, bindings, uniforms, Math.ceil(rows / TOP_N_ROWS));
  const { times } = await pass.submit({ timed: true });
  return times['top-n'] ?? 0;
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
