import type { PublishedRun } from './published-run.ts';

const table4 = 'cuMF_SGD, section 5.2, Table 4 and Figure 11';
const figure9 = 'cuMF_SGD, section 3.2.4, Figure 9(a)';

/** SGD on Netflix: test RMSE against seconds, by schedule. */
export const cumfSgd: PublishedRun = {
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
      source: figure9,
    },
    {
      system: 'LIBMF',
      hardware: 'two Xeon E5-2670, 40 threads',
      figure: '1 / 2.5 of these updates a second',
      source: figure9,
    },
    { system: 'cuMF_SGD', hardware: 'one Titan X', figure: '7.5 s to RMSE 0.92', source: table4 },
    { system: 'cuMF_SGD', hardware: 'one Tesla P100', figure: '3.3 s to RMSE 0.92', source: table4 },
    {
      system: 'LIBMF',
      hardware: 'two Xeon E5-2670, 40 threads',
      figure: '23.0 s to RMSE 0.92',
      source: table4,
    },
    { system: 'NOMAD', hardware: '32 nodes', figure: '9.6 s to RMSE 0.92', source: table4 },
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
