/**
 * SGD on a GPU, setting by setting, on ratings that are loaded once: the median epoch, updates/s, the bytes that the steps
 * move, and the test RMSE on the way.
 *
 *     node bench/gpu/sgd.ts FOLDER '[{"rank":128,"tile":{"lanes":8}},{"rank":128,"schedule":"hogwild"}]' [epochs = 20]
 *
 * `tile`: what differs from the tiles that the schedule chose; `workers`, `lanes`, `precision`: of Hogwild!.
 */
import { join } from 'node:path';
import { inDeviceScope } from '../../engine/device-scope.ts';
import { computeDevice } from '../../engine/devices.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import { andThen, executePlan, runInto } from '../../engine/logical-plan.ts';
import { RunMetrics } from '../../engine/metrics.ts';
import { type Dataset, Session } from '../../index.ts';
import { devicePlan } from '../../operators/als-plan.ts';
import { chooseSchedule } from '../../operators/choose-schedule.ts';
import { IndexIds } from '../../operators/index-ids.ts';
import { collectKnownPairs } from '../../operators/known-pairs.ts';
import { SelectRatings } from '../../operators/select-ratings.ts';
import { trainSgd } from '../../operators/sgd.ts';
import { loadSgdData, loadSgdTest } from '../../operators/sgd-data.ts';
import { checkSgdParams, type SgdParams } from '../../operators/sgd-params.ts';
import type { SgdSchedule } from '../../operators/sgd-schedule.ts';
import type { TileShape } from '../../operators/sgd-tiles.ts';

type Setting = Partial<SgdParams> & { readonly tile?: Partial<TileShape>; readonly workers?: number; readonly lanes?: number };

const [folder, given, epochs = '20'] = process.argv.slice(2);
const settings = JSON.parse(given) as Setting[];
await using session = await Session.create({ device: 'gpu' });
console.log(session.device.description);
await inDeviceScope(session.context(), async (ctx) => {
  const device = computeDevice(ctx.executor);
  const selected = ({ plan }: Dataset) => andThen(plan, new SelectRatings({ user: 'user', item: 'item', rating: 'rating' }));
  const indexed = await runInto(selected(session.read.parquet(join(folder, 'train'))), new IndexIds(), ctx);
  const { users, items, rows: ratings } = indexed;
  const counts = { users: keyCount(users), items: keyCount(items) };
  const rows = counts.users >= counts.items ? 'users' : 'items';
  const data = await loadSgdData(indexed, { kind: 'blocks', workers: 1, rows, rowBands: 1, columnBands: 1, reasons: [] }, { duplicates: 'keep', seed: 1, biases: false }, ctx);
  const known = await collectKnownPairs(await executePlan(selected(session.read.parquet(join(folder, 'test'))), ctx), users, items, ctx);
  const test = await loadSgdTest(known.indexed, data, ctx);
  for (const { tile, workers, lanes, ...named } of settings) {
    const params = checkSgdParams({ rank: 128, regParam: 0.05, seed: 1, maxIter: Number(epochs), ...named });
    try {
      const chosen = chooseSchedule(counts, params, devicePlan(device));
      const schedule: SgdSchedule = { ...chosen, ...(chosen.tile && { tile: { ...chosen.tile, ...tile } }), ...(workers && { workers }), ...(lanes && { lanes }) };
      const metrics = new RunMetrics();
      const { iterations } = await trainSgd({ data, schedule, test }, params, { ...ctx, metrics });
      const wall = median(iterations.slice(2).map(({ seconds }) => seconds * 1000));
      const task = metrics.get('sgd-epoch');
      // Ratings once; a column's factors read and written at each; a row's where it changes.
      const bytes = ratings * (8 + 2 * params.rank * (schedule.precision === 'f16' ? 2 : 4));
      const rmse = iterations.flatMap(({ iteration, testRmse = Number.NaN }) => ([1, 2, 5, 10, 15, 20].includes(iteration) ? [`${iteration}: ${testRmse.toFixed(4)}`] : []));
      const shape = schedule.tile ? `${schedule.tile.tiles} tiles of ${schedule.tile.places}, ${schedule.tile.threads} threads in teams of ${schedule.tile.lanes}, ${schedule.tile.precision}` : `${schedule.workers} teams of ${schedule.lanes ?? 1}, ${schedule.precision}`;
      console.log(`rank ${params.rank} ${schedule.kind} (${shape}): median epoch ${wall.toFixed(2)} ms, ${(ratings / wall / 1e6).toFixed(2)} G updates/s, columns' bytes ${(bytes / wall / 1e6).toFixed(0)} GB/s; tasks ${((task?.milliseconds ?? 0) / iterations.length).toFixed(2)} ms each | test RMSE ${rmse.join(', ')}`);
    } catch (error) {
      console.log(`${JSON.stringify({ tile, ...named })}: ${error instanceof Error ? error.message.slice(0, 400) : String(error)}`);
    }
  }
});

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}
