/**
 * SGD on a GPU: Markdown tables (bench/results/sgd-gpu.json), on a data set from `factorflow generate` that
 * is loaded once.
 *
 *     node bench/gpu/sgd/sgd.ts FOLDER [--tables settings,workers,blocks,epochs] [--settings JSON] [--rank 128] [--epochs 20]
 *         [--seconds 200] [--output FILE]
 *
 *     settings   median epoch, the GPU's part of it, updates/s, bandwidth compared with copies, test RMSE
 *     workers    updates/s by the number of workers (cuMF_SGD, Figure 9a)
 *     blocks     test RMSE by i, R in i x i blocks (Figure 15)
 *     epochs     test RMSE by epoch for each schedule (Figure 9b)
 *
 * `--settings` replaces the settings of the first table:
 * '[{"rank":128,"tile":{"lanes":16}},{"rank":64,"schedule":"hogwild"}]', parameters of SGD and changes to the
 * schedule that follows from them. `--rank` is k of the other tables. Tables that do not fit in `--seconds`
 * are left out.
 */
import { parseArgs } from 'node:util';
import { openGpu } from '../../../gpu/webgpu/open-gpu.ts';
import { describeMachine } from '../../machine.ts';
import { copyRate } from '../bandwidth.ts';
import { chosenTables } from '../tables/bench-report.ts';
import {
  blocksTable,
  epochsTable,
  settingsTable,
  SgdBench,
  type SgdTable,
  workersTable,
} from '../tables/sgd-tables.ts';
import { type SgdSetting, SgdTraining } from './sgd-training.ts';

const tables: Readonly<Record<string, SgdTable>> = {
  settings: settingsTable,
  workers: workersTable,
  blocks: blocksTable,
  epochs: epochsTable,
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    tables: { type: 'string', default: Object.keys(tables).join(',') },
    settings: { type: 'string', default: '[]' },
    epochs: { type: 'string', default: '20' },
    rank: { type: 'string', default: '128' },
    seconds: { type: 'string', default: '200' },
    output: { type: 'string' },
  },
});
const { folder, names } = chosenTables(positionals[0], values.tables, tables);
const settings = JSON.parse(values.settings) as SgdSetting[];
const gpu = await openGpu();
const rate = (await copyRate(gpu)) / 1e6;
await gpu.close();
const training = await SgdTraining.open(folder);
const bench = new SgdBench(
  training,
  rate,
  { epochs: Number(values.epochs), rank: Number(values.rank) },
  { seconds: Number(values.seconds), output: values.output },
);
bench.line(describeMachine());
bench.line(training.description);
await bench.tables(names.map((name) => ({ name, run: () => tables[name](bench, settings) })));
await training.close();
