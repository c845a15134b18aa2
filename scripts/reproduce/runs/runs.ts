import type { Flags } from '../run-command.ts';

/** A published experiment about time, repeated on generated ratings: commands, and the paper's figures. */
export interface PublishedRun {
  readonly name: string;
  readonly title: string;
  /** The preset of `generate`. */
  readonly preset: string;
  /** The comparison and its limits: sentences for the output and the page. */
  readonly about: string;
  readonly iterations: number;
  /** Flags of `train` that all variants have. */
  readonly flags: Flags;
  /** The first is what others are compared with. */
  readonly variants: readonly Variant[];
  readonly published: readonly PublishedTime[];
  /** Measured GPU runs of bench/results with the same question. */
  readonly cards?: readonly CardCourse[];
  /** Only of an ablation: the paper's techniques. */
  readonly techniques?: readonly Technique[];
  /** A case of bench/ that a GPU runs after the variants, on the same ratings: techniques without a flag. */
  readonly bench?: readonly string[];
}

export interface Variant {
  readonly label: string;
  readonly flags: Flags;
  /** The only kind of device that runs it. */
  readonly only?: 'cpu' | 'gpu';
}

/** A figure that the paper's text or table states. */
interface PublishedTime {
  readonly system: string;
  readonly hardware: string;
  readonly figure: string;
  readonly source: string;
}

/** Rows of a result of bench/results, one an iteration. */
export interface CardCourse {
  readonly label: string;
  /** Id of the result. */
  readonly result: string;
  /** Texts that a row of the course has, by column. */
  readonly where: Readonly<Record<string, string>>;
  /** Name of the column that counts iterations. */
  readonly counted: 'iteration' | 'epochs';
}

/** A technique of the paper, with the gain that it states. */
export interface Technique {
  readonly technique: string;
  readonly paper: string;
  readonly source: string;
  /** A row of a result of bench/results: time without the technique, as a multiple of the time with it. */
  readonly card?: { readonly result: string; readonly row: string; readonly column: string };
  /** The variant that is run without the technique, compared with the first one. */
  readonly variant?: string;
  /** The reason for having no variant on a CPU. */
  readonly absent?: string;
}

const hpdc = 'Tan, Cao, Fong, HPDC 2016 (cuMF)';
const alsTable4 = 'cuMF_ALS, section V-C, Table IV';

/** ALS on Netflix: test RMSE against seconds. */
const cumf: PublishedRun = {
  name: 'cumf-netflix',
  title: 'cuMF: convergence of ALS on Netflix',
  preset: 'netflix',
  about:
    'cuMF (HPDC 2016, Figures 6 and 7) draws test RMSE against seconds for f = 100 and λ = 0.05. The ratings ' +
    "here are generated in Netflix's shape, so an RMSE is not comparable with the paper's 0.92; compared are " +
    'the seconds of an iteration and the number of iterations until the test RMSE is within 1 % of its last ' +
    "value. The papers' texts state the seconds to RMSE 0.92, not those of an iteration; their curves are not " +
    'read off.',
  iterations: 10,
  flags: { rank: 100, 'reg-param': 0.05, 'no-biases': true },
  variants: [
    { label: 'Cholesky', flags: { solver: 'cholesky' } },
    { label: 'CG, 6 steps', flags: { solver: 'cg', 'cg-steps': 6 } },
  ],
  published: [
    {
      system: 'cuMF',
      hardware: 'one Titan X, 12 GB',
      figure: '30 s to RMSE 0.92',
      source: `${hpdc}, section 5.3, Figure 7`,
    },
    {
      system: 'cuMF without registers for A_u',
      hardware: 'one Titan X, 12 GB',
      figure: '75 s to RMSE 0.92',
      source: `${hpdc}, section 5.3, Figure 7`,
    },
    {
      system: 'cuMF',
      hardware: 'four Titan X',
      figure: '3.8 times as fast as one, at RMSE 0.92',
      source: `${hpdc}, section 5.4, Figure 9`,
    },
    { system: 'cuMF (GPU-ALS)', hardware: 'one Titan X', figure: '28 s to RMSE 0.92', source: alsTable4 },
    { system: 'cuMF_ALS', hardware: 'one Titan X', figure: '6.5 s to RMSE 0.92', source: alsTable4 },
    { system: 'cuMF_ALS', hardware: 'one Tesla P100', figure: '3.3 s to RMSE 0.92', source: alsTable4 },
    { system: 'LIBMF (SGD)', hardware: '40 threads', figure: '23 s to RMSE 0.92', source: alsTable4 },
    { system: 'NOMAD (SGD)', hardware: '32 machines', figure: '9.6 s to RMSE 0.92', source: alsTable4 },
  ],
  cards: [
    {
      label: 'CG, 6 steps, θ in float16',
      result: 'rmse-seconds',
      where: { solver: 'CG 6, θ f16' },
      counted: 'iteration',
    },
    {
      label: 'Cholesky, θ in float32',
      result: 'rmse-seconds',
      where: { solver: 'Cholesky, θ f32' },
      counted: 'iteration',
    },
  ],
};

