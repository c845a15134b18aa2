import { type Bandwidth, floors, measureBandwidth } from '../bandwidth.ts';
import { milliseconds } from './bench-report.ts';
import { bestVariant, type BenchRun, type Table, teraflops } from '../bench-run.ts';
import { type Measurement, measure } from '../measure.ts';

/**
 * Exact and approximate solvers, float32 and float16, by rank, compared with the lower bounds from memory.
 */
const solvers = [
  { label: 'Cholesky, θ f32', steps: 0, precision: 'f32' },
  { label: 'Cholesky, θ f16', steps: 0, precision: 'f16' },
  { label: 'CG 6, θ f32', steps: 6, precision: 'f32' },
  { label: 'CG 6, θ f16', steps: 6, precision: 'f16' },
] as const;

export function ranksTable(ranks: readonly number[]): Table {
  return {
    name: 'ranks',
    rank: ranks[0],
    async run(bench) {
      const bandwidth = await bench.attempt('bandwidth', async () => {
        await bench.training.restart(ranks[0]);
        return measureBandwidth(bench.training);
      });
      bench.head(
        'Ranks: ms an iteration (useful TFLOP/s), the best variants by rule',
        `Papers: cuMF_ALS Figure 5 (exact against CG, f = 100) and 7a (FLOPS of get_hermitian), clMF ` +
          `Figure 8 (f = 10 to 100). ${bandwidthText(bandwidth)}`,
        [
          'f',
          ...solvers.map(({ label }) => label),
          'memory floor ms, f16',
          'gather floor ms, f16',
          'CG 6, θ f16: of the higher floor',
          'variants with θ f16: Cholesky, CG',
        ],
      );
      for (const [at, rank] of ranks.entries()) {
        if (bench.timeIsUp) return bench.line(`\nTime was up before ranks ${ranks.slice(at).join(', ')}`);
        await rankRow(bench, rank, bandwidth);
      }
    },
  };
}

async function rankRow(bench: BenchRun, rank: number, bandwidth: Bandwidth | undefined): Promise<void> {
  const { training } = bench;
  const cells: string[] = [];
  let last: Measurement | undefined;
  const names: string[] = [];
  for (const { label, steps, precision } of solvers) {
    last = await bench.attempt(`f = ${rank}, ${label}`, async () => {
      const variant = bestVariant(training, rank, steps, precision);
      if (precision === 'f16') names.push(variant.name);
      return measure(training, { rank, steps, variant });
    });
    cells.push(
      last === undefined
        ? 'failed'
        : `${milliseconds(last.wall)} ` +
            `(${teraflops(training.users.ratings, rank, last.wall).toFixed(1)})${last.once ? ' once' : ''}`,
    );
  }
  const floor = bandwidth && floors(bandwidth, training, rank, 2);
  const distance =
    floor === undefined || last === undefined
      ? '-'
      : (last.wall / Math.max(floor.memory, floor.gather)).toFixed(1);
  bench.row([
    String(rank),
    ...cells,
    floor === undefined ? '-' : milliseconds(floor.memory),
    floor === undefined ? '-' : milliseconds(floor.gather),
    distance,
    names.join(', '),
  ]);
}

function bandwidthText(bandwidth: Bandwidth | undefined): string {
  if (bandwidth === undefined) return 'Bandwidth was not measured.';
  const rate = (bytes: number) => `${Number((bytes / 1e6).toPrecision(3))} GB/s`;
  return (
    `Floors, as measured here: copies ${rate(bandwidth.copy)} (ratings once a side at 8 bytes, factors ` +
    `once), gathers of rows in the ratings' order ${rate(bandwidth.users)} of θ by user and ` +
    `${rate(bandwidth.items)} of x by item (N_z f elements a side).`
  );
}
