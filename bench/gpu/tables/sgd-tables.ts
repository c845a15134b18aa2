import { BenchReport, milliseconds, type ReportLimits } from './bench-report.ts';
import { BYTES_RULES, bytesOfEpoch } from '../sgd/sgd-bytes.ts';
import { type EpochTimes, measureEpochs } from '../sgd/sgd-measure.ts';
import type { SgdRun, SgdSetting, SgdTraining } from '../sgd/sgd-training.ts';

/** Most seconds of epochs that one line of a table may take for its test RMSE. */
const LINE_SECONDS = 12;

/** A run of the bench: the training and its report. */
export class SgdBench extends BenchReport {
  readonly training: SgdTraining;
  /** Rate of copies, in GB/s. */
  readonly copyRate: number;
  /** Epochs of a training run, and k of the tables with one rank. */
  readonly epochs: number;
  readonly rank: number;

  constructor(
    training: SgdTraining,
    copyRate: number,
    { epochs, rank }: { readonly epochs: number; readonly rank: number },
    limits: ReportLimits,
  ) {
    super(limits);
    this.training = training;
    this.copyRate = copyRate;
    this.epochs = epochs;
    this.rank = rank;
  }

  /**
   * Prepares each setting and prints its lines. A failed setting prints its error; settings that do not fit
   * in the time are counted.
   */
  async each<Setting extends SgdSetting>(
    settings: readonly Setting[],
    print: (run: SgdRun, setting: Setting) => Promise<readonly string[]>,
  ): Promise<void> {
    for (const [at, setting] of settings.entries()) {
      const label = JSON.stringify(setting);
      if (this.timeIsUp)
        return this.line(`\nTime was up before ${settings.length - at} more lines, from: ${label}`);
      const cells = await this.attempt(label, async () =>
        print(await this.training.prepare(setting), setting),
      );
      if (cells !== undefined) this.row(cells);
    }
  }

  /**
   * Test RMSE after some numbers of epochs, with the seconds of training until then, for the epochs that fit
   * in the time.
   */
  async errors(
    run: SgdRun,
    after: readonly number[],
  ): Promise<ReadonlyMap<number, { readonly seconds: number; readonly rmse: number }>> {
    const found = new Map<number, { readonly seconds: number; readonly rmse: number }>();
    const last = Math.max(0, ...after);
    let seconds = 0;
    await this.training.train(
      run,
      (epoch) => epoch <= last && seconds < LINE_SECONDS && !this.timeIsUp,
      (epoch) => after.includes(epoch),
      (epoch, ms, rmse) => {
        seconds += ms / 1000;
        if (rmse !== undefined) found.set(epoch, { seconds, rmse });
      },
    );
    return found;
  }

  updates(wall: number): string {
    return (this.training.data.ratings.ratings / wall / 1e6).toPrecision(3);
  }
}

/** A table of the bench. */
export type SgdTable = (bench: SgdBench, settings: readonly SgdSetting[]) => Promise<void>;

const defaultSettings: readonly SgdSetting[] = [
  { rank: 128 },
  { rank: 128, tile: { lanes: 16 } },
  { rank: 128, tile: { threads: 512 } },
  { rank: 128, tile: { tiles: 264, threads: 512 } },
  { rank: 128, precision: 'f32' },
  { rank: 128, schedule: 'hogwild' },
  { rank: 128, schedule: 'hogwild', precision: 'f32' },
  { rank: 64 },
  { rank: 32 },
  { rank: 128, schedule: 'wavefront' },
];

