import {
  chooseNormalEquations,
  type NormalEquationsParams,
  normalEquationsKernel,
} from '../../../gpu/equations/normal-equations.ts';
import { paddedRank } from '../../../gpu/device/slots.ts';
import type { UpdateVariant } from '../../../gpu/update/choice/variant.ts';
import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
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
    },
  };
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
  for (const [label, change, paper] of changesOfSums(gpu, rank, tiles)) {
    const changed = { ...tiles, ...change };
    if (gpu.admits(normalEquationsKernel, { rank, precision: 'f32', biases: false, ...changed }))
      other(label, { sum: { kernel: 'tiled', ...changed } }, paper);
    else missing.push(label);
  }
  other('rows not sorted by length', { sorted: false });
  other('long rows not split, nor cut by regions', { partRatings: 2 ** 31 });
  other('long rows split, but not by regions of θ', { regionBytes: 0 });
  other('θ gathered in float16', { precision: 'f16' });
  other('A/n in float16 for CG', { halfA: true }, 'cuMF_ALS Fig. 5');
  if (base.registers) other('CG without subgroups', { registers: false });
  other('short rows by CG without A', { free: true });
  return { base, rows, missing };
}

/** Other ways to sum the normal equations. */
function changesOfSums(gpu: Gpu, rank: number, tiles: Tiles): ChangedTiles[] {
  const parts = tiles.rows === 1 ? 2 : 1;
  // Two rows in the memory of one.
  const bin = parts === 1 ? tiles.bin : Math.max(1, tiles.bin >> 1);
  const bins = [1, 8, 16, 32, 64].filter((one) => one !== tiles.bin);
  return [
    ['A grows in memory, not in registers', { accumulate: 'memory' }, 'cuMF Fig. 7: 2.5 times as slow'],
    [
      'both triangles',
      { triangle: 'full', ...shareOf((paddedRank(rank) / tiles.tile) ** 2) },
      'cuMF_ALS III: lower half only',
    ],
    ['strided (non-coalesced) staging', { staging: 'strided' }, 'cuMF_ALS Fig. 4: loads fastest'],
    ['4 bytes a load, no vectors', { vectorized: false }, 'clMF Fig. 9: slightly slower'],
    otherTile(gpu, rank, tiles),
    ...bins.map((one): ChangedTiles => [`bin ${one}`, { bin: one }, papersOfBins[one]]),
    [
      `${parts} ${parts === 1 ? 'row' : 'rows'} a workgroup${bin === tiles.bin ? '' : `, bin ${bin}`}`,
      { rows: parts, bin },
      'clMF Fig. 12: thread batching',
    ],
  ];
}

const papersOfBins: Readonly<Record<number, string>> = {
  1: 'closest to no staging, clMF Fig. 9',
  32: "cuMF_ALS' BIN",
};

/** Tiles of 4 x 4 instead of 8 x 8, or the reverse. */
function otherTile({ info }: Gpu, rank: number, { tile, bin }: Tiles): ChangedTiles {
  const other = tile === 8 ? 4 : 8;
  const room = {
    threads: info.limits.workgroupThreads,
    bytes: Math.min(16384, info.limits.workgroupBytes),
    tile: other,
  } as const;
  const {
    rank: _rank,
    precision: _precision,
    biases: _biases,
    ...chosen
  } = chooseNormalEquations(rank, 'f32', false, room);
  return [
    `${other} x ${other} tiles${chosen.bin === bin ? '' : `, bin ${chosen.bin}`}`,
    chosen,
    'cuMF T, clMF Fig. 13',
  ];
}

/** Threads for this number of blocks of A, as in chooseNormalEquations. */
function shareOf(blocks: number): Pick<Tiles, 'lanes' | 'rows'> {
  const lanes = Math.ceil(blocks / Math.ceil(blocks / 256));
  return { lanes, rows: Math.max(1, Math.min(8, Math.floor(128 / lanes))) };
}

function describe({ sum }: UpdateVariant): string {
  if (sum.kernel !== 'tiled') return sum.kernel;
  return `all on: A in registers, ${sum.tile} x ${sum.tile} tiles, lower triangle, bin ${sum.bin}, coalesced 16-byte loads, ${sum.rows} ${sum.rows === 1 ? 'row' : 'rows'} a workgroup`;
}
