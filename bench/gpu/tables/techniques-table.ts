import {
  chooseNormalEquations,
  type NormalEquationsParams,
  normalEquationsKernel,
} from '../../../gpu/equations/normal-equations.ts';
import { ablations, timeSums } from '../ablated-sums.ts';
import type { UpdateVariant } from '../../../gpu/update/choice/variant.ts';
import {
  type BenchRun,
  CHECK_ITERATIONS,
  iterationCell,
  kernelCell,
  portableVariant,
  rmseCell,
  type Row,
  shortKernels,
  solveKernels,
  sumKernels,
  type Table,
} from '../bench-run.ts';

type Tiles = Omit<NormalEquationsParams, 'rank' | 'precision' | 'biases'>;

const STEPS = 6;

/** Each technique of the portable float32 kernels turned off, or changed, one at a time. */
export function techniquesTable(rank: number): Table {
  return {
    name: 'techniques',
    rank,
    async run(bench) {
      const { base, rows, missing } = techniques(bench, rank);
      bench.head(
        `Techniques, rank ${rank}: float32 tiles, CG ${STEPS} steps; each line differs from the first in one thing`,
        `Papers: cuMF (HPDC'16) Figures 7 and 8, cuMF_ALS Figure 4 (all f = 100, Netflix, Maxwell), clMF Figures 9 to 13 (K20C). Texture memory (Figure 8: 25 to 35 % faster) has no counterpart in WebGPU: θ is bound as a read-only storage buffer, and what caches it the driver decides.`,
        [
          'differs',
          'ms an iteration (users + items)',
          'of the first',
          'sums',
          'solver',
          'short rows',
          `test RMSE after ${CHECK_ITERATIONS}`,
          'paper',
        ],
      );
      let first: number | undefined;
      await bench.rows(
        [{ label: describe(base), rank, steps: STEPS, variant: base }, ...rows],
        ({ label, paper = '' }, measured) => {
          first ??= measured.wall;
          return [
            label,
            iterationCell(measured),
            (measured.wall / first).toFixed(2),
            kernelCell(measured, ...sumKernels),
            kernelCell(measured, ...solveKernels),
            kernelCell(measured, ...shortKernels),
            rmseCell(measured),
            paper,
          ];
        },
      );
      if (missing.length > 0) bench.line(`\nNot admitted by this GPU: ${missing.join('; ')}`);
      await withoutTechniques(bench, rank, base);
    },
  };
}

/** Times the sums alone, without one technique each. */
async function withoutTechniques(bench: BenchRun, rank: number, variant: UpdateVariant): Promise<void> {
  const { training } = bench;
  await training.restart(rank);
  const { kernel: _kernel, ...tiles } = variant.sum as { readonly kernel: 'tiled' } & Tiles;
  const shipped = { variant, params: { rank, precision: 'f32', biases: false, ...tiles } } as const;
  const first = await timeSums(training, shipped);
  bench.head(
    `Sums without one technique, rank ${rank}: the kernel's text is edited (ablated-sums.ts)`,
    'Papers: cuMF Figure 7, cuMF_ALS section III and Figure 4, clMF Figure 9.',
    ['differs', 'ms of sums (users + items)', 'of the first', 'paper'],
  );
  bench.row(['all on', first.toFixed(2), '1.00', '']);
  for (const [without, { label, paper }] of Object.entries(ablations)) {
    const time = await bench.attempt(label, () => timeSums(training, shipped, without));
    if (time !== undefined) bench.row([label, time.toFixed(2), (time / first).toFixed(2), paper]);
  }
}

type ChangedTiles = readonly [label: string, change: Partial<Tiles>, paper?: string];

function techniques(
  bench: BenchRun,
  rank: number,
): { readonly base: UpdateVariant; readonly rows: Row[]; readonly missing: string[] } {
  const { gpu } = bench.training;
  const base = portableVariant(bench.training, rank, STEPS);
  const { kernel: _kernel, ...tiles } = base.sum as { readonly kernel: 'tiled' } & Tiles;
  const rows: Row[] = [];
  const missing: string[] = [];
  const other = (label: string, change: Partial<UpdateVariant>, paper?: string) =>
    rows.push({ label, rank, steps: STEPS, variant: { ...base, ...change }, paper });
  for (const [label, change, paper] of changesOfSums(rank, tiles)) {
    const changed = { ...tiles, ...change };
    if (gpu.admits(normalEquationsKernel, { rank, precision: 'f32', biases: false, ...changed }))
      other(label, { sum: { kernel: 'tiled', ...changed } }, paper);
    else missing.push(label);
  }
  other('long rows not split', { partRatings: 2 ** 31 });
  other('θ gathered in float16', { precision: 'f16' });
  other('A/n in float16 for CG', { halfA: true }, 'cuMF_ALS Fig. 5');
  if (base.registers) other('CG without subgroups', { registers: false });
  return { base, rows, missing };
}

/** Other ways to sum the normal equations. */
function changesOfSums(rank: number, tiles: Tiles): ChangedTiles[] {
  const { tile, rows, teams } = tiles;
  const other = tilesOf(chooseNormalEquations(rank, 'f32', false, { tile: tile === 8 ? 4 : 8 }));
  return [
    [`${other.tile} x ${other.tile} tiles, bin ${binOf(other)}`, other, 'cuMF T, clMF Fig. 13'],
    ['bin 1', { teams: 1, loads: 1 }, 'closest to no staging, clMF Fig. 9'],
    ...[1, 2, 8].map((one): ChangedTiles => [`bin ${teams * one}`, { loads: one }]),
    [
      `${rows === 1 ? '2 rows' : '1 row'} a workgroup`,
      { rows: rows === 1 ? 2 : 1 },
      'clMF Fig. 12: batching',
    ],
  ];
}

function binOf({ teams, loads }: Pick<Tiles, 'teams' | 'loads'>): number {
  return teams * loads;
}

function tilesOf({ rank: _rank, precision: _precision, biases: _biases, ...tiles }: NormalEquationsParams) {
  return tiles;
}

function describe({ sum }: UpdateVariant): string {
  if (sum.kernel !== 'tiled') return sum.kernel;
  const tiles = `A in registers, ${sum.tile} x ${sum.tile} tiles, lower triangle`;
  const rows = `${sum.rows} ${sum.rows === 1 ? 'row' : 'rows'} a workgroup`;
  return `all on: ${tiles}, bin ${binOf(sum)}, coalesced 16-byte loads, ${rows}`;
}
