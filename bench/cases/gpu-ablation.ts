import {
  chooseNormalEquations,
  type NormalEquationsParams,
  normalEquationsKernel,
} from '../../gpu/equations/normal-equations.ts';
import type { UpdateVariant } from '../../gpu/update/choice/variant.ts';
import { ablations, timeSums } from '../gpu/ablated-sums.ts';
import { measureColumns, measuredBy } from '../gpu/measure.ts';
import { HalfIterations } from '../gpu/training.ts';
import type { Case, Values } from '../harness.ts';

const STEPS = 6;
/** Iterations before comparing the test RMSE of settings that compute the same. */
const ITERATIONS = 2;

const ablation: Case = {
  about:
    'The gain of each technique of ALS on a GPU (bench/results/als-techniques.json): each line differs ' +
    'from the first in one thing. --tables: sums, the time of the sums of normal equations alone, ' +
    'without one technique (registers, symmetry, coalescing, vectors; cuMF Figure 7, cuMF_ALS Figure 4, ' +
    'clMF Figure 9); techniques, of float32 tiles (clMF Figures 9 to 13, cuMF Figures 7 and 8, cuMF_ALS ' +
    'Figure 4); tensor, of tensor cores and solving in place (cuMF_ALS Figure 7a); solvers, on the same ' +
    'sums (cuMF_ALS Figure 5). FOLDER is of `factorflow generate`.',
  words: 'FOLDER',
  options: { tables: 'tensor,techniques,sums,solvers', ranks: '100,64,10' },
  columns: { ...measureColumns, paper: '' },
  rounds: 1,
  async *rows({ words: [folder], options }) {
    const training = await HalfIterations.open(folder);
    for (const line of training.description) console.error(line);
    for (const table of options.tables.split(','))
      for (const rank of options.ranks.split(',').map(Number)) {
        const settings = tables[table]?.(training, rank);
        if (settings === undefined) throw new Error(`there are the tables ${Object.keys(tables).join(', ')}`);
        const engines = Object.entries(settings).map(([label, setting]) => {
          return [label, () => cellsOf(training, rank, setting)] as const;
        });
        yield { name: `${table}, rank ${rank}`, engines: Object.fromEntries(engines) };
      }
  },
};
export default ablation;

interface Setting {
  /** Undefined if the GPU does not support it. */
  readonly variant: UpdateVariant | undefined;
  readonly steps?: number;
  /** A paper's result for it. */
  readonly paper?: string;
  /** The time of sums alone, `without` a technique or as they are. */
  readonly sums?: { readonly params: NormalEquationsParams; readonly without?: string };
}

async function cellsOf(
  training: HalfIterations,
  rank: number,
  { variant, steps = STEPS, paper, sums }: Setting,
): Promise<Values> {
  if (variant === undefined) throw new Error('not admitted by this GPU');
  if (sums === undefined)
    return { ...(await measuredBy(training, { rank, steps, variant, iterations: ITERATIONS })), paper };
  await training.restart(rank);
  return { time: await timeSums(training, { variant, params: sums.params }, sums.without), paper };
}

type Settings = Readonly<Record<string, Setting>>;

const tables: Readonly<Record<string, (training: HalfIterations, rank: number) => Settings>> = {
  techniques,
  tensor,
  sums: sumsAlone,
  solvers,
};

/** The best variant by rule with float32 tiles and A of every row in memory. */
function portableVariant(training: HalfIterations, rank: number, steps: number): UpdateVariant {
  const found = training
    .variants(rank, steps)
    .find(({ sum, precision }) => sum.kernel === 'tiled' && precision === 'f32');
  if (found === undefined) throw new Error(`no float32 tiles for rank ${rank}`);
  return found;
}

type Tiles = Omit<NormalEquationsParams, 'rank' | 'precision' | 'biases'>;

