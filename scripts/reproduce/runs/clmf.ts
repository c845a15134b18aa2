import type { PublishedRun } from './published-run.ts';

const figure9 = 'clMF, section 5.2, Figure 9';
const compiled = 'no flag: the CPU kernels are compiled with it';

/** The techniques of clMF, turned off where a flag or a bench does so. */
export const clmf: PublishedRun = {
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
      source: figure9,
      card: { result: 'techniques', row: 'A grows in memory, not in registers', column: 'of the first' },
      absent: compiled,
    },
    {
      technique: 'local memory (staged rows of Y)',
      paper: 'up to 12.58 times as fast on Fury X, 1.6 on the CPU, 1.4 on MIC',
      source: figure9,
      card: { result: 'techniques', row: 'bin 1', column: 'of the first' },
      absent: 'no counterpart: a CPU has caches only',
    },
    {
      technique: 'vectors',
      paper: 'slightly faster on CPU and MIC',
      source: figure9,
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