export const settingsTable: SgdTable = async (bench, given) => {
  const { training, copyRate, epochs } = bench;
  const marks = [5, 10, 20].filter((epoch) => epoch <= epochs);
  bench.head(
    `SGD by setting; copies move ${copyRate.toFixed(0)} GB/s here`,
    `Paper: cuMF_SGD Tables 4 and 5, Figure 14. ${BYTES_RULES} Bandwidth by the kernels’ own time.`,
    [
      'k',
      'schedule',
      'ms an epoch, wall (range)',
      'kernels on the GPU',
      'host beside them',
      'G updates/s',
      'GB an epoch',
      'GB/s',
      'of copies',
      `test RMSE after ${marks.join(' / ')}`,
    ],
  );
  await bench.each(given.length > 0 ? given : defaultSettings, async (run) => {
    const times = await measureEpochs(training, run);
    const errors = await bench.errors(run, marks);
    const bytes = bytesOfEpoch(training.data, run.schedule, run.params.rank);
    const rate = bytes / (times.onGpu ?? times.wall) / 1e6;
    return [
      String(run.params.rank),
      describeSchedule(run),
      `${milliseconds(times.wall)} (${milliseconds(times.low)}-${milliseconds(times.high)})`,
      kernelCell(times),
      times.onGpu === undefined ? '-' : milliseconds(times.wall - times.onGpu),
      bench.updates(times.wall),
      (bytes / 1e9).toPrecision(3),
      rate.toFixed(0),
      `${((100 * rate) / copyRate).toFixed(0)} %`,
      marks.map((epoch) => errors.get(epoch)?.rmse.toFixed(4) ?? '-').join(' / '),
    ];
  });
};

/**
 * Epochs before the tables of workers and blocks measure the test RMSE, and the longest such epoch in
 * milliseconds.
 */
const CHECKED = 5;
const CHECKED_MILLISECONDS = 400;

export const workersTable: SgdTable = async (bench) => {
  const { training, rank } = bench;
  const teams = { hogwild: [128, 512, 2048, 4096, 8192, 16384, 32768], wavefront: [32, 64, 128, 256, 512] };
  const whole = (await training.prepare({ rank })).schedule.tile;
  const lanes = whole?.lanes ?? 1;
  const perTile = [1, 4, 16, 32, 64, 128].filter((count) => count * lanes <= 1024);
  bench.head(
    `Updates/s by workers s, k = ${rank}, float16`,
    'Paper: cuMF_SGD Figure 9a, near-linear up to what the hardware holds (Maxwell: 0.27 G updates/s at s = 768). Tiles: s is the teams of all tiles, those that do not fit at once included.',
    [
      'schedule',
      's',
      'ms an epoch',
      'kernels on the GPU',
      'G updates/s',
      'M updates/s a worker',
      `test RMSE after ${CHECKED}`,
    ],
  );
  const settings: SgdSetting[] = [
    ...perTile.map((count): SgdSetting => ({ rank, schedule: 'tile', tile: { threads: count * lanes } })),
    ...(whole === undefined
      ? []
      : [2, 4].map((times): SgdSetting => ({
          rank,
          schedule: 'tile',
          tile: { tiles: times * whole.tiles, threads: Math.max(lanes, whole.threads / times) },
        }))),
    ...teams.hogwild.map((workers): SgdSetting => ({ rank, schedule: 'hogwild', workers })),
    ...teams.wavefront.map((workers): SgdSetting => ({
      rank,
      schedule: 'wavefront',
      bands: [workers, 2 * workers],
    })),
  ];
  await bench.each(settings, async (run) => {
    const times = await measureEpochs(training, run);
    const errors = times.wall < CHECKED_MILLISECONDS ? await bench.errors(run, [CHECKED]) : undefined;
    const perWorker = training.data.ratings.ratings / times.wall / 1e3 / workersOf(run);
    return [
      describeSchedule(run),
      workersOf(run).toLocaleString('en'),
      milliseconds(times.wall),
      kernelCell(times),
      bench.updates(times.wall),
      perWorker.toPrecision(3),
      errors?.get(CHECKED)?.rmse.toFixed(4) ?? '-',
    ];
  });
};

