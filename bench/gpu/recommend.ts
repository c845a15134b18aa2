/**
 * The ten best items of every user of a saved model, as Arrow batches, on a newly opened GPU and again; with
 * `--exclude` items of given pairs are excluded.
 *
 *     node bench/gpu/recommend.ts MODEL [--exclude RATINGS] [--stages] [--calls 4]
 *
 * Times whole calls, the time to the first batch and the time of the kernels. `--stages` times each stage
 * separately on a GPU of this thread, in two rounds, since the first includes start-up costs. Drivers cache
 * compiled kernels on disk, so only the first process compiles: `__GL_SHADER_DISK_CACHE=0` before the command
 * disables NVIDIA's cache.
 */
import { parseArgs } from 'node:util';
import { loadModel } from '../../connectors/model/model-store.ts';
import { computeDevice } from '../../engine/run/devices.ts';
import { keysFromVector } from '../../engine/keys/arrow-keys.ts';
import { Model, Session } from '../../index.ts';
import { describeMachine } from '../machine.ts';
import { recommendStages } from './recommend-stages.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    stages: { type: 'boolean', default: false },
    calls: { type: 'string', default: '4' },
    exclude: { type: 'string' },
  },
});
const [folder] = positionals;
if (folder === undefined) {
  console.error('Name the folder of a model');
  process.exit(2);
}
console.log(describeMachine());
await (values.stages ? stages() : calls(Number(values.calls)));

async function calls(count: number): Promise<void> {
  const opening = performance.now();
  await using session = await Session.create({ device: 'gpu' });
  const opened = performance.now();
  const model = await Model.load(session, folder);
  const device = computeDevice(session.context().executor);
  console.log(
    `${session.device.description}: opened in ${(opened - opening).toFixed(0)} ms; ${model.userCount} users, ${model.itemCount} items, rank ${model.rank} loaded in ${(performance.now() - opened).toFixed(0)} ms\n`,
  );
  const exclude =
    values.exclude === undefined ? undefined : await model.exclusions(session.read.parquet(values.exclude));
  if (exclude !== undefined) console.log(`${exclude.pairs} pairs are left out\n`);
  console.log(
    '| call | ms | M users/s | ms to the first batch | rows | kernels on the GPU, ms |\n|---|---|---|---|---|---|',
  );
  const times = (run: boolean) =>
    device.run({ kernel: 'kernel-times', inputs: {}, outputs: {}, params: { run } });
  for (let call = 1; call <= count; call++) {
    // Timing each kernel takes time, so only the last call does it.
    if (call === count) await times(true);
    const start = performance.now();
    let [rows, first] = [0, Number.NaN];
    for await (const batch of model.recommendForAllUsers(10, exclude === undefined ? {} : { exclude })) {
      if (rows === 0) first = performance.now() - start;
      rows += batch.numRows;
    }
    const all = performance.now() - start;
    const kernels =
      call === count
        ? Object.entries((await times(false)).values).map(
            ([kernel, ms]) => `${kernel} ${(ms as number).toFixed(1)}`,
          )
        : ['-'];
    console.log(
      `| ${call} | ${all.toFixed(0)} | ${(model.userCount / all / 1000).toFixed(2)} | ${first.toFixed(0)} | ${rows} | ${kernels.join(', ')} |`,
    );
  }
}

async function stages(): Promise<void> {
  const { rank, userIds, itemIds, userFactors, itemFactors } = await loadModel(folder);
  const model = {
    rank,
    users: keysFromVector(userIds, 'id'),
    items: keysFromVector(itemIds, 'id'),
    userFactors,
    itemFactors,
  };
  const [first, later] = await recommendStages(model, 10);
  console.log('\n| stage | first round, ms | second round, ms |\n|---|---|---|');
  for (const [stage, ms] of Object.entries(first))
    console.log(`| ${stage} | ${ms.toFixed(1)} | ${later[stage]?.toFixed(1) ?? '-'} |`);
}
