import {
  chooseNormalEquations,
  type NormalEquationsParams,
  normalEquationsKernel,
} from '../../../gpu/equations/normal-equations.ts';
import { paddedRank } from '../../../gpu/device/slots.ts';
import type { UpdateVariant } from '../../../gpu/update/choice/variant.ts';
import { milliseconds } from './bench-report.ts';
import {
  type BenchRun,
  CHECK_ITERATIONS,
  iterationCell,
  kernelCell,
  kernelTime,
  rmseCell,
  type Row,
  shortKernels,
  solveKernels,
  sumKernels,
  type Table,
} from '../bench-run.ts';

type Tiles = Omit<NormalEquationsParams, 'rank' | 'precision' | 'biases'>;

const STEPS = 6;

/** Each technique of the portable float32 kernels switched off, or turned to another value, one at a time. */
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
    },
  };
}

/** The solver's kernels on the same sums (cuMF_ALS, Figure 5). */
export function solversTable(rank: number): Table {
  return {
    name: 'solvers',
    rank,
    async run(bench) {
      const variant = portable(bench, rank, STEPS);
      const exact = portable(bench, rank, 0);
      const rows: Row[] = [
        { label: 'Cholesky, f32', rank, steps: 0, variant: exact, paper: '1 (LU)' },
        {
          label: `CG ${STEPS}, A in f32`,
          rank,
          steps: STEPS,
          variant: { ...variant, registers: false },
          paper: '1/4',
        },
        {
          label: `CG ${STEPS}, A in f16`,
          rank,
          steps: STEPS,
          variant: { ...variant, registers: false, halfA: true },
          paper: '1/8',
        },
        ...[false, true]
          .filter(() => variant.registers)
          .map((halfA): Row => ({
            label: `CG ${STEPS} with subgroups, A in ${halfA ? 'f16' : 'f32'}`,
            rank,
            steps: STEPS,
            variant: { ...variant, halfA },
          })),
      ];
      bench.head(
        `Solvers, rank ${rank}: time of their kernels alone, all rows, normal equations from memory`,
        'Paper: cuMF_ALS Figure 5 (f = 100, f_s = 6, Netflix, Maxwell): CG-FP32 takes 1/4 of LU-FP32, CG-FP16 1/2 of CG-FP32.',
        [
          'solver',
          'solver ms an iteration',
          'of the first',
          'sums',
          'whole iteration',
          `test RMSE after ${CHECK_ITERATIONS}`,
          'paper',
        ],
      );
      let first: number | undefined;
      await bench.rows(rows, ({ label, paper = '' }, measured) => {
        const solve = kernelTime(measured, solveKernels);
        first ??= solve;
        return [
          label,
          milliseconds(solve),
          (solve / first).toFixed(2),
          kernelCell(measured, ...sumKernels),
          iterationCell(measured),
          rmseCell(measured),
          paper,
        ];
      });
    },
  };
}

/** The first variant by rule with float32 tiles, A of every row in memory. */
function portable({ training }: BenchRun, rank: number, steps: number): UpdateVariant {
  const found = training
    .variants(rank, steps)
    .find(({ sum, precision, free }) => sum.kernel === 'tiled' && precision === 'f32' && !free);
  if (found === undefined) throw new Error(`no float32 tiles for rank ${rank}`);
  return found;
}

function techniques(
  bench: BenchRun,
  rank: number,
): { readonly base: UpdateVariant; readonly rows: Row[]; readonly missing: string[] } {
  const { gpu } = bench.training;
  const base = portable(bench, rank, STEPS);
  const { kernel: _kernel, ...tiles } = base.sum as { readonly kernel: 'tiled' } & Tiles;
  const rows: Row[] = [];
  const missing: string[] = [];
  const other = (label: string, change: Partial<UpdateVariant>, paper?: string) =>
    rows.push({ label, rank, steps: STEPS, variant: { ...base, ...change }, paper });
  const sums = (label: string, change: Partial<Tiles>, paper?: string) => {
    const changed = { ...tiles, ...change };
    if (gpu.admits(normalEquationsKernel, { rank, precision: 'f32', biases: false, ...changed }))
      other(label, { sum: { kernel: 'tiled', ...changed } }, paper);
    else missing.push(label);
  };
  sums('A grows in memory, not in registers', { accumulate: 'memory' }, 'cuMF Fig. 7: 2.5 times as slow');
  sums(
    'both triangles',
    { triangle: 'full', ...shareOf((paddedRank(rank) / tiles.tile) ** 2) },
    'cuMF_ALS III: lower half only',
  );
  sums('strided (non-coalesced) staging', { staging: 'strided' }, 'cuMF_ALS Fig. 4: loads fastest');
  sums('4 bytes a load, no vectors', { vectorized: false }, 'clMF Fig. 9: slightly slower');
  const tile = tiles.tile === 8 ? 4 : 8;
  const { threads, bytes } = {
    threads: gpu.info.limits.workgroupThreads,
    bytes: Math.min(16384, gpu.info.limits.workgroupBytes),
  };
  const {
    rank: _rank,
    precision: _precision,
    biases: _biases,
    ...otherTile
  } = chooseNormalEquations(rank, 'f32', false, { threads, bytes, tile });
  sums(
    `${tile} x ${tile} tiles${otherTile.bin === tiles.bin ? '' : `, bin ${otherTile.bin}`}`,
    otherTile,
    'cuMF T, clMF Fig. 13',
  );
  for (const bin of [1, 8, 16, 32, 64])
    if (bin !== tiles.bin)
      sums(
        `bin ${bin}`,
        { bin },
        bin === 32 ? "cuMF_ALS' BIN" : bin === 1 ? 'closest to no staging, clMF Fig. 9' : undefined,
      );
  const parts = tiles.rows === 1 ? 2 : 1;
  // Two rows in the memory of one.
  const bin = parts === 1 ? tiles.bin : Math.max(1, tiles.bin >> 1);
  sums(
    `${parts} ${parts === 1 ? 'row' : 'rows'} a workgroup${bin === tiles.bin ? '' : `, bin ${bin}`}`,
    { rows: parts, bin },
    'clMF Fig. 12: thread batching',
  );
  other('rows not sorted by length', { sorted: false });
  other('long rows not split, nor cut by regions', { partRatings: 2 ** 31 });
  other('long rows split, but not by regions of θ', { regionBytes: 0 });
  other('θ gathered in float16', { precision: 'f16' });
  other('A/n in float16 for CG', { halfA: true }, 'cuMF_ALS Fig. 5');
  if (base.registers) other('CG without subgroups', { registers: false });
  other('short rows by CG without A', { free: true });
  return { base, rows, missing };
}

/** Threads for so many blocks of A, as chooseNormalEquations deals them. */
function shareOf(blocks: number): Pick<Tiles, 'lanes' | 'rows'> {
  const lanes = Math.ceil(blocks / Math.ceil(blocks / 256));
  return { lanes, rows: Math.max(1, Math.min(8, Math.floor(128 / lanes))) };
}

function describe({ sum }: UpdateVariant): string {
  if (sum.kernel !== 'tiled') return sum.kernel;
  return `all on: A in registers, ${sum.tile} x ${sum.tile} tiles, lower triangle, bin ${sum.bin}, coalesced 16-byte loads, ${sum.rows} ${sum.rows === 1 ? 'row' : 'rows'} a workgroup`;
}