/** Each technique of the portable float32 kernels turned off, or changed. */
function techniques(training: HalfIterations, rank: number): Settings {
  const base = portableVariant(training, rank, STEPS);
  const { kernel: _kernel, ...tiles } = base.sum as { readonly kernel: 'tiled' } & Tiles;
  const sums = (change: Partial<Tiles>, paper?: string): Setting => {
    const changed = { ...tiles, ...change };
    const params = { rank, precision: 'f32', biases: false, ...changed } as const;
    const admitted = training.gpu.admits(normalEquationsKernel, params);
    return { variant: admitted ? { ...base, sum: { kernel: 'tiled', ...changed } } : undefined, paper };
  };
  const other = (change: Partial<UpdateVariant>, paper?: string): Setting => ({
    variant: { ...base, ...change },
    paper,
  });
  const { tile, rows, teams, loads } = tiles;
  const side = tile === 8 ? 4 : 8;
  const {
    rank: _rank,
    precision: _precision,
    biases: _biases,
    ...otherTiles
  } = chooseNormalEquations(rank, 'f32', false, { tile: side });
  return {
    [`all on: A in registers, ${tile} x ${tile} tiles, lower triangle, bin ${teams * loads}, coalesced 16-byte loads`]:
      other({}),
    [`${side} x ${side} tiles`]: sums(otherTiles, 'cuMF T, clMF Fig. 13'),
    'bin 1': sums({ teams: 1, loads: 1 }, 'closest to no staging, clMF Fig. 9'),
    ...Object.fromEntries([1, 2, 8].map((one) => [`bin ${teams * one}`, sums({ loads: one })])),
    [rows === 1 ? '2 rows a workgroup' : '1 row a workgroup']: sums(
      { rows: rows === 1 ? 2 : 1 },
      'clMF Fig. 12: batching',
    ),
    'long rows not split': other({ partRatings: 2 ** 31 }),
    'θ gathered in float16': other({ precision: 'f16' }),
    'A/n in float16 for CG': other({ halfA: true }, 'cuMF_ALS Fig. 5'),
    ...(base.registers && { 'CG without subgroups': other({ registers: false }) }),
  };
}

/** The sums of normal equations alone: the shader as it is, and with edits that remove one technique. */
function sumsAlone(training: HalfIterations, rank: number): Settings {
  const variant = portableVariant(training, rank, STEPS);
  const { kernel: _kernel, ...tiles } = variant.sum as { readonly kernel: 'tiled' } & Tiles;
  const params: NormalEquationsParams = { rank, precision: 'f32', biases: false, ...tiles };
  const without = Object.entries(ablations).map(([technique, { label, paper }]): [string, Setting] => {
    return [label, { variant, paper, sums: { params, without: technique } }];
  });
  return { 'all on': { variant, sums: { params } }, ...Object.fromEntries(without) };
}

/** Gains of tensor cores, float16 and solving in place. */
function tensor(training: HalfIterations, rank: number): Settings {
  const variants = training.variants(rank, STEPS);
  const base = variants.find(({ fused }) => fused !== undefined);
  if (base?.fused === undefined) return { 'all on': { variant: undefined } };
  const { fused } = base;
  const other = (change: Partial<UpdateVariant>): Setting => ({ variant: { ...base, ...change } });
  const tiles = (precision: 'f32' | 'f16'): Setting => ({
    variant: variants.find((one) => one.sum.kernel === 'tiled' && one.precision === precision),
  });
  const dual = (short: number): Setting => ({
    variant: variants.find((one) => one.fused !== undefined && one.short === short),
  });
  const halfA = !fused.halfA;
  return {
    [`all on: in place to ${fused.longest} ratings, dual systems to ${base.short}`]: other({}),
    'no tensor cores: register tiles, θ in f16': tiles('f16'),
    'no tensor cores: register tiles, θ in f32': tiles('f32'),
    'not in place: A through memory': other({ fused: undefined }),
    'no dual systems': dual(0),
    'dual systems to 32 ratings': dual(32),
    'dual systems to 64 ratings': dual(64),
    [halfA ? 'A/n in f16' : 'A in f32']: other({ halfA, fused: { ...fused, halfA } }),
    ...Object.fromEntries(
      [1024, 2048, 4096, 8192].map((longest) => [
        `in place to ${longest} ratings`,
        other({ fused: { ...fused, longest } }),
      ]),
    ),
    'long rows not split': other({ partRatings: 2 ** 31 }),
  };
}

/** The solver's kernels on the same sums: Cholesky, then CG with A of either precision. */
function solvers(training: HalfIterations, rank: number): Settings {
  const cg = portableVariant(training, rank, STEPS);
  const inMemory = { ...cg, registers: false };
  return {
    'Cholesky, f32': { steps: 0, variant: portableVariant(training, rank, 0), paper: '1 (LU)' },
    'CG 6, A in f32': { variant: inMemory, paper: '1/4' },
    'CG 6, A in f16': { variant: { ...inMemory, halfA: true }, paper: '1/8' },
    ...(cg.registers && {
      'CG 6 with subgroups, A in f32': { variant: { ...cg, halfA: false } },
      'CG 6 with subgroups, A in f16': { variant: { ...cg, halfA: true } },
    }),
  };
}