const sgdTable4 = 'cuMF_SGD, section 5.2, Table 4 and Figure 11';
const sgdFigure9 = 'cuMF_SGD, section 3.2.4, Figure 9(a)';

/** SGD on Netflix: test RMSE against seconds, by schedule. */
const cumfSgd: PublishedRun = {
  name: 'cumf-sgd-netflix',
  title: 'cuMF_SGD: convergence of SGD on Netflix',
  preset: 'netflix',
  about:
    'cuMF_SGD (Figures 9(b) and 11) draws test RMSE against epochs and seconds for k = 128, λ = 0.05, α = 0.08 ' +
    "and β = 0.3. The ratings here are generated in Netflix's shape, so an RMSE is not comparable with the " +
    "paper's 0.92; compared are the updates (ratings visited) a second and the number of epochs until the test " +
    'RMSE is within 1 % of its last value. Of 99.1 M ratings, 0.27 billion updates a second are 0.37 s an epoch.',
  iterations: 20,
  flags: {
    algorithm: 'sgd',
    rank: 128,
    'reg-param': 0.05,
    'learning-rate': 0.08,
    decay: 0.3,
    'no-biases': true,
  },
  variants: [
    { label: 'Hogwild!', flags: { schedule: 'hogwild' } },
    { label: 'wavefront', flags: { schedule: 'wavefront' } },
    { label: 'tile', flags: { schedule: 'tile' }, only: 'gpu' },
  ],
  published: [
    {
      system: 'batch-Hogwild! and wavefront-update',
      hardware: 'one Titan X, 768 workers',
      figure: '0.27 billion updates a second',
      source: sgdFigure9,
    },
    {
      system: 'LIBMF',
      hardware: 'two Xeon E5-2670, 40 threads',
      figure: '1 / 2.5 of these updates a second',
      source: sgdFigure9,
    },
    { system: 'cuMF_SGD', hardware: 'one Titan X', figure: '7.5 s to RMSE 0.92', source: sgdTable4 },
    { system: 'cuMF_SGD', hardware: 'one Tesla P100', figure: '3.3 s to RMSE 0.92', source: sgdTable4 },
    {
      system: 'LIBMF',
      hardware: 'two Xeon E5-2670, 40 threads',
      figure: '23.0 s to RMSE 0.92',
      source: sgdTable4,
    },
    { system: 'NOMAD', hardware: '32 nodes', figure: '9.6 s to RMSE 0.92', source: sgdTable4 },
  ],
  cards: [
    {
      label: 'tile, float16',
      result: 'sgd-gpu-rmse',
      where: { schedule: 'tile', precision: 'float16' },
      counted: 'epochs',
    },
    {
      label: 'Hogwild!, float16',
      result: 'sgd-gpu-rmse',
      where: { schedule: 'hogwild', precision: 'float16' },
      counted: 'epochs',
    },
    {
      label: 'wavefront, float16',
      result: 'sgd-gpu-rmse',
      where: { schedule: 'wavefront', precision: 'float16' },
      counted: 'epochs',
    },
  ],
};