export const blocksTable: SgdTable = async (bench) => {
  const { training, rank } = bench;
  const marks = [1, 3, 5, 10].filter((epoch) => epoch <= bench.epochs);
  bench.head(
    `Test RMSE by i, k = ${rank}, float16`,
    'Paper: cuMF_SGD Figure 15: R in i x i blocks, s = 40 workers that share none; slow or no convergence where i is at most s. Here (wavefront) a wave’s blocks share no row and no column, so what comes of a grid does not depend on how many of them are stepped at once: ' +
      'each line holds for any s <= i, and was run with s = i. Tiles: as many teams in all, dealt to more and more tiles.',
    ['blocks', 's', 'ms an epoch', 'G updates/s', `test RMSE after ${marks.join(' / ')}`],
  );
  const whole = (await training.prepare({ rank })).schedule.tile;
  const tiles =
    whole === undefined
      ? []
      : [1, 2, 4, 8]
          .filter((times) => whole.threads % (times * whole.lanes) === 0)
          .map((times): SgdSetting => ({
            rank,
            schedule: 'tile',
            tile: { tiles: times * whole.tiles, threads: whole.threads / times },
          }));
  const grids = [1024, 512, 256, 128, 64].map((i): SgdSetting => ({
    rank,
    schedule: 'wavefront',
    bands: [i, i],
  }));
  await bench.each([...grids, ...tiles], async (run) => {
    const errors = await bench.errors(run, marks);
    const [last] = [...errors].slice(-1);
    const wall = last === undefined ? Number.NaN : (1000 * last[1].seconds) / last[0];
    return [
      describeSchedule(run),
      workersOf(run).toLocaleString('en'),
      milliseconds(wall),
      bench.updates(wall),
      marks.map((epoch) => errors.get(epoch)?.rmse.toFixed(4) ?? '-').join(' / '),
    ];
  });
};

export const epochsTable: SgdTable = async (bench) => {
  const { rank } = bench;
  const marks = [1, 2, 3, 5, 7, 10, 15, 20].filter((epoch) => epoch <= bench.epochs);
  bench.head(
    `Test RMSE by epoch, k = ${rank}: seconds of epochs / RMSE, evaluation not counted`,
    'Paper: cuMF_SGD Figure 9b: batch-Hogwild! converges a little faster than wavefront-update.',
    ['schedule', ...marks.map(String)],
  );
  const settings = (['tile', 'hogwild', 'wavefront'] as const).flatMap((schedule) =>
    (['f16', 'f32'] as const).map((precision): SgdSetting => ({ rank, schedule, precision })),
  );
  await bench.each(settings, async (run) => {
    // Compiles kernels, arranges ratings and raises the clock.
    let epochs = 0;
    const begin = performance.now();
    await bench.training.repeat(
      run,
      (ms) => ++epochs < 2 || (ms < CHECKED_MILLISECONDS && performance.now() - begin < CHECKED_MILLISECONDS),
    );
    const errors = await bench.errors(run, marks);
    return [
      describeSchedule(run),
      ...marks.map((epoch) => {
        const at = errors.get(epoch);
        return at === undefined ? '-' : `${at.seconds.toFixed(3)} / ${at.rmse.toFixed(4)}`;
      }),
    ];
  });
};

/** "tile, float16, 132 tiles of 135 columns, 128 teams of 8" */
function describeSchedule({
  schedule: { kind, tile, lanes = 1, workers, rowBands, columnBands, precision },
}: SgdRun): string {
  const stored = precision === 'f16' ? 'float16' : 'float32';
  if (tile !== undefined)
    return `tile, ${stored}, ${tile.tiles} tiles of ${tile.places} columns, ${tile.threads / tile.lanes} teams of ${tile.lanes} each`;
  return kind === 'wavefront'
    ? `wavefront, ${stored}, ${rowBands} x ${columnBands} blocks, teams of ${lanes}`
    : `hogwild, ${stored}, ${workers} teams of ${lanes}`;
}

function workersOf({ schedule: { tile, workers } }: SgdRun): number {
  return tile === undefined ? workers : (tile.tiles * tile.threads) / tile.lanes;
}

/** "7.21 (sgd-tiles 6.80, to-half 0.21, ...)" */
function kernelCell({ onGpu, kernels }: EpochTimes): string {
  if (onGpu === undefined) return '-';
  const parts = Object.entries(kernels).sort(([, left], [, right]) => right - left);
  return `${milliseconds(onGpu)} (${parts.map(([kernel, ms]) => `${kernel} ${milliseconds(ms)}`).join(', ')})`;
}