const clmfFigure9 = 'clMF, section 5.2, Figure 9';
const compiled = 'no flag: the CPU kernels are compiled with it';

/** The techniques of clMF, turned off where a flag or a bench does so. */
const clmf: PublishedRun = {
  name: 'clmf-ablation',
  title: 'clMF: gains of its techniques',
  preset: 'netflix',
  about:
    'clMF measures variants of its kernels at f = 10 on six real data sets: thread batching, to which registers, ' +
    'local memory and vectors are added (Figure 9), and the solver (Figure 10). The ratings here are generated ' +
    "in Netflix's shape; compared are times with and without a technique. The times of the card are of rank 100 " +
    "and float32, by `node bench/bench.ts gpu-ablation`, and the paper's of other cards and f = 10. On a CPU the command " +
    "compares what flags change, and on a GPU it compares kernels by `--kernel` and runs the bench's table, too.",
  iterations: 5,
  flags: { rank: 10, 'reg-param': 0.1, 'no-biases': true },
  variants: [
    { label: 'Cholesky', flags: { solver: 'cholesky' } },
    { label: 'Cholesky, one thread', flags: { solver: 'cholesky', workers: 1 }, only: 'cpu' },
    { label: 'CG, 6 steps', flags: { solver: 'cg', 'cg-steps': 6 } },
    { label: '8 x 8 tiles, float32', flags: { solver: 'cholesky', kernel: 'tiled8-f32' }, only: 'gpu' },
    { label: '4 x 4 tiles, float32', flags: { solver: 'cholesky', kernel: 'tiled4-f32' }, only: 'gpu' },
  ],
  published: [
    {
      system: 'clMF compared with SAC (one thread a row)',
      hardware: 'Tesla K20C; Fury X; two Xeon E5-2670',
      figure: '23.9 to 87.9; 34.6 to 97.1; 2.8 to 15.7 times as fast',
      source: 'clMF, section 5.1, Figure 7',
    },
    {
      system: 'S1 (YᵀY + λI) on Netflix',
      hardware: 'Tesla K20C',
      figure: '26 s, with local memory and registers 6 s',
      source: 'clMF, section 5.3, Figure 10',
    },
  ],
  techniques: [
    {
      technique: 'rows in parallel (thread batching)',
      paper: 'all techniques together: 2.8 to 15.7 times as fast on the CPU',
      source: 'clMF, section 5.1, Figure 7',
      card: { result: 'techniques', row: '2 rows a workgroup, bin 16', column: 'of the first' },
      variant: 'Cholesky, one thread',
    },
    {
      technique: 'registers for A',
      paper:
        'with local memory up to 2.6 times as fast on the K20C; added to it, slower on Fury X, MIC and CPU',
      source: clmfFigure9,
      card: { result: 'techniques', row: 'A grows in memory, not in registers', column: 'of the first' },
      absent: compiled,
    },
    {
      technique: 'local memory (staged rows of Y)',
      paper: 'up to 12.58 times as fast on Fury X, 1.6 on the CPU, 1.4 on MIC',
      source: clmfFigure9,
      card: { result: 'techniques', row: 'bin 1', column: 'of the first' },
      absent: 'no counterpart: a CPU has caches only',
    },
    {
      technique: 'vectors',
      paper: 'slightly faster on CPU and MIC',
      source: clmfFigure9,
      card: { result: 'techniques', row: '4 bytes a load, no vectors', column: 'of the first' },
      absent: compiled,
    },
    {
      technique: 'Cholesky for S3 (here instead of 6 steps of CG; on the card the time of the solver alone)',
      paper: 'a whole run 12 s instead of 15 s on the K20C, Netflix',
      source: 'clMF, section 5.3, Figure 10',
      card: { result: 'solvers', row: 'CG 6 with subgroups, A in f32', column: 'of the first' },
      variant: 'CG, 6 steps',
    },
  ],
  bench: ['gpu-ablation', '--tables', 'techniques,sums', '--ranks', '10'],
};

/** Experiments about time, which generate their ratings. */
export const runs: readonly PublishedRun[] = [cumf, cumfSgd, clmf];
